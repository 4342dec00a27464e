import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SystemClock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { Stamps } from '#libs/read-models/src/stamps';
import { until } from '#libs/testing/src/until';
import { LmdbEventStore } from '../lmdb/lmdb.event-store.ts';
import { LmdbKeyStore } from '../sealing/lmdb.key-store.ts';
import { Vault } from '../sealing/vault.ts';
import { FollowerStates } from './follower-states.ts';
import { LeasedFollowers } from './leased-followers.ts';
import { JointWrites } from './joint-writes.ts';
import { LogFollowing } from './memory-follower.ts';
import { Reactions } from './reaction.ts';
import { stampEnds } from './stamp-ends.ts';

const clock = new SystemClock();
const LAST_USED = { name: 'key.last_used_at' };

describe('the stamp of an owner who ends', () => {
  let directory: string;
  let storage: LmdbStorage;
  let events: LmdbEventStore;
  let stamps: Stamps;
  let lifecycle: Lifecycle;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'stamp-ends-'));
    storage = await LmdbStorage.open({ directory });
    events = new LmdbEventStore(storage);
    await happened('one', 'key_before', 'key.revoked');
    lifecycle = new Lifecycle();
    const [readModels, metrics] = [new LmdbReadModels(storage), new Metrics()];
    const log = new PinoLog({ level: 'silent', readable: false });
    stamps = new Stamps({ readModels, clock, log, metrics });
    const leases = new Leases(new LmdbShortLived(storage, clock), newUlid(clock.now()), log, metrics);
    const followers = new LeasedFollowers({
      following: new LogFollowing(events, clock, log),
      writes: new JointWrites(readModels),
      leases,
      states: new FollowerStates(readModels, clock),
      lifecycle,
      metrics,
    });
    const reactions = new Reactions(followers, readModels, new Vault(await LmdbKeyStore.open(storage.keys, [])), clock, log, metrics);
    lifecycle.add(stamps);
    reactions.add(stampEnds({ stamp: LAST_USED, endsWith: ['key.revoked', 'key.expired'] }, stamps));
    await lifecycle.start();
  });
  afterEach(async () => {
    await lifecycle.stop();
    await storage.close();
    await rm(directory, { recursive: true });
  });

  const happened = (environment: string, id: string, type: string) => {
    const meta = { environment, actor: { id: 'test', source: 'system' as const, name: null }, requestId: id, commandId: newUlid(clock.now()), at: clock.now() };
    return events.append(`key-${environment}-${id}`, 0, [{ id: newUlid(clock.now()), type, shape: 1, data: {}, subject: null, public: [], meta }]);
  };

  it('goes with it, in its environment alone, and later uses bring nothing back', async () => {
    const used = async (environment: string, ...owners: string[]) => (await stamps.latest(LAST_USED, environment, owners)).map((time) => time !== null);
    for (const environment of ['one', 'two']) for (const owner of ['key_a', 'key_b', 'key_c']) stamps.record(LAST_USED, environment, owner);
    await stamps.round();
    await happened('one', 'key_a', 'key.revoked');
    await happened('one', 'key_b', 'key.expired');
    await happened('one', 'key_c', 'key.renamed');
    await until(async () => (await used('one', 'key_a', 'key_b')).join() === 'false,false');
    for (const owner of ['key_a', 'key_b']) stamps.record(LAST_USED, 'one', owner, clock.now() + 1_000);
    await stamps.stop();
    expect([await used('one', 'key_a', 'key_b', 'key_c'), await used('two', 'key_a', 'key_b', 'key_c')]).toEqual([
      [false, false, true],
      [true, true, true],
    ]);
  });

  it('leaves no trace where owners ended before there was such a stamp', async () => {
    await happened('one', 'key_a', 'key.revoked');
    const ids = async (): Promise<string[]> => {
      const found = [];
      for await (const { id } of new LmdbReadModels(storage).table({ name: 'stamps', indexes: [], rebuildable: false }).dump()) found.push(id);
      return found;
    };
    await until(async () => (await ids()).length > 0);
    expect(await ids()).toEqual(['key_a key.last_used_at']);
  });
});
