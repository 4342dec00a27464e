/** Waits for positions of the log that a reader has seen elsewhere. */
export abstract class Positions {
  /**
   * Resolves once reads of this process show everything up to `position`.
   * @throws DomainError `position_not_reached` at once where it is malformed or beyond the head; `service_unavailable` past the deadline (milliseconds since the epoch)
   */
  abstract reached(position: string, deadline: number): Promise<void>;
}
