import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import { MongoClient } from 'mongodb';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { START } from '#libs/event-sourcing/src/log/event-store';
import { PinoLog } from '#libs/platform/src/pino.log';
import { startEventstoreServer } from '#libs/testing/src/engines/eventstore';
import { givenEventstore, givenKafka, givenMongodb } from '#libs/testing/src/engines/given';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { failedStart, gatehouse, SuiteProcess } from '#libs/testing/src/process';
import { recordsAfter } from '#libs/testing/src/records-after';
import { until } from '#libs/testing/src/until';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';

const [kafka, mongodb, eventstore] = [await givenKafka(), await givenMongodb(), await givenEventstore()];
const isThere = kafka !== null && mongodb !== null && eventstore !== null;

type Variables = Readonly<Record<string, string>>;

/** The name of one begins the name of the other. */
const ONE = `spec-${randomBytes(4).toString('hex')}`;
const TWO = `${ONE}-2`;
const ID = '[0-9a-f]{8}-[0-9a-f-]{27}';

(isThere ? describe : describe.skip)('two installations on the same engines', () => {
  // The same for both: a mistake between them would not be noticed for another key.
  const key = `sk_${randomBytes(32).toString('base64url')}`;
  const master = randomBytes(32).toString('base64');
  const at = (database = ''): string => Object.assign(new URL(mongodb ?? 'mongodb://none'), { pathname: `/${database}` }).href;
  const variablesOf = (installation: string, changes: Variables = {}): Variables => ({
    INSTALLATION: installation,
    EVENTSTORE_URL: eventstore!,
    MONGODB_URL: at(),
    KAFKA_BROKERS: kafka!,
    KAFKA_REPLICATION: '1',
    MASTER_KEYS: master,
    GATEHOUSE_API_KEY: key,
    ...changes,
  });
  const suites = new Map<string, SuiteProcess>();
  const receivers = new Map<string, WebhookReceiver>();
  const organizations = new Map<string, string>();
  let client: MongoClient;

  const ask = async (installation: string, method: string, path: string, body?: unknown) => {
    const response = await fetch(suites.get(installation)!.url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body),
    });
    // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
    return { status: response.status, body: (await response.json()) as any };
  };
  const collectionsOf = async (database: string): Promise<readonly string[]> =>
    (await client.db(database).listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name);
  const recordsOf = async (installation: string): Promise<readonly RecordedEvent[]> => {
    const log = await EventstoredbEventStore.connect({ url: eventstore!, installation, log: new PinoLog({ level: 'silent', readable: false }) });
    const records = await recordsAfter(log, START);
    await log.close();
    return records;
  };
  const work = async (installation: string): Promise<void> => {
    const receiver = await WebhookReceiver.listen();
    receivers.set(installation, receiver);
    suites.set(installation, await SuiteProcess.start(variablesOf(installation)));
    await ask(installation, 'POST', '/webhook_endpoints', { endpoint_url: receiver.url, events: ['organization.created'] });
    // One external id, one name and one address for both.
    const { status, body } = await ask(installation, 'POST', '/organizations', { name: 'Acme', external_id: 'acme' });
    expect(status).toBe(201);
    organizations.set(installation, body.id);
    expect((await ask(installation, 'POST', '/user_management/users', { email: 'ada@acme.test' })).status).toBe(201);
    await receiver.receives(({ data }) => data.id === body.id);
  };

  beforeAll(async () => {
    client = await new MongoClient(at()).connect();
    await work(ONE);
    await work(TWO);
    // Whoever followed the log of the other would be done by now.
    await pause(2_000);
  }, 120_000);
  afterAll(async () => {
    for (const suite of suites.values()) await suite.stop();
    for (const receiver of receivers.values()) await receiver.close();
    await client.close();
  });

  it('show, announce and send each its own, and what is unique may be in both', async () => {
    for (const [own, other] of [
      [ONE, TWO],
      [TWO, ONE],
    ] as const) {
      expect((await ask(own, 'GET', '/organizations')).body.data.map(({ id }: { id: string }) => id)).toEqual([organizations.get(own)]);
      expect((await ask(own, 'GET', `/organizations/${organizations.get(other)}`)).status).toBe(404);
      expect((await ask(own, 'GET', '/user_management/users')).body.data).toHaveLength(1);
      const { data } = (await ask(own, 'GET', '/events?events=organization.created&events=user.created')).body;
      expect(data.map(({ event }: { event: string }) => event).toSorted()).toEqual(['organization.created', 'user.created']);
      expect(receivers.get(own)!.received.map(({ body }) => (JSON.parse(body) as { readonly data: { readonly id: string } }).data.id)).toEqual([
        organizations.get(own),
      ]);
    }
  });

  it('have logs, databases, leases and keys of their own', async () => {
    const [one, two] = [await recordsOf(ONE), await recordsOf(TWO)];
    expect(one.length).toBeGreaterThan(5);
    expect(two).toHaveLength(one.length);
    expect(one.map(({ id }) => id).filter((id) => two.some((record) => record.id === id))).toEqual([]);
    for (const name of [ONE, TWO]) {
      const collections = await collectionsOf(name);
      expect(collections).toEqual(expect.arrayContaining(['checkpoints', 'installation', 'keys', 'leases']));
      const rows = collections.find((collection) => collection.startsWith('rows.organizations-'))!;
      expect(await client.db(name).collection(rows).countDocuments()).toBe(1);
    }
    // Null: released.
    const holdersOf = async (name: string): Promise<readonly unknown[]> =>
      (await client.db(name).collection('leases').find().toArray()).map(({ holder }) => holder as unknown).filter((holder) => holder !== null);
    const holders = await holdersOf(TWO);
    expect(holders.length).toBeGreaterThan(10);
    expect((await holdersOf(ONE)).filter((holder) => holders.includes(holder))).toEqual([]);
    const keysOf = async (name: string): Promise<readonly unknown[]> =>
      (
        await client
          .db(name)
          .collection('keys')
          .find({ _id: 'naming' as never })
          .toArray()
      ).map(({ wrapped }) => wrapped as unknown);
    expect([await keysOf(ONE), await keysOf(TWO)].map((keys) => keys.length)).toEqual([1, 1]);
    expect(await keysOf(ONE)).not.toEqual(await keysOf(TWO));
    const { databases } = await client.db().admin().listDatabases({ nameOnly: true });
    expect(
      databases
        .map(({ name }) => name)
        .filter((name) => name.startsWith(ONE))
        .toSorted(),
    ).toEqual([ONE, TWO]);
  });

  it('have topics of their own, and none of them reads there', async () => {
    const admin = new Kafka({ brokers: kafka!.split(','), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    const environments = new Map<string, ReadonlySet<string>>();
    for (const name of [ONE, TWO])
      environments.set(name, new Set((await recordsOf(name)).map(({ meta }) => meta.environment).filter((id) => id.startsWith('environment_'))));
    await until(async () => (await admin.listTopics()).filter((topic) => topic.endsWith('.identity')).filter((topic) => topic.startsWith(ONE)).length === 2);
    for (const topic of (await admin.listTopics()).filter((each) => each.startsWith(ONE))) {
      const [installation, environment] = topic.split('.') as [string, string];
      expect([topic, environments.get(installation)?.has(environment)]).toEqual([topic, true]);
    }
    expect((await admin.listGroups()).groups.map(({ groupId }) => groupId).filter((group) => group.startsWith(ONE))).toEqual([]);
    const ends = await admin.fetchTopicOffsets(`${ONE}.${[...environments.get(ONE)!][0]}.identity`);
    expect(ends.reduce((sum, { high }) => sum + Number(high), 0)).toBe(2);
    await admin.disconnect();
  }, 120_000);

  it('are each found whole by what looks at everything', async () => {
    expect(await gatehouse(variablesOf(ONE), 'rebuild', '--check')).toMatchObject({ code: 0, stderr: '' });
    expect(await gatehouse(variablesOf(TWO), 'verify')).toMatchObject({ code: 0 });
    const { stdout } = await gatehouse(variablesOf(TWO), 'environments', 'list');
    expect(stdout.match(/environment_/g)).toHaveLength(1);
  }, 120_000);

  describe('of which parts are mixed up', () => {
    const idOf = async (name: string): Promise<string> => (await client.db(name).collection<{ readonly id: string }>('installation').findOne())!.id;
    const refused = async (variables: Variables): Promise<string> => {
      const { code, stderr } = await failedStart(variables);
      expect([code, stderr.split('\n')]).toEqual([1, [expect.stringMatching(/^gatehouse: /), '']]);
      for (const secret of [key, master]) expect(stderr).not.toContain(secret);
      return stderr.slice('gatehouse: '.length, -1);
    };
    const ofDatabase = 'Name the database of this log, or an empty one, which is filled from the log.';
    const ofKeys = 'Keys of another log open nothing of this one: name the database of its own keys, or put those back that were backed up with it.';

    it('refuse the start, and say which parts', async () => {
      const [one, two] = [await idOf(ONE), await idOf(TWO)];
      const isAnother = `belongs to the log ${one} of the installation ${ONE}, and EVENTSTORE_URL with INSTALLATION names the log ${two} of the installation ${TWO}.`;
      const database = `The database ${ONE} (MONGODB_URL) ${isAnother} ${ofDatabase}`;
      expect(await refused(variablesOf(TWO, { MONGODB_URL: at(ONE), KEYS_URL: at(TWO) }))).toBe(database);
      expect(await refused(variablesOf(TWO, { KEYS_URL: at(ONE) }))).toBe(`The collection keys of the database ${ONE} (KEYS_URL) ${isAnother} ${ofKeys}`);
      expect(await refused(variablesOf(TWO, { MONGODB_URL: at(ONE) }))).toBe(
        `${database} The collection keys of the database ${ONE} (MONGODB_URL) ${isAnother} ${ofKeys}`,
      );
    }, 120_000);

    it('refuse it for another event store too, and leave nothing noted that would refuse the right one', async () => {
      const directory = WatchedDirectory.create('another-log');
      const another = await startEventstoreServer(directory);
      const changes = { EVENTSTORE_URL: another.address, KEYS_URL: at(`${ONE}-new`) };
      expect(await refused(variablesOf(ONE, changes))).toMatch(
        new RegExp(`^The database ${ONE} \\(MONGODB_URL\\) belongs to the log .* names the log ${ID} of`),
      );
      await another.close();
      directory.remove();
      expect(await collectionsOf(`${ONE}-new`)).toEqual([]);
    }, 120_000);

    it('refuse it where nothing is noted, and something is there', async () => {
      const db = client.db(`${TWO}-old`);
      await db.collection('leases').insertOne({ holder: 'somebody' });
      await db.collection('keys').insertOne({ _id: 'naming' as never });
      const unnoted = `holds something and does not say of which log, and EVENTSTORE_URL with INSTALLATION names the log ${await idOf(TWO)} of the installation ${TWO}.`;
      expect(await refused(variablesOf(TWO, { MONGODB_URL: at(`${TWO}-old`) }))).toBe(
        `The database ${TWO}-old (MONGODB_URL) ${unnoted} ${ofDatabase} The collection keys of the database ${TWO}-old (MONGODB_URL) ${unnoted} ${ofKeys}`,
      );
      expect(await collectionsOf(`${TWO}-old`)).not.toContain('installation');
    }, 120_000);

    it('go on with an empty database beside the log and its keys', async () => {
      const suite = await SuiteProcess.start(variablesOf(ONE, { MONGODB_URL: at(`${ONE}-empty`), KEYS_URL: at(ONE) }));
      suites.set(`${ONE}-empty`, suite);
      expect((await ask(`${ONE}-empty`, 'GET', `/organizations/${organizations.get(ONE)}`)).body.name).toBe('Acme');
      expect(await idOf(`${ONE}-empty`)).toBe(await idOf(ONE));
    }, 120_000);
  });
});
