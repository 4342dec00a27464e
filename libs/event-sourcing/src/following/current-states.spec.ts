import { SystemClock } from '#libs/platform/src/clock';
import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { PinoLog } from '#libs/platform/src/pino.log';
import { FaultyLog } from '#libs/testing/src/faulty-log';
import { until } from '#libs/testing/src/until';
import type { Decider, Fact, Recorded } from '../deciding/decider.ts';
import { stateAfter } from '../deciding/records.ts';
import type { Repository } from '../deciding/repository.ts';
import { streamName } from '../log/naming.ts';
import { UpcastingEventStore } from '../log/upcasts.ts';
import { CurrentStates, type CurrentStatesOf } from './current-states.ts';
import { LogFollowing } from './memory-follower.ts';

/** Counts what was recorded of it. */
const lampDecider: Decider<number, Fact<'lamp.switched'>> = {
  category: 'lamp',
  foldVersion: 1,
  initial: 0,
  evolve: (state) => state + 1,
  sealed: { 'lamp.switched': null },
  toPublicEvent: () => null,
};

describe('current states', () => {
  let log: FaultyLog;
  let current: CurrentStates;
  let lamps: CurrentStatesOf<string>;
  let loaded: string[];
  /** What a load waits for after it has read the log. */
  let held: Promise<void>;

  const given = async (maxStates?: number): Promise<void> => {
    log = new FaultyLog();
    loaded = [];
    held = Promise.resolve();
    const events = new UpcastingEventStore(log, {});
    const repository: Pick<Repository, 'load'> = {
      load: async (decider, environment, key) => {
        loaded.push(key);
        const recorded = (await events.read('')).filter(({ stream }) => stream === streamName(decider.category, environment, key));
        await held;
        return stateAfter(decider as Decider<never, Fact>, recorded as readonly Recorded[]);
      },
    };
    current = new CurrentStates(
      repository,
      new LogFollowing(events, new SystemClock(), new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } })),
      maxStates,
    );
    lamps = current.of(lampDecider, (state) => `switched ${state} times`);
    await current.start();
  };
  afterEach(() => current.stop());

  const switched = (key: string, shape = 1) => log.record('lamp.switched', shape, streamName('lamp', SYSTEM_ENVIRONMENT, key));
  const now = async (key: string): Promise<string> => {
    await current.headReached(Date.now() + 5_000);
    return lamps.get(SYSTEM_ENVIRONMENT, key);
  };

  it('are read once, until something more is recorded of them', async () => {
    await given();
    switched('a');
    for (let time = 0; time < 3; time++) expect([await now('a'), await now('b')]).toEqual(['switched 1 times', 'switched 0 times']);
    switched('a');
    expect([await now('a'), await now('b')]).toEqual(['switched 2 times', 'switched 0 times']);
    expect(loaded).toEqual(['a', 'b', 'a']);
  });

  it('are read once for all who ask at once', async () => {
    await given();
    expect(await Promise.all([now('a'), now('a'), now('a')])).toEqual(Array(3).fill('switched 0 times'));
    expect(loaded).toEqual(['a']);
  });

  it('are no older than the question, although a reading began before what was recorded since', async () => {
    await given();
    let goOn = (): void => {};
    held = new Promise((resolve) => (goOn = resolve));
    const earlier = now('a');
    await until(() => loaded.length === 1);
    switched('a');
    held = Promise.resolve();
    expect(await now('a')).toBe('switched 1 times');
    goOn();
    await earlier;
    expect(await now('a')).toBe('switched 1 times');
  });

  it('are answered by nobody who does not know the end of the log', async () => {
    await given();
    await now('a');
    log.fail('away');
    await expect(now('a')).rejects.toMatchObject({ code: 'service_unavailable' });
    log.state = 'there';
    switched('a');
    expect(await now('a')).toBe('switched 1 times');
    log.fail('hanging');
    await expect(current.headReached(Date.now() + 50)).rejects.toMatchObject({ code: 'service_unavailable' });
    log.state = 'there';
  });

  it('that could not be read are tried again', async () => {
    await given();
    held = Promise.reject(new Error('The rows are away.'));
    await expect(now('a')).rejects.toThrow('The rows are away.');
    held = Promise.resolve();
    expect(await now('a')).toBe('switched 0 times');
  });

  it('of a later release are refused, and those alone', async () => {
    await given();
    await now('a');
    switched('a', 2);
    await expect(now('a')).rejects.toThrow(NeedsLaterRelease);
    switched('b');
    expect(await now('b')).toBe('switched 1 times');
  });

  it('are refused where something happened that only a later release knows: what was remembered says nothing of it', async () => {
    await given();
    for (const key of ['a', 'b']) expect(await now(key)).toBe('switched 0 times');
    log.record('lamp.dimmed', 1, streamName('lamp', SYSTEM_ENVIRONMENT, 'a'));
    await expect(now('a')).rejects.toThrow(NeedsLaterRelease);
    expect(await now('b')).toBe('switched 0 times');
    expect(loaded).toEqual(['a', 'b', 'a']);
  });

  it('are those of the log that there is, once it was restored to an earlier state', async () => {
    await given();
    switched('a');
    switched('a');
    expect(await now('a')).toBe('switched 2 times');
    log.restore(1);
    await expect(now('a')).rejects.toMatchObject({ code: 'service_unavailable' });
    await until(() =>
      now('a').then(
        (state) => state === 'switched 1 times',
        () => false,
      ),
    );
  });

  it('are not kept without end', async () => {
    await given(2);
    for (const key of ['a', 'b', 'c', 'c', 'b', 'a']) await now(key);
    expect(loaded).toEqual(['a', 'b', 'c', 'a']);
  });
});
