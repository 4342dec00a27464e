/** Beside the sentence: names and ids that narrow it down. Never a secret, never a whole resource. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Structured log lines: one sentence plus fields. An error goes into the field `error`. */
export abstract class Log {
  abstract debug(sentence: string, fields?: LogFields): void;
  abstract info(sentence: string, fields?: LogFields): void;
  abstract warn(sentence: string, fields?: LogFields): void;
  abstract error(sentence: string, fields?: LogFields): void;
}
