/** Why the process cannot start, and the way out, in one sentence for a person: printed alone, without a stack. */
export class StartRefused extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
  }
}
