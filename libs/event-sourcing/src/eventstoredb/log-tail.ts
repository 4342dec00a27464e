import { setTimeout as pause } from 'node:timers/promises';
import { Signal } from '#libs/platform/src/signal';
import type { Position, RecordedEvent } from '../log/event-store.ts';
import { BATCH, BATCH_BYTES, GATHER_MS, type Arrived } from './log-subscription.ts';

/** What is kept for those who follow, at most. */
const KEPT = 4_096;
const KEPT_BYTES = 2 * BATCH_BYTES;
/** Whoever is no more events behind may join. Further back, what comes next would soon not be kept any more. */
const NEAR = KEPT / 2;

/** The end of `$all`, received and parsed once for all subscribers of a process that are close to it. Who is slow holds nobody up, and falls out of what is kept. */
export class LogTail {
  private readonly kept: Arrived[] = [];
  private bytes = 0;
  private failure: Error | null = null;
  private readonly ending = new AbortController();
  private readonly arrivals = new Signal();

  /** Keeps what was recorded after `from`. */
  constructor(
    private from: Position,
    receive: (after: Position, signal: AbortSignal) => AsyncIterable<readonly Arrived[]>,
  ) {
    void this.keep(receive(from, this.ending.signal));
  }

  /** Up to here the log has been received. */
  get end(): Position {
    return this.kept.at(-1)?.record.position ?? this.from;
  }

  get hasEnded(): boolean {
    return this.failure !== null;
  }

  /** Whether a subscriber may go on here who has seen the log up to `at`. `head` was read since it came: a tail that hangs does not get there. */
  serves(at: Position, head: Position): boolean {
    return !this.hasEnded && this.end >= head && at >= this.from && this.kept.length - this.placeAfter(at) <= NEAR;
  }

  /** What comes after `at`, until it is not kept any more; answers up to where that was. @throws what has ended the tail, after the last of its events */
  async *follow(at: Position, signal: AbortSignal, pace?: 'prompt'): AsyncGenerator<readonly RecordedEvent[], Position> {
    while (!signal.aborted && at >= this.from) {
      const records = this.recordsAfter(at);
      if (records.length > 0) {
        yield records;
        at = records.at(-1)!.position;
      } else if (this.failure !== null) throw this.failure;
      else {
        await this.arrivals.next(signal);
        if (pace !== 'prompt') await pause(GATHER_MS);
      }
    }
    return at;
  }

  /** Ends it for all who follow. */
  fail(error: Error): void {
    this.failure ??= error;
    this.ending.abort();
    this.arrivals.notify();
  }

  private async keep(arriving: AsyncIterable<readonly Arrived[]>): Promise<void> {
    try {
      for await (const arrived of arriving) this.take(arrived);
    } catch (error) {
      this.fail(error as Error);
    }
  }

  private take(arrived: readonly Arrived[]): void {
    if (this.hasEnded || arrived.length === 0) return;
    for (const each of arrived) {
      this.kept.push(each);
      this.bytes += each.bytes;
    }
    let dropped = 0;
    while (this.kept.length - dropped > KEPT || this.bytes > KEPT_BYTES) this.bytes -= this.kept[dropped++]!.bytes;
    if (dropped > 0) this.from = this.kept.splice(0, dropped).at(-1)!.record.position;
    this.arrivals.notify();
  }

  private recordsAfter(at: Position): readonly RecordedEvent[] {
    const records: RecordedEvent[] = [];
    let bytes = 0;
    for (let place = this.placeAfter(at); place < this.kept.length && records.length < BATCH && bytes < BATCH_BYTES; place++) {
      records.push(this.kept[place]!.record);
      bytes += this.kept[place]!.bytes;
    }
    return records;
  }

  /** Where the first event after `at` is kept. */
  private placeAfter(at: Position): number {
    let [low, high] = [0, this.kept.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.kept[middle]!.record.position > at) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
