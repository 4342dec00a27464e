import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { standingsContract } from '#apps/identity/src/directory-links/directory-standings.contract';
import { SystemClock } from '#libs/platform/src/clock';
import { readSettings } from '#libs/platform/src/config/setting';
import { EngineSettings } from '#libs/platform/src/config/settings';
import { PinoLog } from '#libs/platform/src/pino.log';
import { MongodbStorage } from '#libs/platform/src/storage/mongodb-storage';
import { MongodbShortLived } from '#libs/read-models/src/mongodb.short-lived';
import { Canaries } from '#libs/testing/src/canaries';
import { SharedCluster } from '#libs/testing/src/cluster/shared-cluster';
import { messagesInKafka } from '#libs/testing/src/kafka-messages';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

/** What brings users and memberships to where directories have their people. */
const FOLLOWING = ['reaction.follow-people-of-directories', 'reaction.follow-policies-of-directories', 'reaction.follow-mapped-roles'];
const HOLDER = 'spec of directories';
/** Longer than a test takes. */
const HELD_MS = 120_000;
const ASK_EVERY_MS = 20;

let cluster: SharedCluster;
let storage: MongodbStorage;
let leases: MongodbShortLived;
/** Under which tokens the spec holds the leases. */
const held = new Map<string, number>();

beforeAll(async () => {
  cluster = await SharedCluster.get();
  const { MONGODB_URL, INSTALLATION } = readSettings(EngineSettings, cluster.settings);
  storage = await MongodbStorage.connect({ url: MONGODB_URL!, database: INSTALLATION, log: new PinoLog({ level: 'silent', readable: false }) });
  leases = new MongodbShortLived(storage, new SystemClock());
}, 180_000);
afterAll(() => storage.close());

/** Both replicas hang for as long as their leases last: by the time that they go on, the leases are the spec's. */
async function stopFollowing(): Promise<void> {
  const replicas = cluster.processes.filter(({ app }) => app === 'identity');
  await Promise.all(replicas.map((replica) => replica.pause()));
  try {
    while (held.size < FOLLOWING.length) {
      for (const name of FOLLOWING.filter((each) => !held.has(each))) {
        const lease = await leases.lease(name, HOLDER, HELD_MS);
        if (lease !== null) held.set(name, lease.token);
      }
      await pause(ASK_EVERY_MS);
    }
  } finally {
    await Promise.all(replicas.map((replica) => replica.resume()));
  }
}

async function goOn(): Promise<void> {
  for (const [name, token] of held) await leases.release(name, HOLDER, token);
  held.clear();
}

standingsContract('on a cluster', async () => {
  const suite = await givenSuite();
  return { suite, client_id: await suite.clientIdOf(suite), head: () => suite.head(), stopFollowing, goOn };
});

describe('what Kafka is told of directories', () => {
  const secrets = new Canaries();
  const personal = new Canaries();
  let suite: GivenSuite;
  beforeAll(async () => void (suite = await givenSuite()), 60_000);

  it('holds no secret, and what is personal in public events alone', async () => {
    const domain = `${randomUUID()}.test`;
    const { id: organization_id } = await suite.post('/organizations', { name: 'Acme', domain_data: [{ domain, state: 'verified' }] }).expect(201);
    const policy = { follows: 'memberships_and_roles' };
    const { id } = await suite.post('/admin/directories', { organization_id, type: 'okta scim v2.0', name: 'Okta', policy }).expect(201);
    const { token } = await suite.post(`/admin/directories/${id}/tokens`).expect(201);
    secrets.add('token', token);
    const password = secrets.add('password', `ride-a-zebra-${randomUUID()}`);
    const userName = personal.add('address', `${randomUUID()}@${domain}`);
    const title = personal.add('title', `Title ${randomUUID()}`);
    const body = { userName, password, active: true, name: { givenName: personal.add('name', `Zoë ${randomUUID()}`) } };
    const { id: person } = (await suite.scim('POST', id, '/Users', token, { body })).body;
    await suite.scim('POST', id, '/Groups', token, { body: { displayName: 'All', members: [{ value: person }] } });
    await suite.scim('PATCH', id, `/Users/${person}`, token, { body: { Operations: [{ op: 'replace', value: { title, password } }] } });
    await suite.eventually(`/directory_users/${person}`, { link_state: 'linked' });
    const line = { type: 'user', id: 'listed', email: personal.add('listed', `${randomUUID()}@${domain}`), job_title: title };
    const listing = `${JSON.stringify(line)}\n`;
    await suite.put(`/admin/directories/${id}/snapshot?force=true`, listing, { 'Content-Type': 'application/x-ndjson' }).expect(202);
    await suite.eventually(`/directory_users?directory=${id}&idp_id=listed`, { data: [{ idp_id: 'listed' }] });

    const { brokers, ...credentials } = cluster.kafkaClient();
    const messages = await eventually(async () => {
      const found = await messagesInKafka(brokers, (topic) => !topic.startsWith('__'), credentials);
      const told = found.filter(({ value, headers }) => JSON.stringify(headers).includes('dsync.user.created') && personal.foundIn(value).length > 0);
      expect(told.length).toBeGreaterThanOrEqual(2);
      return found;
    }, 30_000);
    const texts = (published: (typeof messages)[number]): string => JSON.stringify(published);
    expect(messages.flatMap((message) => secrets.foundIn(texts(message)))).toEqual([]);
    const isPublic = ({ topic }: (typeof messages)[number]): boolean => /\.environment_[^.]+\.[^.]+$/.test(topic);
    const elsewhere = messages.filter((message) => !isPublic(message));
    expect(elsewhere.some((message) => texts(message).includes(person))).toBe(true);
    expect(elsewhere.flatMap((message) => personal.foundIn(texts(message)))).toEqual([]);
  }, 90_000);
});
