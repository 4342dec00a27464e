import { setImmediate as turn } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { EventStore, type Position, type RecordedEvent, START } from '../log/event-store.ts';
import { Follower } from './follower.ts';
import { LogReader } from './log-reader.ts';

const { jest } = import.meta;

const RECORDS = 3_000;
const BATCH = 500;
const FOLLOWERS = 20;

const positionOf = (number: number): Position => String(number).padStart(6, '0');

/** Counts what it hands on. */
class CountedLog extends EventStore {
  handedOn = 0;
  private readonly records: readonly RecordedEvent[] = Array.from({ length: RECORDS }, (_, index) => ({
    id: `${index}`,
    type: index % 2 === 0 ? 'even' : 'odd',
    shape: 1,
    data: {},
    subject: null,
    public: [],
    meta: { environment: 'e', actor: { id: 'a', source: 'system', name: null }, requestId: 'r', commandId: 'c', at: 1 },
    stream: 's',
    version: 1,
    position: positionOf(index + 1),
  }));

  async head(): Promise<Position> {
    return positionOf(RECORDS);
  }

  async *subscribe(after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> {
    for (let at = Number(after); at < RECORDS && !signal.aborted; at += BATCH) {
      const batch = this.records.slice(at, at + BATCH);
      this.handedOn += batch.length;
      yield batch;
    }
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  }

  readonly read = (): never => unasked();
  readonly readBackwards = (): never => unasked();
  readonly last = (): never => unasked();
  readonly append = (): never => unasked();
}

function unasked(): never {
  throw new Error('Nobody asks for that here.');
}

describe('those who come to a log that is there already', () => {
  let log: CountedLog;
  let reader: LogReader;
  let ending: AbortController;
  let running: Promise<void>[];
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate'] });
    [log, ending, running] = [new CountedLog(), new AbortController(), []];
    reader = new LogReader(log, new SystemClock());
  });
  afterEach(async () => {
    ending.abort();
    jest.useRealTimers();
    await Promise.all(running);
  });

  /** Answers how many it has handled. */
  function come(type: string, handle: () => Promise<void> = async () => {}, from: Position = START): () => number {
    let count = 0;
    const follower = new Follower(
      {
        types: [type],
        pace: 'prompt',
        handle: async (events) => {
          await handle();
          count += events.length;
        },
      },
      reader,
    );
    follower.begin(from);
    running.push(follower.follow(ending.signal));
    return () => count;
  }

  const turns = async (count: number): Promise<void> => {
    for (; count > 0; count--) await turn();
  };

  it('one after the other have it read once', async () => {
    const counts: (() => number)[] = [];
    for (let number = 0; number < FOLLOWERS; number++) {
      counts.push(come(number % 2 === 0 ? 'even' : 'odd', () => turns(2)));
      await turn();
    }
    await turns(100);
    expect(counts.map((count) => count())).toEqual(counts.map(() => RECORDS / 2));
    expect(log.handedOn).toBe(RECORDS);
  });

  it('at two places go together from where the one that was behind meets the other', async () => {
    const ahead = come('even', () => turns(20), positionOf(1_000));
    await turns(4);
    const behind = come('even', () => turns(10));
    await turns(400);
    expect([ahead(), behind()]).toEqual([1_000, 1_500]);
    expect(log.handedOn).toBeLessThanOrEqual(2_000 + 1_000 + BATCH);
  });

  it('are not held up by one that takes long, which loses nothing', async () => {
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const slow = come('even', () => held);
    const quick = [come('even'), come('odd')];
    await turns(20);
    expect(quick.map((count) => count())).toEqual([BATCH / 2, BATCH / 2]);
    jest.advanceTimersByTime(2_000);
    await turns(100);
    expect(quick.map((count) => count())).toEqual([RECORDS / 2, RECORDS / 2]);
    letGo();
    await turns(100);
    expect(slow()).toBe(RECORDS / 2);
  });
});
