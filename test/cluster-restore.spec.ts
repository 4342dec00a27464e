import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient, type Db, type Document } from 'mongodb';
import { LogForReading } from '#libs/platform/src/storage/log-storage';
import type { EngineProcess } from '#libs/testing/src/engines/engine-process';
import { startEventstoreServer } from '#libs/testing/src/engines/eventstore';
import { givenKafka, givenMongodb } from '#libs/testing/src/engines/given';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { gatehouse, ROOT, SuiteProcess } from '#libs/testing/src/process';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';

const [kafka, databases] = [await givenKafka(), [await givenMongodb(), await givenMongodb(), await givenMongodb(), await givenMongodb()] as const];
const isThere = kafka !== null && databases[0] !== null;

const operations = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
/** The words of the documented commands, so that what is tried is what is documented. */
const documented = (pattern: RegExp): RegExp => new RegExp(pattern.exec(operations)![1]!);

interface User {
  readonly id: string;
  readonly email: string;
}

type Collections = ReadonlyMap<string, readonly Document[]>;

(isThere ? describe : describe.skip)('a cluster that is backed up while it works, and restored elsewhere, in the documented order', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-cluster-restore-'));
  const directories = [WatchedDirectory.create('restore-before'), WatchedDirectory.create('restore-after')] as const;
  const clients: MongoClient[] = [];
  const created: User[] = [];
  const key = `sk_${randomBytes(32).toString('base64url')}`;
  const master = randomBytes(32).toString('base64');
  const [mongodbBefore, keysBefore, mongodbAfter, keysAfter] = databases as readonly [string, string, string, string];
  let receiver: WebhookReceiver;
  let suite: SuiteProcess;
  let restored: EngineProcess | undefined;
  let variables: Readonly<Record<string, string>>;
  /** How many users were acknowledged before anything was copied. */
  let before: number;

  const settingsOf = (eventstore: string, mongodb: string, keys: string) => ({
    DATA_DIR: join(root, 'data'),
    EVENTSTORE_URL: eventstore,
    MONGODB_URL: mongodb,
    KEYS_URL: keys,
    KAFKA_BROKERS: kafka!,
    KAFKA_REPLICATION: '1',
    MASTER_KEYS: master,
    GATEHOUSE_API_KEY: key,
  });
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(suite.url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body),
    });
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- what a spec reads of an answer, it also asserts
    return { status: response.status, body: (await response.json()) as any };
  };
  const createUser = async (): Promise<void> => {
    const email = `user-${created.length}-${randomBytes(4).toString('hex')}@acme.test`;
    const { status, body } = await ask('POST', '/user_management/users', { email });
    expect(status).toBe(201);
    created.push({ id: body.id, email });
  };
  const database = async (url: string): Promise<Db> => {
    const client = await new MongoClient(url).connect();
    clients.push(client);
    return client.db();
  };

  beforeAll(async () => {
    receiver = await WebhookReceiver.listen();
    const log = await startEventstoreServer(directories[0]);
    suite = await SuiteProcess.start(settingsOf(log.address, mongodbBefore, keysBefore));
    await ask('POST', '/webhook_endpoints', { endpoint_url: receiver.url, events: ['user.created'] });
    for (let count = 0; count < 20; count++) await createUser();
    await receiver.receives(({ data }) => data.id === created[19]!.id);
    before = created.length;

    let isLoading = true;
    const load = Promise.all(
      Array.from({ length: 2 }, async () => {
        while (isLoading) await createUser();
      }),
    );
    const more = async (count: number): Promise<void> => {
      for (const from = created.length; created.length < from + count;) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    // 1. Small state.
    const source = await database(mongodbBefore);
    const small = new Map<string, readonly Document[]>();
    const lines = documented(/--collection checkpoints --query '\{"_id": \{"\$regex": "([^"]+)"/);
    small.set(
      'checkpoints',
      (await source.collection('checkpoints').find().toArray()).filter(({ _id }) => lines.test(String(_id))),
    );
    const isSmall = documented(/grep -E '([^']+)'/);
    const names = (await source.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name);
    for (const name of [...names.filter((each) => isSmall.test(each)), 'leases']) small.set(name, await source.collection(name).find().toArray());
    await more(10);
    // 2. The log.
    const copied = join(directories[1].path, 'eventstore', 'data', 'log');
    mkdirSync(copied, { recursive: true });
    const reading = new LogForReading(join(log.folder, 'data'));
    await reading.log.backup(copied);
    await reading.log.close();
    await more(10);
    // 3. The keys.
    const keys = new Map([['keys', await (await database(keysBefore)).collection('keys').find().toArray()]]);
    isLoading = false;
    await load;
    await suite.killHard();
    await log.close();

    await put(await database(mongodbAfter), small);
    restored = await startEventstoreServer(directories[1]);
    await put(await database(keysAfter), keys);
    variables = settingsOf(restored.address, mongodbAfter, keysAfter);
  }, 120_000);
  afterAll(async () => {
    await (suite as SuiteProcess | undefined)?.stop();
    await restored?.close();
    await receiver.close();
    for (const client of clients) await client.close();
    for (const directory of directories) directory.remove();
    rmSync(root, { recursive: true });
  });

  it('has its keys in a database of their own, and no personal data in its small state', async () => {
    const after = await database(mongodbAfter);
    const names = (await after.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['checkpoints', 'leases', 'rows.follower-states', 'rows.webhook_deliveries']));
    expect(names).not.toContain('keys');
    const lines = (await after.collection<{ _id: string }>('checkpoints').find().toArray()).map(({ _id }) => _id);
    expect(lines).toContain('forwarder-identity');
    expect(lines.filter((line) => /^(users|organizations|feed)/.test(line))).toEqual([]);
    expect(names.filter((name) => /^rows\.(users|organizations|feed)/.test(name))).toEqual([]);
    for (const name of names) expect(JSON.stringify(await after.collection(name).find().toArray())).not.toContain('@acme.test');
  });

  it('has the key of everything sealed, says how long its refill took, and shows every user of its log', async () => {
    expect(await gatehouse(variables, 'verify')).toMatchObject({ code: 0, stdout: expect.stringContaining('The key of everything sealed') });
    const eraser = (await database(keysAfter)).collection<{ _id: string; position: string }>('keys');
    // Erasures were carried out that this log does not know.
    await eraser.updateOne({ _id: 'eraser' }, { $set: { position: '9'.repeat(40) } }, { upsert: true });
    const { code, stdout } = await gatehouse(variables, 'rebuild');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/Every view was filled, up to position \S+, in \d+\.\d s\./)]);
    expect(stdout).toContain(`up to position ${(await eraser.findOne({ _id: 'eraser' }))!.position},`);

    suite = await SuiteProcess.start(variables);
    const found: string[] = [];
    for (const { id, email } of created) {
      const { status, body } = await ask('GET', `/user_management/users/${id}`);
      if (status === 200) expect(body.email).toBe(email);
      else expect(status).toBe(404);
      if (status === 200) found.push(id);
    }
    // What was acknowledged before the log was copied is there, and nothing else is half there.
    expect(found.slice(0, before)).toEqual(created.slice(0, before).map(({ id }) => id));
    expect(found.length).toBeGreaterThanOrEqual(before + 10);
    expect(found.length).toBeLessThan(created.length);
    expect((await ask('POST', '/user_management/users', { email: created[0]!.email })).status).toBe(400);
    expect((await ask('POST', '/user_management/users', { email: created.at(-1)!.email })).status).toBe(201);
    expect(await gatehouse(variables, 'rebuild', '--check')).toMatchObject({ code: 0, stderr: '' });
    // Four programs, one after the other.
  }, 120_000);

  it('goes on announcing where its small state was: nothing of the log is left out', async () => {
    const { body } = await ask('POST', '/user_management/users', { email: 'after@acme.test' });
    await receiver.receives(({ data }) => data.id === body.id);
  });
});

async function put(target: Db, collections: Collections): Promise<void> {
  for (const [name, documents] of collections) if (documents.length > 0) await target.collection(name).insertMany([...documents]);
}
