import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient, type Db } from 'mongodb';
import { LogForReading } from '#libs/platform/src/storage/log-storage';
import { Canaries } from '#libs/testing/src/canaries';
import type { Engine } from '#libs/testing/src/engines/engine';
import type { EngineProcess } from '#libs/testing/src/engines/engine-process';
import { startEventstoreServer } from '#libs/testing/src/engines/eventstore';
import { givenEngine, givenMongodb } from '#libs/testing/src/engines/given';
import { kafka } from '#libs/testing/src/engines/kafka';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { failedStart, gatehouse, productProgram, Program, SuiteProcess } from '#libs/testing/src/process';
import { eventually, until } from '#libs/testing/src/until';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';
import { announced, type Announced } from './cluster/observers.ts';

const given = await givenMongodb();
const kafkaBefore = given === null ? null : await givenEngine(kafka);

interface User {
  readonly id: string;
  readonly email: string;
}

/** One event as a receiver was told of it, as often as it was. */
const eventsTo = (receiver: WebhookReceiver): readonly { readonly id: string; readonly data: { readonly id: string } }[] =>
  receiver.received.map(({ body }) => JSON.parse(body) as { id: string; data: { id: string } });

(kafkaBefore === null ? describe.skip : describe)(
  'a cluster that is backed up while it works, and restored into other engines, in the documented order',
  () => {
    const root = mkdtempSync(join(tmpdir(), 'gatehouse-cluster-restore-'));
    const directories = [
      WatchedDirectory.create('restore-before'),
      WatchedDirectory.create('restore-after'),
      WatchedDirectory.create('restore-older'),
    ] as const;
    const clients: MongoClient[] = [];
    const people = new Canaries();
    const created: User[] = [];
    const key = `sk_${randomBytes(32).toString('base64url')}`;
    const master = randomBytes(32).toString('base64');
    const backup = join(root, 'small-state');
    const endings: (() => Promise<void>)[] = [];
    /** Answers at once; and one that is down until the cluster is restored. */
    let receiver: WebhookReceiver;
    let failing: WebhookReceiver;
    /** How often that one was asked while it was down. */
    let down: number;
    let suite: SuiteProcess | undefined;
    let mongodb: { readonly before: string; readonly after: string; readonly keysBefore: string; readonly keysAfter: string };
    let before: Readonly<Record<string, string>>;
    let after: Readonly<Record<string, string>>;
    let olderLog: EngineProcess;
    let logAfter: EngineProcess;
    /** How many users were acknowledged before anything was copied. */
    let known: number;
    /** A person whose key was destroyed after the log was copied, and before the keys were. */
    let erased: User;
    let keyedAnswer: unknown;
    /** API keys that were used before the backup: one goes on, the other was revoked after the small state was copied and before the log was. */
    const used: { id: string; value: string; last_used_at: string | null }[] = [];
    let organization: string;
    let announcedBefore: readonly Announced[];
    /** What was refused while the cluster was at work. */
    const attempts: Record<string, { readonly code: number | null; readonly stderr: string }> = {};

    const settingsOf = (eventstore: string, database: string, keys: string, brokers: string): Readonly<Record<string, string>> => ({
      DATA_DIR: join(root, 'data'),
      EVENTSTORE_URL: eventstore,
      MONGODB_URL: database,
      KEYS_URL: keys,
      KAFKA_BROKERS: brokers,
      KAFKA_REPLICATION: '1',
      MASTER_KEYS: master,
      GATEHOUSE_API_KEY: key,
    });
    const ask = async (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) => {
      const response = await fetch(suite!.url + path, {
        method,
        headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
        body: body === undefined ? null : JSON.stringify(body),
      });
      const text = await response.text();
      // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
      const parsed: any = text === '' ? null : JSON.parse(text);
      return { status: response.status, body: parsed };
    };
    const userOf = (number: number) => ({ email: people.add(`email ${number}`, `user-${number}-${randomBytes(8).toString('hex')}@acme.test`) });
    const createUser = async (): Promise<void> => {
      const user = userOf(created.length);
      const { status, body } = await ask('POST', '/user_management/users', user);
      expect(status).toBe(201);
      created.push({ id: body.id, ...user });
    };
    const apiKeys = (): string => `/organizations/${organization}/api_keys`;
    const lastUses = async (): Promise<readonly (string | null)[]> =>
      (await ask('GET', apiKeys())).body.data.map(({ last_used_at }: { readonly last_used_at: string | null }) => last_used_at);
    const keyed = { 'Idempotency-Key': 'of-the-backup' };
    const keyedUser = userOf(-1);
    const code = people.add('code', randomBytes(16).toString('hex'));
    const database = async (url: string): Promise<Db> => {
      const client = await new MongoClient(url).connect();
      clients.push(client);
      return client.db();
    };
    const documentsIn = async (url: string): Promise<Readonly<Record<string, number>>> => {
      const db = await database(url);
      const names = (await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name);
      const counts = await Promise.all(names.map(async (name) => [name, await db.collection(name).countDocuments()] as const));
      return Object.fromEntries(counts.filter(([, count]) => count > 0));
    };
    const copyLog = async (from: EngineProcess, into: WatchedDirectory): Promise<void> => {
      const copied = join(into.path, 'eventstore', 'data', 'log');
      mkdirSync(copied, { recursive: true });
      const reading = new LogForReading(join(from.folder, 'data'));
      await reading.log.backup(copied);
      await reading.log.close();
    };

    beforeAll(async () => {
      const [one, two, three, four] = await Promise.all(Array.from({ length: 4 }, givenMongodb));
      mongodb = { before: one!, after: two!, keysBefore: three!, keysAfter: four! };
      [receiver, failing] = [await WebhookReceiver.listen(), await WebhookReceiver.listen()];
      failing.answers(500);
      const log = await startEventstoreServer(directories[0]);
      before = settingsOf(log.address, mongodb.before, mongodb.keysBefore, kafkaBefore!.address);
      suite = await SuiteProcess.start(before);
      for (const { url } of [receiver, failing]) await ask('POST', '/webhook_endpoints', { endpoint_url: url, events: ['user.created'] });
      for (let count = 0; count < 10; count++) await createUser();
      await copyLog(log, directories[2]);
      for (let count = 0; count < 10; count++) await createUser();
      keyedAnswer = (await ask('POST', '/user_management/users', keyedUser, keyed)).body;
      await receiver.receives(({ data }) => data.id === created[19]!.id);
      known = created.length;
      organization = (await ask('POST', '/organizations', { name: 'Acme' })).body.id;
      for (const name of ['goes on', 'is revoked']) used.push((await ask('POST', apiKeys(), { name })).body);
      for (const { value } of used) await ask('POST', '/api_keys/validations', { value });
      await until(async () => (await lastUses()).every((time) => time !== null));
      used[0]!.last_used_at = (await lastUses()).at(-1)!;
      // Nothing of the product does so yet, and it would be no harm.
      const plain = { value: code, version: 1, expiresAt: new Date(Date.now() + 3_600_000) };
      await (await database(mongodb.before)).collection<{ _id: string }>('short_lived').insertOne({ _id: 'codes\0of-ada', held: [plain] } as { _id: string });

      let isLoading = true;
      const load = Promise.all(
        Array.from({ length: 2 }, async () => {
          while (isLoading) await createUser();
        }),
      );
      const more = async (count: number): Promise<void> => {
        for (const from = created.length; created.length < from + count;) await pause(20);
      };
      // 1. The small state.
      expect(await gatehouse(before, 'backup', backup)).toMatchObject({
        code: 0,
        stderr: '',
        stdout: expect.stringContaining('The small state is backed up.'),
      });
      attempts['again'] = await gatehouse(before, 'backup', backup);
      attempts['at work'] = await gatehouse(before, 'restore', backup);
      expect((await ask('DELETE', `/api_keys/${used[1]!.id}`)).status).toBeLessThan(300);
      await more(10);
      // 2. The log.
      await copyLog(log, directories[1]);
      await more(10);
      // 3. The keys.
      erased = created[0]!;
      const keys = (await database(mongodb.keysBefore)).collection<{ _id: string }>('keys');
      const person = await keys.findOne({ _id: { $regex: `^person\\..*${erased.id}$` } });
      await keys.replaceOne({ _id: person!._id }, { erased: true });
      const keysCopied = await keys.find().toArray();
      isLoading = false;
      await load;
      await suite.killHard();
      attempts['after it'] = await gatehouse(before, 'restore', backup);
      announcedBefore = await announced([kafkaBefore!.address]);
      await log.close();
      await kafkaBefore!.close();

      const kafkaAfter = (await givenEngine(kafka)) as Engine;
      logAfter = await startEventstoreServer(directories[1]);
      olderLog = await startEventstoreServer(directories[2]);
      endings.push(
        () => logAfter.close(),
        () => olderLog.close(),
      );
      const target = (await database(mongodb.keysAfter)).collection<{ _id: string }>('keys');
      await target.insertMany(keysCopied);
      after = settingsOf(logAfter.address, mongodb.after, mongodb.keysAfter, kafkaAfter.address);
    }, 180_000);
    afterAll(async () => {
      await suite?.stop();
      for (const end of endings) await end();
      for (const each of [receiver, failing]) await each.close();
      for (const client of clients) await client.close();
      for (const directory of directories) directory.remove();
      rmSync(root, { recursive: true });
    });

    it('has nothing of persons in the file, nor what is sealed for others to open', () => {
      expect(people.names.length).toBeGreaterThan(known);
      expect(people.foundInDirectory(root)).toEqual({});
      expect(readdirSync(root).filter((name) => name !== 'data')).toEqual(['small-state']);
      const head = readFileSync(backup).subarray(0, 1_000).toString('latin1').split('\n')[0]!;
      expect(Object.keys(JSON.parse(head) as object)).toEqual(['kind', 'format', 'id', 'created_at', 'key']);
      expect(readFileSync(backup).includes('webhook_deliveries')).toBe(false);
    });

    it('writes over no file, and is restored into nothing where others are at work or have left something', async () => {
      expect(attempts['again']).toMatchObject({ code: 1, stderr: expect.stringContaining(`${backup} is there already`) });
      expect(attempts['at work']).toMatchObject({ code: 1, stderr: expect.stringContaining('are at work on the database') });
      expect(attempts['after it']).toMatchObject({ code: 1, stderr: expect.stringMatching(/MONGODB_URL is not empty, the table \S+ has something/) });
      // Nor is the database refused for it.
      expect(
        (
          await (
            await database(mongodb.before)
          )
            .collection<{ _id: string }>('short_lived')
            .find({ _id: { $regex: '^restore' } })
            .toArray()
        ).length,
      ).toBe(0);
    });

    it('is refused as a whole where the file or the log is another, and leaves nothing behind', async () => {
      const refused = async (settings: Readonly<Record<string, string>>, file: string): Promise<string> => {
        const { code, stderr, stdout } = await gatehouse(settings, 'restore', file);
        expect([code, stdout]).toEqual([1, '']);
        return stderr;
      };
      const bytes = readFileSync(backup);
      const damaged = (name: string, change: (path: string) => void): string => {
        const path = join(root, name);
        writeFileSync(path, bytes);
        change(path);
        return path;
      };
      const cut = damaged('cut', (path) => truncateSync(path, bytes.length - 100));
      const flipped = damaged('flipped', (path) => writeFileSync(path, Buffer.from(bytes).fill(0, bytes.length - 50, bytes.length - 40)));
      const foreign = damaged('foreign', (path) => writeFileSync(path, '{"some":"other file"}\n'));
      expect(await refused(after, cut)).toContain('is cut off');
      expect(await refused(after, flipped)).toContain('is not what was written');
      expect(await refused(after, foreign)).toContain("is no backup of a cluster's small state");
      expect(await refused({ ...after, MASTER_KEYS: randomBytes(32).toString('base64') }, backup)).toContain('which is not among MASTER_KEYS');
      expect(await refused({ ...after, EVENTSTORE_URL: olderLog.address }, backup)).toContain('The log ends before the small state of this backup');
      const empty = WatchedDirectory.create('restore-empty');
      const otherLog = await startEventstoreServer(empty);
      const [others, keys, fresh] = await Promise.all(Array.from({ length: 3 }, givenMongodb));
      const another = settingsOf(otherLog.address, others!, keys!, after['KAFKA_BROKERS']!);
      expect(await refused(another, backup)).toContain('put back the log and the keys first');
      expect([await documentsIn(others!), await documentsIn(keys!)]).toEqual([{}, {}]);
      expect(await gatehouse(another, 'environments', 'create', 'staging')).toMatchObject({ code: 0 });
      expect(await refused({ ...another, MONGODB_URL: fresh! }, backup)).toMatch(
        /is of the log \S+ of the installation gatehouse, and EVENTSTORE_URL with INSTALLATION names/,
      );
      await otherLog.close();
      empty.remove();
      expect(await documentsIn(mongodb.after)).toEqual({ installation: 1 });
      for (const path of [cut, flipped, foreign]) rmSync(path);
      // Eight programs, one after the other.
    }, 120_000);

    it('lets nothing begin on a database that was restored in part, but the same restore', async () => {
      const entries = (await database(mongodb.after)).collection<{ _id: string }>('short_lived');
      const restoring = Program.start(productProgram('gatehouse', after), ['restore', backup], after);
      await until(async () => (await entries.findOne({ _id: { $regex: '^restore' } })) !== null, 30_000);
      expect((await restoring.kill('SIGKILL')).signal).toBe('SIGKILL');
      expect((await failedStart(after)).stderr).toContain('was put back in part');
      for (const words of [['rebuild'], ['backup', join(root, 'other')]] as const)
        expect((await gatehouse(after, ...words)).stderr).toContain('was put back in part');

      // Erasures were carried out that this log does not know.
      const eraser = (await database(mongodb.keysAfter)).collection<{ _id: string; position: string }>('keys');
      await eraser.updateOne({ _id: 'eraser' }, { $set: { position: '9'.repeat(40) } }, { upsert: true });
      const { code, stdout, stderr } = await gatehouse(after, 'restore', backup);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toContain('Every view was filled');
      expect(await entries.findOne({ _id: { $regex: '^restore' } })).toBeNull();
      expect((await eraser.findOne({ _id: 'eraser' }))!.position < '9').toBe(true);
      expect((await gatehouse(after, 'restore', backup)).stderr).toContain('MONGODB_URL is not empty');
      expect(await gatehouse(after, 'verify')).toMatchObject({ code: 0, stdout: expect.stringContaining('The key of everything sealed') });
      expect(await gatehouse(after, 'rebuild', '--check')).toMatchObject({ code: 0, stderr: '' });
    }, 120_000);

    it('shows every user of its log, and nothing of who was erased', async () => {
      down = failing.received.length;
      failing.answers(200);
      suite = await SuiteProcess.start(after);
      const found: string[] = [];
      for (const { id, email } of created) {
        const { status, body } = await ask('GET', `/user_management/users/${id}`);
        expect([200, 404]).toContain(status);
        if (status === 200) found.push(id);
        if (status === 200) expect([id, body.email]).toEqual([id, id === erased.id ? '' : email]);
      }
      // What was acknowledged before the log was copied is there, and nothing else is half there.
      expect(found.slice(0, known)).toEqual(created.slice(0, known).map(({ id }) => id));
      expect(found.length).toBeGreaterThanOrEqual(known + 10);
      expect(found.length).toBeLessThan(created.length);
      expect((await ask('POST', '/user_management/users', { email: created[1]!.email })).status).toBe(400);
      const again = await ask('POST', '/user_management/users', { email: created.at(-1)!.email });
      expect(again.status).toBe(201);
      created.push({ id: again.body.id, email: again.body.email });
    }, 120_000);

    it('tells when keys were used last, of those that live in its log', async () => {
      expect(await lastUses()).toEqual([used[0]!.last_used_at]);
      const stamps = (await database(mongodb.after)).collection<{ _id: string; row: { text: string | null } }>('rows.stamps');
      const stored = async (): Promise<readonly unknown[]> => (await stamps.find().sort({ _id: 1 }).toArray()).map(({ _id, row }) => [_id, row.text]);
      // Nobody is asked of the other any more: what is left of it is that it ended.
      const rows = used.map(({ id }, index) => [expect.stringContaining(id), index === 0 ? JSON.stringify(used[0]!.last_used_at) : null]);
      await eventually(async () => expect(await stored()).toEqual(rows));
    });

    it('answers a request that is sent again as before, without doing it again', async () => {
      const { status, body } = await ask('POST', '/user_management/users', keyedUser, keyed);
      expect([status, body]).toEqual([201, keyedAnswer]);
      expect(await (await database(mongodb.after)).collection<{ _id: string }>('short_lived').findOne({ _id: 'codes\0of-ada' })).toMatchObject({
        held: [{ value: code }],
      });
    });

    it('goes on announcing where its small state was: nothing of the log is left out, and nothing from before the backup is said again', async () => {
      const { id } = created.at(-1)!;
      await receiver.receives(({ data }) => data.id === id);
      await failing.receives(({ data }) => data.id === id);
      const said = await announced([after['KAFKA_BROKERS']!]);
      const times = (events: readonly { readonly id: string }[]): ReadonlyMap<string, number> => {
        const counts = new Map<string, number>();
        for (const event of events) counts.set(event.id, (counts.get(event.id) ?? 0) + 1);
        return counts;
      };
      const [old, fresh] = [times(announcedBefore), times(said)];
      expect(Math.max(...fresh.values())).toBe(1);
      // The events of those users that were there before the backup began: told by the order in which they were announced.
      const earlier = eventsTo(receiver).filter(({ data }) => created.slice(0, known).some((user) => user.id === data.id));
      expect(new Set(earlier.map(({ id: event }) => event)).size).toBe(known);
      for (const { id: event } of earlier) expect([event, old.get(event), fresh.get(event)]).toEqual([event, 1, undefined]);
      // Everything that is on the feed was announced by one of the two.
      const feed: { readonly id: string; readonly data: { readonly id: string } }[] = [];
      for (let cursor = ''; ;) {
        const { body } = await ask('GET', `/events?limit=100&events=user.created${cursor}`);
        feed.push(...body.data);
        if (body.list_metadata.after === null) break;
        cursor = `&after=${body.list_metadata.after}`;
      }
      expect(feed.length).toBeGreaterThan(known + 10);
      for (const { id: event } of feed) expect([event, (old.get(event) ?? 0) + (fresh.get(event) ?? 0) > 0]).toEqual([event, true]);

      // No webhook from before the backup comes again, and none is missing at either.
      const sent = times(eventsTo(receiver));
      for (const { id: event } of feed) {
        const [count, isEarlier] = [sent.get(event) ?? 0, earlier.some((each) => each.id === event)];
        // What was sent between the backup and its end comes once more.
        expect([event, count >= 1 && count <= (isEarlier ? 1 : 2)]).toEqual([event, true]);
      }
      // What waited, waits on: its queue is made of the deliveries. By then the next attempt may be two minutes away.
      const late = (): ReadonlyMap<string, number> => times(eventsTo(failing).slice(down));
      await until(() => feed.every(({ id: event }) => late().has(event)), 180_000);
      expect(Math.max(...late().values())).toBe(1);
    }, 240_000);

    it('leaves nothing that looks whole where a backup is cut short', async () => {
      const path = join(root, 'killed');
      const running = Program.start(productProgram('gatehouse', after), ['backup', path], after);
      await until(() => existsSync(`${path}.unfinished`), 30_000);
      await running.kill('SIGKILL');
      expect(existsSync(path)).toBe(false);
      const { code, stderr } = await gatehouse(after, 'restore', `${path}.unfinished`);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/is cut off|is no backup of/)]);
      // The next one takes its place.
      expect((await gatehouse(after, 'backup', path)).code).toBe(0);
      expect(readdirSync(root).filter((name) => name.startsWith('killed'))).toEqual(['killed']);
      // Three programs, one after the other.
    }, 120_000);

    it('is piped as well', async () => {
      const { code, stdout, stderr } = await gatehouse(after, 'backup', '-');
      expect([code, stderr]).toEqual([0, expect.stringContaining('The small state is backed up.')]);
      expect(JSON.parse(stdout.split('\n')[0]!)).toMatchObject({ kind: 'gatehouse small state', format: 1 });
    });
  },
);
