import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SystemClock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { StartRefused } from '#libs/platform/src/start-refused';
import { keysIn, LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Leases } from '#libs/read-models/src/leases';
import type { ReadModels } from '#libs/read-models/src/read-models';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import type { ShortLived } from '#libs/read-models/src/short-lived';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { Killable } from '#libs/testing/src/killable';
import { recordsAfter } from '#libs/testing/src/records-after';
import { until } from '#libs/testing/src/until';
import { FollowerStates } from '../following/follower-states.ts';
import { JointWrites } from '../following/joint-writes.ts';
import { LeasedFollowers } from '../following/leased-followers.ts';
import { LogFollowing } from '../following/memory-follower.ts';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { type Appended, EventStore, type NewEvent, type Position, type RecordedEvent, START } from '../log/event-store.ts';
import { ERASURE_FINISHED } from '../log/protocol.ts';
import type { KeyStore } from '../sealing/key-store.ts';
import { LmdbKeyStore } from '../sealing/lmdb.key-store.ts';
import { followErasures } from './eraser.ts';
import { ERASED } from './erasing.ts';

const clock = new SystemClock();
/** When keys were destroyed. */
const destroyedAt: number[] = [];
const destination = { write: (line: string) => void (line.includes('are destroyed') && destroyedAt.push(clock.now())) };
const log = new PinoLog({ level: 'info', readable: false, destination });
const ENVIRONMENT = 'environment_01HZZZZZZZZZZZZZZZZZZZZZZZ';
/** A log that is put back under whoever follows it. */
class ChangedLog extends EventStore {
  constructor(public log: EventStore) {
    super();
  }

  read(stream: string, from?: number): Promise<readonly RecordedEvent[]> {
    return this.log.read(stream, from);
  }

  readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]> {
    return this.log.readBackwards(stream, count, from);
  }

  last(stream: string): Promise<RecordedEvent | null> {
    return this.log.last(stream);
  }

  append(stream: string, expectedVersion: number, records: readonly NewEvent[]): Promise<Appended> {
    return this.log.append(stream, expectedVersion, records);
  }

  head(): Promise<Position> {
    return this.log.head();
  }

  subscribe(after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> {
    return this.log.subscribe(after, signal);
  }
}

const keyOf = (user: string) => `person.user-${ENVIRONMENT}-${user}` as const;

describe('an erasure', () => {
  let root: string;
  let storage: LmdbStorage;
  let events: EventStore;
  let keys: LmdbKeyStore;
  let running: Lifecycle[];

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'eraser-'));
    running = [];
    await open();
  });
  afterEach(async () => {
    await close();
    await rm(root, { recursive: true });
  });

  const directory = (): string => join(root, 'data');

  async function open(): Promise<void> {
    storage = await LmdbStorage.open({ directory: directory() });
    events = new LmdbEventStore(storage);
    keys = await LmdbKeyStore.open(storage.keys, []);
  }

  async function close(): Promise<void> {
    for (const lifecycle of running.splice(0)) await lifecycle.stop();
    await storage.close();
  }

  /** What a process works on; where nothing else is said, that of the test. */
  interface Engines {
    readonly storage: LmdbStorage;
    readonly events: EventStore;
    readonly keys: KeyStore;
    readonly readModels?: ReadModels;
    readonly shortLived?: ShortLived;
  }

  /** Another process; where nothing else is said, keys are forgotten everywhere at once. */
  async function start(forgottenAfter = 0, engines: Engines = { storage, events, keys }): Promise<Lifecycle & Pick<LeasedFollowers, 'resume' | 'status'>> {
    const lifecycle = new Lifecycle();
    const metrics = new Metrics();
    const { events: read, readModels = new LmdbReadModels(engines.storage), shortLived = new LmdbShortLived(engines.storage, clock) } = engines;
    const followers = new LeasedFollowers({
      following: new LogFollowing(read, clock, log),
      writes: new JointWrites(readModels),
      leases: new Leases(shortLived, newUlid(clock.now()), log, metrics),
      states: new FollowerStates(readModels, clock),
      lifecycle,
      metrics,
    });
    await followErasures(followers, { events: read, keys: engines.keys, readModels, clock, log, forgottenAfter });
    await lifecycle.start();
    running.push(lifecycle);
    return Object.assign(lifecycle, { resume: () => followers.resume(), status: () => followers.status() });
  }

  async function erase(...users: readonly string[]): Promise<Position> {
    return eraseIn(events, ...users);
  }

  async function eraseIn(read: EventStore, ...users: readonly string[]): Promise<Position> {
    const id = newUlid(clock.now());
    const meta = { environment: ENVIRONMENT, actor: { id: 'test', source: 'system', name: null }, requestId: id, commandId: id, at: clock.now() } as const;
    const data = { holders: users.map((user) => `user.${user}`) };
    return (await read.append(`user-${ENVIRONMENT}-${users[0]}`, 0, [{ id, type: ERASED, shape: 1, data, subject: null, public: [], meta }])).position;
  }

  function plain(subject: string): NewEvent {
    const id = newUlid(clock.now());
    const meta = { environment: ENVIRONMENT, actor: { id: 'test', source: 'system', name: null }, requestId: id, commandId: id, at: clock.now() } as const;
    return { id, type: 'note.taken', shape: 1, data: { subject }, subject: null, public: [], meta };
  }

  async function finished(read: EventStore = events): Promise<readonly RecordedEvent[]> {
    return (await recordsAfter(read, START)).filter(({ type }) => type === ERASURE_FINISHED);
  }

  it('destroys the keys of all holders, and says once when nobody has them any more', async () => {
    for (const user of ['user_1', 'user_2', 'user_3']) await keys.obtain(keyOf(user));
    const position = await erase('user_1', 'user_2');
    await start();
    await start();
    await until(async () => (await finished()).length > 0);
    expect([await keys.find(keyOf('user_1')), await keys.find(keyOf('user_2'))]).toEqual(['erased', 'erased']);
    expect(await keys.find(keyOf('user_3'))).not.toBe('erased');
    expect(await keys.erasedUpTo()).toBe(position);
    await Promise.all(running.map((lifecycle) => lifecycle.stop()));
    running = [];
    // Where its checkpoint was lost, it begins again, and finds that it was said.
    await new LmdbReadModels(storage).table({ name: 'erasures-finished', indexes: [], rebuildable: false }).clear();
    await start();
    const next = await erase('user_3');
    await until(async () => (await finished()).length > 1);
    const said = await finished();
    expect(said.map(({ stream, version, data }) => [stream.startsWith(`erasure-${ENVIRONMENT}-`), version, data])).toEqual([
      [true, 1, { holders: ['user.user_1', 'user.user_2'] }],
      [true, 1, { holders: ['user.user_3'] }],
    ]);
    expect(said.every((record) => record.position > position && (record === said[0] || record.position > next))).toBe(true);
  });

  it('goes on where a process ended before anything was said, and says nothing before the keys are forgotten', async () => {
    await keys.obtain(keyOf('user_1'));
    await start(3_600_000);
    await erase('user_1');
    await until(async () => (await keys.find(keyOf('user_1'))) === 'erased');
    await close();
    await open();
    expect(await finished()).toEqual([]);
    await start();
    await until(async () => (await finished()).length === 1);
  });

  const steps = ['destroy', 'setErasedUpTo', 'append'] as const;
  it('is carried out to its end, and said once, whichever step a process is killed before or after', async () => {
    const cases = steps.flatMap((step) => ['before', 'after'].map((when) => ({ step, when })));
    await Promise.all(
      cases.map(async ({ step, when }) => {
        const own = await LmdbStorage.open({ directory: join(root, `${step}-${when}`) });
        const [stored, held] = [new LmdbEventStore(own), await LmdbKeyStore.open(own.keys, [])];
        for (const user of ['user_1', 'user_2']) await held.obtain(keyOf(user));
        const killable = new Killable();
        let isMet = false;
        /** The process ends at its first such step, after it has come to the erasure. */
        const dying = <Port extends object>(port: Port): Port =>
          new Proxy(killable.of(port), {
            get: (target, name) => {
              const member: unknown = Reflect.get(target, name);
              if (name !== step || typeof member !== 'function') return member;
              return async (...given: unknown[]) => {
                // Where it begins to follow, it notes where.
                if (step === 'setErasedUpTo' && given[0] === '') return Reflect.apply(member, target, given);
                if (when === 'after') await Reflect.apply(member, target, given);
                isMet = killable.isKilled = true;
                return new Promise(() => {});
              };
            },
          });
        const rows = killable.rows(new LmdbReadModels(own));
        await eraseIn(stored, 'user_1');
        const first = await start(0, {
          storage: own,
          events: dying(stored),
          keys: dying(held),
          readModels: rows,
          shortLived: killable.of(new LmdbShortLived(own, clock)),
        });
        running.splice(running.indexOf(first), 1);
        await until(() => isMet, 20_000);
        const afterKill = (await finished(stored)).length;
        const second = await start(0, { storage: own, events: stored, keys: await LmdbKeyStore.open(own.keys, []) });
        await until(async () => (await finished(stored)).length === 1 && (await held.erasedUpTo()) >= (await finished(stored))[0]!.position, 30_000);
        const fresh = await LmdbKeyStore.open(own.keys, []);
        expect([step, when, await fresh.find(keyOf('user_1')), afterKill]).toEqual([step, when, 'erased', step === 'append' && when === 'after' ? 1 : 0]);
        expect(await fresh.find(keyOf('user_2'))).not.toBe('erased');
        await second.stop();
        running.splice(running.indexOf(second), 1);
        await own.close();
      }),
    );
  }, 60_000);

  it('is waited for once with all whose keys are gone by then, however many batches they come in', async () => {
    const forgottenAfter = 1_500;
    const batches = 4;
    for (let batch = 0; batch < batches; batch++) {
      await erase(`user_${batch}`);
      // More than is read at once.
      const between = Array.from({ length: 1_000 }, (_, index) => plain(`note-${batch}-${index}`));
      for (let from = 0; from < between.length; from += 500) await events.append(`note-${ENVIRONMENT}-${batch}-${from}`, 0, between.slice(from, from + 500));
    }
    const destroyer = await start(3_600_000);
    await until(async () => (await keys.erasedUpTo()) !== '' && (await keys.find(keyOf(`user_${batches - 1}`)).catch(() => null)) === 'erased');
    await destroyer.stop();
    running = [];
    const began = performance.now();
    await start(forgottenAfter);
    await until(async () => (await finished()).length === batches);
    expect((performance.now() - began) / forgottenAfter).toBeLessThan(batches - 1);
  });

  it.each(['\x01garbage', '0000000000000abc', '17.5'])('is refused where what says how far they have come is %j', async (damaged) => {
    await storage.keys.put('eraser', Buffer.from(damaged));
    await expect(start()).rejects.toThrow(StartRefused);
    await expect(start()).rejects.toThrow(/how far erasures have come in .*keys is damaged: put it back from the backup of the keys/);
  });

  /** To where it was before some of it: as many records come after as there were. */
  async function givenLogPutBack(): Promise<void> {
    const copy = join(root, 'earlier');
    await events.append(`note-${ENVIRONMENT}-before`, 0, [plain('before')]);
    await close();
    await cp(join(directory(), 'log'), copy, { recursive: true });
    await open();
    const before = await start();
    for (const user of ['user_1', 'user_2']) {
      await keys.obtain(keyOf(user));
      await erase(user);
    }
    await until(async () => (await finished()).length === 2);
    const head = await events.head();
    await until(async () => (await keys.erasedUpTo()) === head);
    await before.stop();
    await close();
    await rm(join(directory(), 'log'), { recursive: true });
    await cp(copy, join(directory(), 'log'), { recursive: true });
    await open();
  }

  it('that is recorded after the log was put back is carried out, also where what carries it out stood still meanwhile', async () => {
    await givenLogPutBack();
    await keys.obtain(keyOf('user_3'));
    const { resume } = await start();
    await erase('user_3');
    for (let count = 0; count < 10; count++) await events.append(`note-${ENVIRONMENT}-${count}`, 0, [plain('later')]);
    // Nobody says that they are destroyed: the keys know of erasures that this log does not have.
    await pause(200);
    expect([await finished(), await keys.find(keyOf('user_3'))]).toEqual([[], expect.objectContaining({ id: expect.any(String) })]);
    await resume();
    await until(async () => (await finished()).length === 1);
    expect(await keys.find(keyOf('user_3'))).toBe('erased');
  });

  it('that is recorded after the log was put back is carried out, also where the log has grown past what the keys know before anybody looked', async () => {
    await givenLogPutBack();
    const known = await keys.erasedUpTo();
    await keys.obtain(keyOf('user_3'));
    await erase('user_3');
    for (let count = 0; count < 10; count++) await events.append(`note-${ENVIRONMENT}-${count}`, 0, [plain('later')]);
    expect((await events.head()) > known).toBe(true);
    const { resume, status } = await start();
    await until(async () => (await status()).some(({ name, isAhead }) => name === 'eraser' && isAhead));
    expect(await finished()).toEqual([]);
    await resume();
    await until(async () => (await finished()).length === 1);
    expect(await keys.find(keyOf('user_3'))).toBe('erased');
  });

  it('is waited for anew in a log that was put back, also by who has waited for later ones', async () => {
    const forgottenAfter = 700;
    const other = await LmdbStorage.open({ directory: join(root, 'other') });
    const changed = new ChangedLog(events);
    events = changed;
    for (let count = 0; count < 5; count++) await events.append(`note-${ENVIRONMENT}-${count}`, 0, [plain('before')]);
    const { resume, status } = await start(forgottenAfter);
    const later = await erase('user_1');
    await until(async () => (await finished()).length === 1);
    changed.log = new LmdbEventStore(other);
    await until(async () => (await status()).every(({ isAhead }) => isAhead));
    const earlier = await erase('user_2');
    expect(earlier < later).toBe(true);
    destroyedAt.length = 0;
    await resume();
    await until(async () => (await finished()).length === 1 && destroyedAt.length === 1);
    // A timer may be early by a part of a millisecond.
    expect((await finished())[0]!.meta.at - destroyedAt[0]!).toBeGreaterThan(forgottenAfter - 5);
    for (const lifecycle of running.splice(0)) await lifecycle.stop();
    await other.close();
  });

  it('is repeated on keys of an older backup, and not on others', async () => {
    await keys.obtain(keyOf('user_1'));
    await keys.obtain(keyOf('user_2'));
    await close();
    await cp(keysIn(directory()), join(root, 'older'), { recursive: true });
    await open();
    await start();
    await erase('user_1');
    await until(async () => (await keys.find(keyOf('user_1'))) === 'erased');
    await until(async () => (await keys.erasedUpTo()) !== '');
    await close();
    await rm(keysIn(directory()), { recursive: true });
    await cp(join(root, 'older'), keysIn(directory()), { recursive: true });
    await open();
    expect(await keys.find(keyOf('user_1'))).not.toBe('erased');
    await start();
    await until(async () => (await keys.find(keyOf('user_1'))) === 'erased');
    expect(await keys.find(keyOf('user_2'))).not.toBe('erased');
  });
});
