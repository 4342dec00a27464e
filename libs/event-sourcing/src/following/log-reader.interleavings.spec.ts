import { setImmediate as turn } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { seededNumbers, seedOf } from '#libs/testing/src/seed';
import { type Appended, EventStore, type LooksInto, type Position, PositionOfAnotherLog, type RecordedEvent, START } from '../log/event-store.ts';
import { UnopenedRecord } from '../log/lazy-record.ts';
import { type Followed, Follower } from './follower.ts';
import { LogReader } from './log-reader.ts';

/**
 * Followers of different types come, go, are slow, fail, and begin again from what they have handled, while subscriptions deliver in batches of any size, break off, and the
 * log is put back to an earlier state; each of these by chance, and whatever waits goes on in an order by chance.
 */

const TYPES = ['a', 'b', 'c', 'd'];
const RECORDS = 300;

const positionOf = (number: number): Position => (number === 0 ? START : String(number).padStart(6, '0'));

/** Everything that waits waits here until chance lets it go on. */
class Chance {
  private readonly waiting: (() => void)[] = [];

  constructor(readonly next: (below: number) => number) {}

  wait(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Lets one of those go on that wait. */
  async step(): Promise<void> {
    const [chosen] = this.waiting.splice(this.next(this.waiting.length), 1);
    chosen?.();
    await turn();
  }
}

class ChanceLog extends EventStore {
  records: RecordedEvent[] = [];
  broken = new AbortController();
  subscriptions = 0;
  /** Counts up whenever the log is put back: what was recorded since is another log's. */
  history = 0;

  constructor(private readonly chance: Chance) {
    super();
  }

  record(): void {
    const number = this.records.length + 1;
    const meta = { environment: 'e', actor: { id: 'a', source: 'system', name: null }, requestId: 'r', commandId: 'c', at: number } as const;
    const type = TYPES[this.chance.next(TYPES.length)]!;
    const id = `${this.history}.${number}`;
    this.records.push({ id, type, shape: 1, data: {}, subject: null, public: [], meta, stream: 's', version: 1, position: positionOf(number) });
  }

  putBack(count: number): void {
    this.history += 1;
    this.records = this.records.slice(0, count);
    this.breakOff();
  }

  breakOff(): void {
    this.broken.abort();
    this.broken = new AbortController();
  }

  async head(): Promise<Position> {
    await this.chance.wait();
    return positionOf(this.records.length);
  }

  async *subscribe(after: Position, signal: AbortSignal, looksInto: LooksInto): AsyncIterable<readonly RecordedEvent[]> {
    this.subscriptions += 1;
    const { signal: broken } = this.broken;
    for (let at = Number(after); !signal.aborted;) {
      await this.chance.wait();
      if (broken.aborted) throw new Error('The connection is lost.');
      if (at > this.records.length) throw new PositionOfAnotherLog(positionOf(at));
      const batch = this.records.slice(at, at + 1 + this.chance.next(12));
      at += batch.length;
      if (batch.length === 0) continue;
      const isLookedInto = batch.map(looksInto);
      // While keys are asked for.
      await this.chance.wait();
      yield batch.map((record, index) => (isLookedInto[index] ? record : new UnopenedRecord(record)));
    }
  }

  readonly read = (): Promise<readonly RecordedEvent[]> => Promise.reject(new Error('Nobody reads here.'));
  readonly readBackwards = this.read;
  readonly last = (): Promise<RecordedEvent | null> => Promise.resolve(null);
  readonly append = (): Promise<Appended> => Promise.reject(new Error('Nobody appends here.'));
}

/** Keeps what it handled beside where it is, as a stored checkpoint does. */
class Recorder {
  handled: RecordedEvent[] = [];
  position: Position;
  isFailing = false;
  /** It was handed nothing that it cannot look into. */
  isServed = true;
  readonly ending = new AbortController();
  private readonly follower: Follower;

  constructor(
    readonly types: readonly string[] | null,
    reader: LogReader,
    private readonly log: ChanceLog,
    private readonly chance: Chance,
  ) {
    this.position = positionOf(chance.next(log.records.length + 1));
    this.handled = this.expected(this.position);
    const handle: Followed['handle'] = async (events, upTo) => {
      // Slow ones wait more often.
      for (let waits = chance.next(3); waits > 0; waits--) await chance.wait();
      this.isServed &&= !events.some((event) => event instanceof UnopenedRecord);
      if (this.isFailing) throw new Error('It cannot be handled.');
      this.handled.push(...events);
      this.position = upTo.position;
    };
    this.follower = new Follower({ types, handle, ...(chance.next(2) === 0 && { pace: 'prompt' as const }) }, reader);
  }

  async run(): Promise<void> {
    const { signal } = this.ending;
    while (!signal.aborted) {
      // The log was put back: what it has seen of it goes too, as where a view is filled anew.
      if (this.position > positionOf(this.log.records.length) || this.handled.some((one) => one !== this.log.records[Number(one.position) - 1])) {
        this.position = START;
        this.handled = [];
      }
      this.follower.begin(this.position);
      await this.follower.follow(signal).catch(() => {});
      const { position } = this.follower;
      // What is not for it is behind it too.
      if (!signal.aborted && position !== null && position > this.position && !this.isFailing) this.position = position;
      await this.chance.wait();
    }
  }

  get reached(): Position {
    return this.follower.position ?? START;
  }

  hurry(): void {
    this.follower.hurry(positionOf(this.log.records.length));
  }

  expected(upTo: Position): RecordedEvent[] {
    return this.log.records.filter(({ type, position }) => (this.types === null || this.types.includes(type)) && position <= upTo);
  }
}

describe('those who follow the log through one reader', () => {
  const numbers = seededNumbers(seedOf('log reader'));

  it.each(Array.from({ length: 40 }, (_, round) => round))('see each event that is for them once, and in order, whatever comes between (%i)', async (round) => {
    const chance = new Chance(numbers);
    const log = new ChanceLog(chance);
    const mayBePutBack = round % 4 === 3;
    for (let before = chance.next(60); before > 0; before--) log.record();
    // Little is kept, so that who is slow falls out of it.
    const reader = new LogReader(log, new SystemClock(), { most: 12, mostBytes: Infinity, meeting: 3 });
    const recorders: Recorder[] = [];
    const running: Promise<void>[] = [];
    const come = (): void => {
      const types = chance.next(4) === 0 ? null : TYPES.filter(() => chance.next(2) === 0);
      const recorder = new Recorder(types, reader, log, chance);
      recorders.push(recorder);
      running.push(recorder.run());
    };
    for (let count = 0; count < 4; count++) come();
    while (log.records.length < RECORDS) {
      const what = chance.next(100);
      if (what < 30) log.record();
      else if (what === 30) log.breakOff();
      else if (what === 31 && mayBePutBack) log.putBack(chance.next(log.records.length));
      else if (what === 32 && recorders.length < 12) come();
      else if (what === 33) recorders[chance.next(recorders.length)]!.ending.abort();
      else if (what === 34) recorders[chance.next(recorders.length)]!.isFailing = true;
      else if (what === 35) for (const recorder of recorders) recorder.isFailing = false;
      else if (what === 36) recorders[chance.next(recorders.length)]!.hurry();
      else await chance.step();
    }
    for (const recorder of recorders) recorder.isFailing = false;
    const staying = recorders.filter(({ ending }) => !ending.signal.aborted);
    const end = positionOf(RECORDS);
    for (let steps = 0; steps < 20_000 && !staying.every(({ reached }) => reached >= end); steps++) {
      for (const recorder of staying) recorder.hurry();
      await chance.step();
    }
    for (const recorder of recorders) expect(recorder.isServed).toBe(true);
    for (const recorder of staying) {
      expect(recorder.reached).toBe(end);
      expect(recorder.handled.map(({ id }) => id)).toEqual(recorder.expected(end).map(({ id }) => id));
    }
    // They have met.
    const before = log.subscriptions;
    for (const { ending } of recorders) ending.abort();
    for (let steps = 0; steps < 2_000; steps++) await chance.step();
    await Promise.all(running);
    expect(log.subscriptions - before).toBeLessThanOrEqual(staying.length);
  });
});
