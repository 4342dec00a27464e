import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import { PinoLog } from '#libs/platform/src/pino.log';
import { FaultyLog } from '#libs/testing/src/faulty-log';
import { mayTake, until } from '#libs/testing/src/until';
import { UpcastingEventStore } from '../log/upcasts.ts';
import { START, type Position, type RecordedEvent } from '../log/event-store.ts';
import { LogFollowing, type MemoryFollower } from './memory-follower.ts';

describe('a follower of the log', () => {
  let events: FaultyLog;
  let follower: MemoryFollower;
  let seen: Position[];
  let begun: boolean[];
  const log = new PinoLog({ level: 'silent', readable: false, destination: { write: () => {} } });

  beforeEach(() => {
    events = new FaultyLog();
    seen = [];
    begun = [];
    const followed = {
      name: 'specs',
      types: null,
      begin: async (isAgain: boolean) => {
        begun.push(isAgain);
        return isAgain ? START : events.head();
      },
      handle: (batch: readonly RecordedEvent[]) => void seen.push(...batch.map(({ position }) => position)),
    };
    follower = new LogFollowing(events, new SystemClock(), log).remember(followed);
  });
  afterEach(() => follower.stop());

  const soon = (): number => Date.now() + 5_000;

  it('goes on where a lost connection broke off', async () => {
    await follower.start();
    const first = events.record();
    await follower.reached(first, soon());
    events.fail('away');
    const missed = events.record();
    await pause(300);
    const heard = follower.heardAt;
    events.state = 'there';
    const backAt = Date.now();
    await follower.reached(missed, soon());
    expect(Date.now() - backAt).toBeLessThan(mayTake(1_000));
    expect(seen).toEqual([first, missed]);
    await until(() => follower.heardAt > heard);
  });

  it('has come to the end of a log that its process has read, as soon as it goes along: whoever waits need not wait for another event', async () => {
    const following = new LogFollowing(events, new SystemClock(), log);
    const another = (name: string, types: readonly string[] | null) => following.remember({ name, types, begin: async () => START, handle: () => {} });
    const position = events.record();
    const [first, second] = [another('first', null), another('second', ['nothing of it'])];
    try {
      await first.start();
      await first.reached(position, soon());
      const reached = second.reached(position, soon());
      await Promise.all([second.start(), reached]);
    } finally {
      await Promise.all([first.stop(), second.stop()]);
    }
  });

  it('begins as soon as the log is there', async () => {
    events.fail('away');
    const started = follower.start();
    await pause(300);
    expect(begun).toEqual([]);
    expect(follower.heardAt).toBe(0);
    events.state = 'there';
    await started;
    expect(follower.heardAt).toBeGreaterThan(0);
  });

  it('hears of nothing while the log hangs', async () => {
    await follower.start();
    events.fail('hanging');
    await pause(1_500);
    const heard = follower.heardAt;
    await pause(1_500);
    expect(follower.heardAt).toBe(heard);
    await expect(follower.reached(events.record(), Date.now() + 100)).rejects.toMatchObject({ code: 'service_unavailable' });
    events.state = 'there';
  });

  it('makes a subscription anew that hangs without an error', async () => {
    events.isDeaf = true;
    await follower.start();
    const missed = events.record();
    events.isDeaf = false;
    const heard = follower.heardAt;
    await until(() => seen.length > 0);
    expect(seen).toEqual([missed]);
    await until(() => follower.heardAt > heard);
  }, 20_000);

  it('begins again where the log was restored to an earlier state', async () => {
    const kept = events.record();
    await follower.start();
    const lost = events.record();
    await follower.reached(lost, soon());
    events.restore(1);
    await until(() => begun.length === 2);
    const other = events.record();
    await until(() => seen.at(-1) === other && seen.length === 3);
    expect([begun, seen]).toEqual([
      [false, true],
      [lost, kept, other],
    ]);
  });

  it('begins again where the log went on after that, and does not have its position any more', async () => {
    const kept = events.record();
    await follower.start();
    const lost = events.record();
    await follower.reached(lost, soon());
    events.foreign.add(lost);
    events.restore(1);
    const others = [events.record('other'), events.record('other')];
    events.fail('away');
    events.state = 'there';
    await until(() => seen.length === 4);
    expect([begun, seen]).toEqual([
      [false, true],
      [lost, kept, ...others],
    ]);
  });

  it('knows no end of a log that was put back while its connection was lost', async () => {
    const following = new LogFollowing(events, new SystemClock(), log);
    const remembering = following.remember({ name: 'remembering', types: null, begin: () => events.head(), handle: () => {} });
    try {
      events.record();
      await remembering.start();
      await remembering.reached(events.record(), soon());
      await remembering.headReached(soon());
      events.fail('away');
      await until(() => following.reader.end === START);
      events.restore(1);
      events.state = 'there';
      await expect(remembering.headReached(soon())).rejects.toMatchObject({ code: 'service_unavailable' });
    } finally {
      await remembering.stop();
    }
  });

  it('keeps nobody waiting once it is stopped', async () => {
    await follower.start();
    events.fail('hanging');
    const reached = expect(follower.reached(events.record(), Date.now() + 3_600_000)).rejects.toMatchObject({ code: 'service_unavailable' });
    await follower.stop();
    await reached;
  });

  it('waits for no position of another log', async () => {
    events.record();
    await follower.start();
    await follower.reached('9'.repeat(16), soon());
  });

  it('refuses at once what it would have to read of a later release, and has read all before that', async () => {
    const reading = new LogFollowing(new UpcastingEventStore(events, { upcasts: {} }), new SystemClock(), log).remember({
      name: 'specs',
      types: null,
      begin: async () => START,
      handle: (batch) => {
        for (const { data, position } of batch) if (data !== null) seen.push(position);
      },
    });
    const [first, second] = [events.record(), events.record()];
    const third = events.record('happened', 2);
    const fourth = events.record();
    await reading.start();
    await reading.reached(second, soon());
    for (const position of [third, fourth]) await expect(reading.reached(position, soon())).rejects.toThrow(NeedsLaterRelease);
    await reading.reached(first, soon());
    await pause(1_000);
    expect(seen).toEqual([first, second]);
    await reading.stop();
  });
});
