import { EventStore, type Position, type RecordedEvent } from '../log/event-store.ts';
import { LazyRecord } from '../log/lazy-record.ts';
import { Cursor } from './cursor.ts';
import { Reading } from './reading.ts';

const { jest } = import.meta;

/** Gives out what it is told to. */
class GivenBatches extends EventStore {
  private wake = (): void => {};
  private batches: RecordedEvent[][] = [];

  give(...positions: Position[]): void {
    this.giveOf('', ...positions);
  }

  giveOf(text: string, ...positions: Position[]): void {
    const meta = { environment: 'system', actor: { id: 'a', source: 'system', name: null }, requestId: 'r', commandId: 'c', at: 1 } as const;
    const records = positions.map(
      (position) =>
        new LazyRecord(
          { id: position, type: 't', shape: 1, public: [], meta, stream: 's', version: 1, position },
          { data: JSON.stringify(text), subject: 'null' },
        ),
    );
    this.batches.push(records);
    this.wake();
  }

  async *subscribe(_after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> {
    while (!signal.aborted) {
      const batch = this.batches.shift();
      if (batch !== undefined) yield batch;
      else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  readonly read = (): never => unasked();
  readonly readBackwards = (): never => unasked();
  readonly last = (): never => unasked();
  readonly append = (): never => unasked();
  readonly head = (): never => unasked();
}

function unasked(): never {
  throw new Error('Nobody asks for that here.');
}

describe('a reading of the log', () => {
  let events: GivenBatches;
  let reading: Reading;
  beforeEach(() => {
    jest.useFakeTimers();
    events = new GivenBatches();
    reading = new Reading('5', {
      events,
      onMoved: () => {},
      onEnded: () => {},
      onRead: (one) => (one.isLive ? null : one.allHandled()),
      kept: { most: 8, mostBytes: 100, meeting: 4 },
    });
  });
  afterEach(() => void jest.useRealTimers());

  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };

  it('hangs when the log goes on without it for five seconds', async () => {
    reading.isLive = true;
    reading.join(new Cursor(new Set(['other']), '5'));
    void reading.read();
    jest.advanceTimersByTime(60_000);
    // The log was quiet.
    expect([reading.isStuck('5'), reading.isStuck('6')]).toEqual([false, false]);
    jest.advanceTimersByTime(5_001);
    expect(reading.isStuck('6')).toBe(true);
    events.give('6');
    await turns();
    expect([reading.end, reading.isStuck('7')]).toEqual(['6', false]);
  });

  it('does not hang while it waits for who still handles what it read', async () => {
    const slow = new Cursor(null, '5');
    reading.join(slow);
    void reading.read();
    events.give('6');
    const taken = await slow.take(new AbortController().signal);
    jest.advanceTimersByTime(60_000);
    expect(reading.isStuck('9')).toBe(false);
    slow.done(taken!.upTo);
    await turns();
    jest.advanceTimersByTime(5_001);
    expect(reading.isStuck('9')).toBe(true);
  });

  it('that is live waits for nobody', async () => {
    reading.isLive = true;
    const slow = new Cursor(null, '5', { pace: 'prompt' });
    reading.join(slow);
    void reading.read();
    events.give('6');
    expect((await slow.take(new AbortController().signal))?.records).toHaveLength(1);
    events.give('7', '8');
    await turns();
    expect([reading.end, slow.position]).toEqual(['8', '5']);
    slow.done({ position: '6', record: null });
    expect((await slow.take(new AbortController().signal))?.upTo.position).toBe('8');
  });

  it('has what a record says at hand for as long as anybody who goes along handles it, and makes it again for who comes later', async () => {
    reading.isLive = true;
    const { signal } = new AbortController();
    const [quick, slow] = [new Cursor(null, '5', { pace: 'prompt' }), new Cursor(null, '5', { pace: 'prompt' })];
    for (const cursor of [quick, slow]) reading.join(cursor);
    void reading.read();
    events.give('6');
    const [record] = (await quick.take(signal))!.records as [LazyRecord];
    const made = jest.spyOn(record, 'letGo');
    const next = async (position: Position): Promise<void> => {
      events.give(position);
      await turns();
    };
    quick.done({ position: '6', record: null });
    await next('7');
    const taken = await slow.take(signal);
    expect(taken?.records[0]).toBe(record);
    await next('8');
    expect(made).not.toHaveBeenCalled();
    slow.done(taken!.upTo);
    await next('9');
    expect(made).toHaveBeenCalledTimes(1);
    const late = new Cursor(null, '5', { pace: 'prompt' });
    reading.join(late);
    expect((await late.take(signal))?.records.map(({ data }) => data)).toEqual(['', '', '', '']);
  });

  it('keeps no more for who is slow than so many bytes, and for who is waited for, everything', async () => {
    for (const isLive of [true, false]) {
      const [given, slow] = [new GivenBatches(), new Cursor(null, '5', { pace: 'prompt' })];
      const one = new Reading('5', {
        events: given,
        onMoved: () => {},
        onEnded: () => {},
        onRead: (each) => (each.isLive ? null : each.allHandled()),
        kept: { most: 8, mostBytes: 100, meeting: 4 },
      });
      one.isLive = isLive;
      one.join(slow);
      void one.read();
      given.giveOf('x'.repeat(60), '6', '7', '8');
      await turns();
      expect([isLive, one.keeps('5'), one.keeps('7')]).toEqual([isLive, !isLive, true]);
      const taken = await slow.take(new AbortController().signal);
      expect([isLive, taken?.records.length]).toEqual([isLive, isLive ? undefined : 3]);
    }
  });

  it('takes what is not for a follower for seen, and never back when something is', async () => {
    reading.isLive = true;
    const cursor = new Cursor(null, '5', { isFor: ({ position }) => position === '8', pace: 'prompt' });
    reading.join(cursor);
    void reading.read();
    events.give('6', '7');
    await turns();
    expect(cursor.position).toBe('7');
    events.give('8');
    await turns();
    expect(cursor.position).toBe('7');
    const taken = await cursor.take(new AbortController().signal);
    expect([taken?.records.map(({ position }) => position), taken?.upTo.position, cursor.position]).toEqual([['8'], '8', '7']);
    cursor.done(taken!.upTo);
    expect(cursor.position).toBe('8');
  });
});
