import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { givenMongodb, givenSmallReplicaSet } from '#libs/testing/src/engines/given';
import { MongodbQuestions } from '#libs/testing/src/engines/mongodb-questions';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { Leases } from './leases.ts';
import { MongodbShortLived } from './mongodb.short-lived.ts';
import { shortLivedContract } from './short-lived.contract.ts';

const isThere = (await givenMongodb()) !== null;
const log = new PinoLog({ level: 'silent', readable: false });
const newDatabase = async (): Promise<string> => (await givenMongodb())!;

(isThere ? describe : describe.skip)('with MongoDB', () => {
  const questions = new MongodbQuestions();
  afterEach(() => expect(questions.unserved(questions.take())).toEqual([]));

  shortLivedContract(
    'MongoDB',
    async (clock) => {
      const url = MongodbQuestions.of(await newDatabase());
      return async () => {
        const storage = await MongodbStorage.connect({ url, log });
        questions.watch(storage);
        return { shortLived: new MongodbShortLived(storage, clock), close: () => storage.close() };
      };
    },
    // MongoDB removes by its own clock what has expired.
    () => new SettableClock(Date.now()),
  );

  shortLivedContract(
    'a replica set of MongoDB, which is asked for nothing older than it has answered',
    async (clock) => {
      const set = (await givenSmallReplicaSet())!;
      return async () => {
        const storage = await MongodbStorage.connect({ url: set.url, log });
        await storage.collectionNames();
        const close = async (): Promise<void> => {
          await storage.close();
          expect(set.careless).toEqual([]);
        };
        return { shortLived: new MongodbShortLived(storage, clock), close };
      };
    },
    () => new SettableClock(Date.now()),
  );

  describe('shared by replicas', () => {
    const storages: MongodbStorage[] = [];
    let url: string;
    let clock: SettableClock;

    beforeEach(async () => {
      url = await newDatabase();
      clock = new SettableClock(Date.now());
    });
    afterEach(() => Promise.all(storages.splice(0).map((storage) => storage.close())));

    async function replica(own = clock): Promise<MongodbShortLived> {
      const storage = await MongodbStorage.connect({ url, log });
      storages.push(storage);
      return new MongodbShortLived(storage, own);
    }
    const replicas = (count: number): Promise<MongodbShortLived[]> => Promise.all(Array.from({ length: count }, () => replica()));
    const later = (milliseconds = 60_000): number => clock.now() + milliseconds;

    it('one of them puts, one takes, one replaces, also where something has expired', async () => {
      const all = await replicas(5);
      for (let round = 0; round < 10; round++) {
        const put = await Promise.all(all.map((each, index) => each.putIfAbsent('codes', 'a', `${round} ${index}`, later())));
        expect(put.filter(({ stored }) => stored)).toHaveLength(1);
        expect(new Set(put.map(({ entry }) => `${entry.value} ${entry.version}`)).size).toBe(1);
        const { version } = put[0]!.entry;
        const replaced = await Promise.all(all.map((each) => each.compareAndSet('codes', 'a', version, 'replaced', later())));
        expect(replaced.filter(Boolean)).toHaveLength(1);
        if (round % 2 === 0) clock.forward(60_000);
        else expect((await Promise.all(all.map((each) => each.take('codes', 'a')))).filter(Boolean)).toMatchObject([{ value: 'replaced' }]);
      }
    });

    it('what they add is counted once each, also where a counter has expired', async () => {
      const all = await replicas(4);
      for (let round = 0; round < 5; round++) {
        const totals = await Promise.all(Array.from({ length: 40 }, (_, index) => all[index % 4]!.add('requests', 'a', 1, later())));
        expect(totals.sort((one, other) => one - other)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
        clock.forward(60_000);
      }
    });

    it('one of them gets a lease, each time with a greater token', async () => {
      const all = await replicas(5);
      const tokens: number[] = [];
      for (let round = 0; round < 10; round++) {
        const leases = await Promise.all(all.map((each, index) => each.lease('projector', `holder ${index}`, 3_000)));
        const held = leases.filter((lease) => lease !== null);
        expect(held).toHaveLength(1);
        tokens.push(held[0]!.token);
        const holder = leases.findIndex((lease) => lease !== null);
        if (round % 2 === 0) clock.forward(3_001);
        // Else nobody could tell who is next.
        else await all[holder]!.release('projector', `holder ${holder}`, held[0]!.token);
        const next = (holder + 1) % all.length;
        const taken = await all[next]!.lease('projector', `holder ${next}`, 3_000);
        tokens.push(taken!.token);
        await all[next]!.release('projector', `holder ${next}`, taken!.token);
      }
      expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other));
    });

    it('are begun and kept together, each by one holder: whoever starts asks for dozens, of which others hold some', async () => {
      const set = (await givenSmallReplicaSet())!;
      const [storage, other] = await Promise.all([1, 2].map(() => MongodbStorage.connect({ url: set.url, log })));
      storages.push(storage!, other!);
      const [store, rival] = [new MongodbShortLived(storage!, clock), new MongodbShortLived(other!, clock)];
      const kept = (await store.lease('kept', 'one', 3_000))!;
      await rival.lease('taken', 'two', 3_000);
      const names = ['kept', 'taken', ...Array.from({ length: 40 }, (_, number) => `new ${number}`)];
      const from = set.commands.length;
      const leases = await Promise.all(names.map((each) => store.lease(each, 'one', 3_000)));
      expect(set.commands.slice(from).map(({ name, collection }) => `${name} ${collection}`)).toEqual(['find leases', 'update leases']);
      expect(leases.slice(0, 2)).toEqual([kept, null]);
      expect(leases.slice(2)).not.toContain(null);
      // Of two who begin the same at once, one has each.
      const more = names.map((each) => `more ${each}`);
      const [one, two] = await Promise.all([
        Promise.all(more.map((each) => store.lease(each, 'one', 3_000))),
        Promise.all(more.map((each) => rival.lease(each, 'two', 3_000))),
      ]);
      expect(more.map((_, index) => [one[index], two[index]].filter((lease) => lease !== null)).map(({ length }) => length)).toEqual(more.map(() => 1));
    });

    it('what its holder gave up giving back, and took again, is not given back when that comes late', async () => {
      const set = (await givenSmallReplicaSet())!;
      const [storage, other] = await Promise.all([1, 2].map(() => MongodbStorage.connect({ url: set.url, log })));
      storages.push(storage!, other!);
      const [store, rival] = [new MongodbShortLived(storage!, clock), new MongodbShortLived(other!, clock)];
      const leases = new Leases(store, 'holder', log, new Metrics());
      const first = (await leases.acquireOrRenew('projector'))!;
      const comeLate = set.hold(({ name, collection }) => name === 'update' && collection === 'leases');
      await leases.release('projector');
      set.passNew();
      const second = (await leases.acquireOrRenew('projector'))!;
      expect(second).toBeGreaterThan(first);
      await comeLate();
      expect(await rival.lease('projector', 'rival', 3_000)).toBeNull();
      expect(await leases.acquireOrRenew('projector')).toBe(second);
    });

    it('a holder whose clock was far ahead keeps nobody waiting once it is gone', async () => {
      const ahead = new SettableClock(clock.now() + 3_600_000);
      const [gone, waiting] = [await replica(ahead), await replica()];
      const first = (await gone.lease('projector', 'gone', 3_000))!;
      let lease = await waiting.lease('projector', 'waiting', 3_000);
      const start = clock.now();
      for (; lease === null && clock.now() - start < 10_000; clock.forward(1_000)) lease = await waiting.lease('projector', 'waiting', 3_000);
      expect(lease!.token).toBeGreaterThan(first.token);
      expect(clock.now() - start).toBeLessThanOrEqual(4_000);
      expect((await gone.lease('projector', 'gone', 3_000))?.token).not.toBe(first.token);
    });

    it('a holder that renews keeps its lease from those whose clocks are behind, and learns at once that one that is ahead took it', async () => {
      const behind = new SettableClock(clock.now() - 3_600_000);
      const ahead = new SettableClock(clock.now() + 3_600_000);
      const [holder, slow, fast] = [await replica(), await replica(behind), await replica(ahead)];
      const first = (await holder.lease('projector', 'holder', 3_000))!;
      for (let second = 0; second < 20; second++) {
        for (const each of [clock, behind, ahead]) each.forward(1_000);
        expect(await holder.lease('projector', 'holder', 3_000)).toEqual(first);
        expect(await slow.lease('projector', 'slow', 3_000)).toBeNull();
      }
      const second = (await fast.lease('projector', 'fast', 3_000))!;
      expect(second.token).toBeGreaterThan(first.token);
      expect(await holder.lease('projector', 'holder', 3_000)).toBeNull();
      // It does not come and go: who is behind waits for who is ahead.
      for (let second = 0; second < 20; second++) {
        for (const each of [clock, ahead]) each.forward(1_000);
        expect(await fast.lease('projector', 'fast', 3_000)).not.toBeNull();
        expect(await holder.lease('projector', 'holder', 3_000)).toBeNull();
      }
    });

    it('a lease has a greater token than ever before, also where leases were set back to an earlier state', async () => {
      const entries = await replica();
      await entries.lease('projector', 'one', 3_000);
      const leases = storages[0]!.collection<{ _id: string }>('leases');
      const backup = (await leases.findOne())!;
      const tokens: number[] = [];
      for (const restore of [() => leases.replaceOne({ _id: 'projector' }, backup), () => leases.deleteMany({})]) {
        for (const holder of ['two', 'three']) {
          clock.forward(5_000);
          tokens.push((await entries.lease('projector', holder, 3_000))!.token);
        }
        await restore();
      }
      clock.forward(5_000);
      tokens.push((await entries.lease('projector', 'four', 3_000))!.token);
      expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other));
    });

    it('versions of all of them differ', async () => {
      const all = await replicas(4);
      const versions = new Set<number>();
      for (let round = 0; round < 50; round++) {
        const entry = (await all[round % 4]!.putIfAbsent('codes', 'a', 'value', later())).entry;
        versions.add(entry.version);
        await all[(round + 1) % 4]!.take('codes', 'a');
      }
      expect(versions.size).toBe(50);
    });
  });
});
