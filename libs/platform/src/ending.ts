import { sentenceOfError } from './logged-error.ts';
import { StartRefused } from './start-refused.ts';

/** Ends the process with one line that says why and what to do, never with a stack. */
export function endWith(error: unknown): never {
  if (error instanceof StartRefused) endWithSentence(error.message, error.exitCode);
  const message = error instanceof Error ? sentenceOfError(error) : String(error);
  endWithSentence(`This should not happen: ${message}. Please report it with this line and the lines of the log before it.`, 70);
}

export function endWithSentence(sentence: string, exitCode = 1): never {
  process.stderr.write(`gatehouse: ${sentence.replaceAll(/\s*\n\s*/g, ' ')}\n`);
  process.exit(exitCode);
}
