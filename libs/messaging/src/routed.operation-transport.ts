import { Injectable } from '@nestjs/common';
import { operationOf, type Class, type Operation } from '#libs/contracts/src/operation';
import { DirectOperationTransport } from './direct.operation-transport.ts';
import { LocalServices } from './handlers.ts';
import { OperationTransport } from './operation-transport.ts';

/** Reaches the owners that live in other processes. Its adapter is loaded where there are any: the suite does without. */
export abstract class RemoteOperations extends OperationTransport {
  /** Resolves once a replica of every service could be asked, or when it is closed. */
  abstract reached(): Promise<void>;

  abstract close(): Promise<void>;
}

/** Calls the owner where it is: in this process or in another. */
@Injectable()
export class RoutedOperationTransport extends OperationTransport {
  constructor(
    private readonly here: LocalServices,
    private readonly direct: DirectOperationTransport,
    private readonly remote: RemoteOperations,
  ) {
    super();
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    const { owner } = operationOf(operation.constructor as Class).options;
    return (this.here.names.includes(owner) ? this.direct : this.remote).call(operation);
  }
}
