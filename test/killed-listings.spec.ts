import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DirectoryConsumer } from '#libs/testing/src/directory-consumer';
import { givenEventstore, givenKafka, givenMongodb, givenS3 } from '#libs/testing/src/engines/given';
import { ROOT, SuiteProcess } from '#libs/testing/src/process';
import { eventually } from '#libs/testing/src/until';

const MOMENTS = [
  'before the run is taken',
  'after the run is taken',
  'after the run is queued',
  'after a part is compared',
  'after groups are compared',
  'after the directory is linked',
  'before the comparison is accepted',
  'after the comparison is accepted',
  'before a group goes',
  'after a group goes',
  'after a person goes',
  'before a person comes',
  'after the last person comes',
  'before a group comes',
  'after a group comes',
  'before the end is stored',
  'after the end is stored',
  'after the run is left',
];
const DOMAIN = 'killed.test';
const PEOPLE = 250;

// oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
type Body = any;

interface Listing {
  readonly people: readonly string[];
  readonly groups: Readonly<Record<string, readonly string[]>>;
  readonly lines: string;
}

/** One of two that differ in who is there, in what is said of each, and in the groups. */
function listing(turn: number): Listing {
  const from = (turn % 2) * 100;
  const people = Array.from({ length: PEOPLE }, (_, index) => `p${from + index}`);
  const groups = {
    all: people.slice(0, 120),
    some: people.slice(50, 60),
    [`only-${turn % 2}`]: people.slice(-3),
  };
  const lines = [
    ...people.map((id) => JSON.stringify({ type: 'user', id, email: `${id}@${DOMAIN}`, job_title: `title ${turn}` })),
    ...Object.entries(groups).map(([name, members]) => JSON.stringify({ type: 'group', id: name, name, members })),
  ];
  return { people, groups, lines: `${lines.join('\n')}\n` };
}

interface World {
  readonly variables: Readonly<Record<string, string>>;
  /** How many processes there are: where one dies, another goes on. */
  readonly replicas: number;
}

/** A product that is killed at each step of a listing, each time of another one. */
function killed(name: string, given: (directory: string) => Promise<World>): void {
  describe(`full listings that a kill cuts off, ${name}`, () => {
    const root = mkdtempSync(join(tmpdir(), 'gatehouse-killed-listings-'));
    const diesAt = join(root, 'dies-at');
    const key = `sk_${randomBytes(32).toString('base64url')}`;
    let variables: Readonly<Record<string, string>>;
    let suites: SuiteProcess[] = [];

    beforeAll(async () => {
      const { replicas, ...world } = await given(root);
      variables = {
        ...world.variables,
        GATEHOUSE_API_KEY: key,
        MASTER_KEYS: randomBytes(32).toString('base64'),
        DIES_AT: diesAt,
        NODE_OPTIONS: `--import=${ROOT}dist/apps/directory-sync/src/testing/dying-listing.js`,
      };
      for (let replica = 0; replica < replicas; replica++) suites.push(await SuiteProcess.start(variables));
    }, 120_000);
    afterAll(async () => {
      await Promise.all(suites.map((suite) => suite.killHard()));
      rmSync(root, { recursive: true });
    });

    async function ask(method: string, path: string, body?: object | string, headers: Readonly<Record<string, string>> = {}): Promise<Body> {
      const response = await fetch(suites[0]!.url + path, {
        method,
        headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
        body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
      });
      const text = await response.text();
      return { status: response.status, body: text === '' ? null : JSON.parse(text) };
    }

    /** Whoever dies is started again; the others go on meanwhile. */
    async function oneDies(moment: string): Promise<void> {
      const dead = await Promise.race(suites.map(async (suite) => ({ suite, ...(await suite.ended) })));
      expect([moment, dead.signal]).toEqual([moment, 'SIGKILL']);
      suites = [...suites.filter((suite) => suite !== dead.suite), await SuiteProcess.start(variables)];
    }

    it('end as they would have, and tell of everything once, whichever step the process was killed before or behind', async () => {
      const { id: organization_id } = (await ask('POST', '/organizations', { name: 'Acme', domain_data: [{ domain: DOMAIN, state: 'verified' }] })).body;
      const fields = { organization_id, type: 'sftp', name: 'Acme HR', policy: { follows: 'memberships' } };
      const directory = `/admin/directories/${(await ask('POST', '/admin/directories', fields)).body.id}`;
      const consumer = new DirectoryConsumer(async (after) => {
        const { status, body } = await ask('GET', `/events?organization_id=${organization_id}&limit=100${after && `&after=${after}`}`);
        expect(status).toBe(200);
        return body.data;
      });
      /** As a listing says it. */
      const known = () => {
        const people = [...consumer.people.values()];
        const titles = [...new Set(people.map(({ title }) => title))];
        return { people: people.map(({ key }) => key).sort(), titles, groups: consumer.members, memberships: consumer.memberships.size };
      };
      let before: Listing = { people: [], groups: {}, lines: '' };
      for (const [turn, moment] of MOMENTS.entries()) {
        const { people, groups, lines } = listing(turn);
        const send = () => ask('PUT', `${directory}/snapshot?force=true`, lines, { 'Content-Type': 'application/x-ndjson' });
        writeFileSync(diesAt, moment);
        const dying = oneDies(moment);
        const first = await send().catch(() => null);
        await dying;
        /** A client that was not answered sends it again, and is told of the run that goes on. */
        const id: string = await eventually(async () => {
          const { status, body } = first?.status === 202 ? first : await send();
          // Whoever ended before it was that of the directory keeps nobody from another.
          if (moment === 'before the run is taken') expect(status).toBe(202);
          expect([moment, status, body.code]).toEqual([moment, status === 202 ? 202 : 409, status === 202 ? undefined : 'directory_run_in_progress']);
          return status === 202 ? body.id : body.entity_id;
        }, 30_000);
        const run = await eventually(async () => {
          const { body } = await ask('GET', `${directory}/runs/${id}`);
          expect([moment, body.phase]).toEqual([moment, 'completed']);
          return body;
        }, 60_000);
        const stay = people.filter((each) => before.people.includes(each)).length;
        const counts = { created: PEOPLE - stay, updated: stay, unchanged: 0, removed: before.people.length - stay };
        // Where the run that nobody was told of was over by then, what was sent again changes nothing.
        const isAgain = first === null && run.users.unchanged === PEOPLE;
        const users = isAgain ? {} : counts;
        expect({ moment, ...run }).toMatchObject({ moment, error_count: 0, errors: [], users: { listed: PEOPLE, ...users } });
        if (!isAgain) expect(run.groups).toMatchObject({ listed: 3, created: before.people.length === 0 ? 3 : 1, removed: before.people.length === 0 ? 0 : 1 });
        const expected = {
          people: people.toSorted(),
          titles: [`title ${turn}`],
          groups: Object.fromEntries(Object.entries(groups).map(([group, members]) => [group, members.toSorted()])),
          memberships: PEOPLE,
        };
        await eventually(async () => {
          await consumer.read();
          expect({ moment, ...known() }).toEqual({ moment, ...expected });
        }, 60_000);
        const { body: shown } = await ask('GET', directory.replace('/admin', ''));
        expect(shown.metadata).toEqual({ users: { active: PEOPLE, inactive: 0 }, groups: 3 });
        before = listing(turn);
      }
      // Nothing is told late.
      const last = known();
      await consumer.read();
      expect(known()).toEqual(last);
    }, 900_000);
  });
}

killed('embedded', async (root) => ({ variables: { DATA_DIR: join(root, 'data'), DATA_MIN_FREE: '0' }, replicas: 1 }));

const [eventstore, kafka, mongodb, s3] = [await givenEventstore(), await givenKafka(), await givenMongodb(), await givenS3()];
if (eventstore !== null && kafka !== null && mongodb !== null && s3 !== null)
  killed('by two replicas on the engines of a cluster', async (root) => {
    const engines = { EVENTSTORE_URL: eventstore, KAFKA_BROKERS: kafka, MONGODB_URL: mongodb, KAFKA_REPLICATION: '1' };
    return {
      variables: { DATA_DIR: join(root, 'data'), ...engines, INSTALLATION: `listings-${randomBytes(6).toString('hex')}`, ...s3.settings },
      replicas: 2,
    };
  });
