import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '#libs/testing/src/until';
import { START, type Position } from '../log/event-store.ts';
import { StoredPosition } from './stored-position.ts';

describe('a stored position', () => {
  let stored: Position;
  let readings: number;
  let underWay: number;
  let mostAtOnce: number;
  let failure: Error | null;
  let position: StoredPosition;
  beforeEach(() => {
    [stored, readings, underWay, mostAtOnce, failure] = [START, 0, 0, 0, null];
    position = new StoredPosition(async () => {
      readings += 1;
      underWay += 1;
      mostAtOnce = Math.max(mostAtOnce, underWay);
      await pause(2);
      underWay -= 1;
      if (failure !== null) throw failure;
      return stored;
    });
  });

  /** Who waits, in the order in which they are told. */
  const waiters = (positions: readonly Position[], signal: AbortSignal): { readonly told: Position[]; readonly all: Promise<unknown> } => {
    const told: Position[] = [];
    return { told, all: Promise.all(positions.map((each) => position.reached(each, signal).then(() => told.push(each)))) };
  };

  it('is read once for all who wait, and tells each who has waited long enough', async () => {
    const { signal } = new AbortController();
    const early = waiters(
      Array.from({ length: 8 }, () => '1'),
      signal,
    );
    const late = waiters(['2', '3'], signal);
    await until(() => readings > 2);
    expect([early.told, late.told]).toEqual([[], []]);
    stored = '2';
    await early.all;
    await until(() => late.told.length === 1);
    expect(late.told).toEqual(['2']);
    stored = '3';
    await late.all;
    expect(mostAtOnce).toBe(1);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('is read by nobody when nobody waits, and again for who comes then', async () => {
    const waiting = new AbortController();
    const given = waiters(['1', '1'], waiting.signal);
    await until(() => readings > 0);
    waiting.abort();
    await given.all;
    await position.reached('1', waiting.signal);
    await pause(50);
    const before = readings;
    await pause(50);
    expect(readings).toBe(before);
    stored = '1';
    await position.reached('1', new AbortController().signal);
    expect(readings).toBe(before + 1);
  });

  it('is waited for while it cannot be read', async () => {
    failure = new Error('away');
    const { told, all } = waiters(['1'], new AbortController().signal);
    await until(() => readings > 2);
    stored = '1';
    expect(told).toEqual([]);
    failure = null;
    await all;
  });
});
