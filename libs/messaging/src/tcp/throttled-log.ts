import type { Log } from '#libs/platform/src/log';

const PAUSE = 60_000;

/** Says what somebody else does wrong once a minute at most: whoever knocks a thousand times a second shall not fill the disk. */
export class ThrottledLog {
  private readonly said = new Map<string, { readonly at: number; more: number }>();

  constructor(private readonly log: Log) {}

  warn(sentence: string, fields: Readonly<Record<string, unknown>>): void {
    const now = performance.now();
    const before = this.said.get(sentence);
    if (before !== undefined && now - before.at < PAUSE) {
      before.more++;
      return;
    }
    this.said.set(sentence, { at: now, more: 0 });
    this.log.warn(sentence, { ...fields, ...(before !== undefined && before.more > 0 && { moreOfTheseBefore: before.more }) });
  }
}
