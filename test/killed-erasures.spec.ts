import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { ErasableForReading } from '#libs/platform/src/storage/erasable-environment';
import { Canaries } from '#libs/testing/src/canaries';
import { givenEventstore, givenKafka, givenMongodb } from '#libs/testing/src/engines/given';
import { gatehouse, ROOT, SuiteProcess } from '#libs/testing/src/process';
import { eventually, until } from '#libs/testing/src/until';

const USERS = '/user_management/users';
const KILLED_AT = [
  'before the fact',
  'after the fact',
  'before the tombstones',
  'after the tombstones',
  'before the checkpoint',
  'after the checkpoint',
].concat(['before the rows', 'after the rows']);

interface World {
  readonly variables: Readonly<Record<string, string>>;
  /** Moments of its own. */
  readonly alsoAt: readonly string[];
  /** Moments of the next start after a clean end. */
  readonly copiedAt: readonly string[];
  /** Whether the key of a user is gone for good. */
  readonly isErased: (purpose: `person.${string}`) => Promise<boolean>;
  /** As the key lies there, wrapped: nothing else of it is left anywhere in the end. */
  readonly keyOf: (purpose: `person.${string}`) => Promise<Buffer>;
  /** What of these people is found, and where. */
  readonly found: (canaries: Canaries) => Promise<object>;
  readonly close: () => Promise<void>;
}

/** A product that is killed at each step of an erasure, each time of another person, and started again. */
function killed(name: string, given: (directory: string) => Promise<World>): void {
  describe(`erasures that a kill cuts off, ${name}`, () => {
    const root = mkdtempSync(join(tmpdir(), 'gatehouse-killed-erasures-'));
    const diesAt = join(root, 'dies-at');
    const key = `sk_${randomBytes(32).toString('base64url')}`;
    const canaries = new Canaries();
    let world: World;
    let variables: Readonly<Record<string, string>>;
    let suite: SuiteProcess;
    let environment: string;

    beforeAll(async () => {
      world = await given(root);
      variables = {
        ...world.variables,
        GATEHOUSE_API_KEY: key,
        MASTER_KEYS: randomBytes(32).toString('base64'),
        DIES_AT: diesAt,
        NODE_OPTIONS: `--import=${ROOT}dist/libs/testing/src/dying-process.js`,
      };
      suite = await SuiteProcess.start(variables);
      environment = /environment_\w+/.exec((await gatehouse(variables, 'environments', 'list')).stdout)![0];
    }, 120_000);
    afterAll(async () => {
      await suite.killHard();
      await world.close();
      rmSync(root, { recursive: true });
    });

    async function ask(method: string, path: string, body?: object) {
      const response = await fetch(suite.url + path, {
        method,
        headers: { Authorization: `Bearer ${key}`, ...(body && { 'Content-Type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body),
      });
      const text = await response.text();
      return { status: response.status, body: text === '' ? null : JSON.parse(text) };
    }

    /** As the feed shows it. */
    async function addressOf(id: string): Promise<string | undefined> {
      const { body } = await ask('GET', '/events?events=user.created&limit=100');
      return body.data.find(({ data }: { data: { id: string } }) => data.id === id)?.data.email;
    }

    async function givenPerson(): Promise<string> {
      const word = (what: string): string => canaries.add(`${what} ${canaries.names.length}`, randomBytes(12).toString('hex'));
      const email = `${word('address')}@acme.test`;
      const { body } = await ask('POST', USERS, { email, first_name: word('name'), password: 'ride-a-giraffe-7' });
      await eventually(async () => expect(await addressOf(body.id)).toBe(email));
      canaries.addBytes(`key ${canaries.names.length}`, await world.keyOf(`person.user-${environment}-${body.id}`));
      return body.id;
    }

    it('come to the same end, whichever step the process was killed before or behind; and one that is not carried out is told', async () => {
      for (const moment of [...KILLED_AT, ...world.alsoAt]) {
        const id = await givenPerson();
        const erasure = `/admin/users/${id}/erasure`;
        writeFileSync(diesAt, moment);
        await ask('POST', erasure).catch(() => null);
        expect([moment, (await suite.ended).signal]).toEqual([moment, 'SIGKILL']);
        suite = await SuiteProcess.start(variables);
        // Nobody was told, and nothing is on record.
        if (moment === 'before the fact') expect((await ask('POST', erasure)).status).toBe(202);
        await eventually(async () => expect([moment, await addressOf(id), (await ask('GET', `${USERS}/${id}`)).status]).toEqual([moment, '', 404]), 30_000);
        await until(() => world.isErased(`person.user-${environment}-${id}`), 30_000);
      }
      // One that nobody has come to yet.
      const last = await givenPerson();
      await suite.stop();
      expect(await gatehouse(variables, 'erase', 'user', last)).toMatchObject({ code: 0, stderr: '' });
      const unfinished = await gatehouse(variables, 'verify');
      expect([unfinished.code, unfinished.stderr]).toEqual([
        3,
        expect.stringContaining(`user-${environment}-${last}) asks for an erasure that is not carried out`),
      ]);
      suite = await SuiteProcess.start(variables);
      await until(() => world.isErased(`person.user-${environment}-${last}`), 30_000);
      await eventually(async () => expect(await addressOf(last)).toBe(''), 30_000);
      await suite.stop();
      for (const moment of world.copiedAt) {
        writeFileSync(diesAt, moment);
        expect([moment, (await gatehouse(variables, 'environments', 'list')).signal]).toEqual([moment, 'SIGKILL']);
      }
      expect(await gatehouse(variables, 'rebuild', '--check')).toMatchObject({ code: 0, stderr: '' });
      expect(await gatehouse(variables, 'verify')).toMatchObject({ code: 0, stderr: '' });
      expect(await world.found(canaries)).toEqual({});
    }, 400_000);
  });
}

killed('embedded', async (root) => {
  const variables = { DATA_DIR: join(root, 'data'), DATA_MIN_FREE: '0' };
  return {
    variables,
    alsoAt: ['before the new keys', 'after the new keys'],
    copiedAt: ['before the new views', 'after the new views', 'before the debt', 'after the debt'],
    isErased: async (purpose) => {
      const keys = await LmdbKeyStore.openForReading(join(variables.DATA_DIR, 'keys'), [randomBytes(32).toString('base64')]);
      return (await keys.erasedAmong([purpose])).size === 1;
    },
    // Behind what says that it is a key, and which master key it is wrapped by.
    keyOf: async (purpose) => (await new ErasableForReading(join(variables.DATA_DIR, 'keys')).getMany([purpose]))[0]!.subarray(9),
    found: async (canaries) => canaries.foundInDirectory(variables.DATA_DIR),
    close: async () => {},
  };
});

const [eventstore, kafka, mongodb] = [await givenEventstore(), await givenKafka(), await givenMongodb()];
if (eventstore !== null && kafka !== null && mongodb !== null)
  killed('on the engines of a cluster', async (root) => {
    const client = await new MongoClient(mongodb).connect();
    const INSTALLATION = `erased-${randomBytes(6).toString('hex')}`;
    const engines = { EVENTSTORE_URL: eventstore, KAFKA_BROKERS: kafka, MONGODB_URL: mongodb, KAFKA_REPLICATION: '1', INSTALLATION };
    const keys = () => client.db().collection<{ _id: string; wrapped?: string; erased?: true }>('keys');
    return {
      variables: { DATA_DIR: join(root, 'data'), ...engines },
      alsoAt: ['after one tombstone'],
      copiedAt: [],
      isErased: async (purpose) => (await keys().findOne({ _id: purpose }))?.erased === true,
      keyOf: async (purpose) => Buffer.from((await keys().findOne({ _id: purpose }))!.wrapped!, 'base64'),
      found: async (canaries) => {
        const found: Record<string, readonly string[]> = {};
        for (const collection of await client.db().collections()) {
          const names = canaries.foundIn(JSON.stringify(await collection.find().toArray()));
          if (names.length > 0) found[collection.collectionName] = names;
        }
        return found;
      },
      close: () => client.close(),
    };
  });
