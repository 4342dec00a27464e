import type { Operation } from '#libs/contracts/src/operation';

/** Calls an operation on the service that owns it, with its deadline and its refusals intact: a direct call in the suite, TCP in a cluster. */
export abstract class OperationTransport {
  /**
   * @throws DomainError as the owner refused; `service_unavailable` when the owner could not be reached or the deadline passed
   */
  abstract call<Answer>(operation: Operation<Answer>): Promise<Answer>;
}
