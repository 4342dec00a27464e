/** Why the process cannot start, and the way out, in one sentence for a person: printed alone, without a stack. */
export class StartRefused extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
  }
}

/** The sentences of those checks that refuse the start. */
export async function refusalsOf(checks: readonly (() => unknown)[]): Promise<readonly string[]> {
  const refusals: string[] = [];
  for (const check of checks)
    try {
      await check();
    } catch (error) {
      if (!(error instanceof StartRefused)) throw error;
      refusals.push(error.message);
    }
  return refusals;
}
