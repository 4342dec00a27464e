import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { DirectoryConsumer } from '#libs/testing/src/directory-consumer';
import { givenEventstore, givenKafka, givenMongodb, givenS3 } from '#libs/testing/src/engines/given';
import { LossyWay } from '#libs/testing/src/lossy-way';
import { SuiteProcess } from '#libs/testing/src/process';
import { seededNumbers, seedOf } from '#libs/testing/src/seed';
import { eventually, until } from '#libs/testing/src/until';

// oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
type Body = any;
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** `HURT_DIRECTORIES=3000 node run.mjs working test/hurt-directories.spec.ts` */
const PEOPLE = Number(environmentVariables()['HURT_DIRECTORIES'] ?? 600);
const GROUPS = 12;
/** A lease lasts 3 s. */
const STANDS_STILL_MS = 5_000;
const NO_ANSWERS_MS = 300;
const LONGEST_BETWEEN_MS = 700;
const ANSWERED_MS = 20_000;
const QUIET_MS = 120_000;
/**
 * What was told stays told, sealed by keys, and what a product asked is shown for some days. Where a directory lay, and that its memberships ended with it, is known for ever; a user names
 * under which keys anything of them was sealed, so that an erasure reaches it.
 */
const STAYS = /^(?:keys|short_lived|rows\.(?:feed|users|directory_addresses|authorization_ended_directories)-v[\d.]+)$/;
const NDJSON = 'application/x-ndjson';

const [eventstore, kafka, mongodb, s3] = [await givenEventstore(), await givenKafka(), await givenMongodb(), await givenS3()];
const engines = eventstore === null || kafka === null || mongodb === null || s3 === null ? null : { eventstore, kafka, mongodb, s3 };

(engines === null ? describe.skip : describe)('directories of two replicas that are killed, stand still, and are not answered by their engines', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-hurt-directories-'));
  const key = `sk_${randomBytes(32).toString('base64url')}`;
  const ways: Record<string, LossyWay> = {};
  let variables: Readonly<Record<string, string>>;
  let replicas: SuiteProcess[] = [];
  let rows: MongoClient;
  let database: string;

  beforeAll(async () => {
    const led: Record<string, string> = {};
    for (const [name, address] of Object.entries({ eventstore: engines!.eventstore, mongodb: engines!.mongodb, s3: engines!.s3.endpoint })) {
      const to = await LossyWay.to(address);
      [ways[name], led[name]] = [to.way, to.address];
    }
    variables = {
      DATA_DIR: join(root, 'data'),
      ...engines!.s3.settings,
      S3_ENDPOINT: led['s3']!,
      EVENTSTORE_URL: led['eventstore']!,
      MONGODB_URL: led['mongodb']!,
      KAFKA_BROKERS: engines!.kafka,
      KAFKA_REPLICATION: '1',
      INSTALLATION: `hurt-${randomBytes(6).toString('hex')}`,
      GATEHOUSE_API_KEY: key,
      MASTER_KEYS: randomBytes(32).toString('base64'),
      DIRECTORY_USERS_RATE_LIMIT: '10000',
    };
    replicas = [await SuiteProcess.start(variables), await SuiteProcess.start(variables)];
    rows = await MongoClient.connect(engines!.mongodb);
    database = new URL(engines!.mongodb.replace('mongodb:', 'http:')).pathname.slice(1);
  }, 120_000);
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.killHard()));
    await Promise.all(Object.values(ways).map((way) => way.close()));
    await rows?.close();
    rmSync(root, { recursive: true });
  }, 60_000);

  const chosen = seededNumbers(seedOf('hurt directories'));
  let turn = 0;
  /** As a client that asks again, of whoever answers, for as long as it does not know what became of it. */
  async function ask(
    method: Method,
    path: string,
    body?: object | string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly status: number; readonly body: Body }> {
    const own = {
      Authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(method === 'POST' && { 'Idempotency-Key': randomUUID() }),
    };
    for (const deadline = Date.now() + QUIET_MS; ; await pause(100)) {
      const replica = replicas[turn++ % replicas.length]!;
      const answer = await fetch(replica.url + path, {
        method,
        headers: { ...own, ...headers },
        body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWERED_MS),
      }).catch(() => null);
      const text = await answer?.text().catch(() => null);
      if (answer === null || answer.status >= 500 || answer.status === 429 || text == null || (answer.status === 409 && text.includes('idempotency'))) {
        if (Date.now() > deadline) throw new Error(`${method} ${path} was not answered: ${answer?.status} ${text}`);
        continue;
      }
      return { status: answer.status, body: text === '' ? null : JSON.parse(text) };
    }
  }
  const post = async (path: string, body?: object): Promise<Body> => {
    const answer = await ask('POST', path, body);
    expect([path, answer.status < 300, answer.body]).toEqual([path, true, answer.body]);
    return answer.body;
  };

  /** The work goes on; what stands still wakes up, and who is killed is started again. */
  const faults = {
    'stands still': async (work: string) => {
      const replica = await holderOf(work);
      process.kill(replica.pid, 'SIGSTOP');
      await pause(STANDS_STILL_MS);
      process.kill(replica.pid, 'SIGCONT');
    },
    'is killed': async (work: string) => {
      const replica = await holderOf(work);
      await replica.killHard();
      const place = replicas.indexOf(replica);
      replicas[place] = await SuiteProcess.start(variables);
    },
    'is not answered by the log': () => ways['eventstore']!.loseAnswers(NO_ANSWERS_MS),
    'is not answered by the rows': () => ways['mongodb']!.loseAnswers(NO_ANSWERS_MS),
    'is not answered by the files': () => ways['s3']!.loseAnswers(NO_ANSWERS_MS),
  };
  type Fault = keyof typeof faults;
  const metricsOf = async ({ url }: SuiteProcess): Promise<string> => {
    const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(ANSWERED_MS) }).catch(() => null);
    return (await answer?.text().catch(() => '')) ?? '';
  };
  async function holderOf(work: string): Promise<SuiteProcess> {
    for (const deadline = Date.now() + QUIET_MS; ; await pause(50)) {
      for (const replica of replicas) if ((await metricsOf(replica)).includes(`gatehouse_lease_held{work="${work}"} 1`)) return replica;
      if (Date.now() > deadline) throw new Error(`Nobody holds ${work}.`);
    }
  }
  const hurt = async (work: string, ...kinds: readonly Fault[]): Promise<void> => {
    for (const kind of kinds) {
      await pause(chosen(LONGEST_BETWEEN_MS));
      await faults[kind](work);
    }
  };
  /** Nothing was passed over for good, and nobody waits for anything. */
  async function expectWhole(): Promise<void> {
    for (const replica of replicas) {
      const told = await metricsOf(replica);
      const bad = [...told.matchAll(/^gatehouse_(?:reaction_skipped_total|reaction_stopped|forwarder_skipped_total)\{[^}]*\} (?!0$).*$/gm)].map(
        ([line]) => line,
      );
      expect(bad).toEqual([]);
    }
  }

  async function given(policy: object, people: number, groups: number) {
    const domain = `${randomUUID()}.test`;
    const organization: string = (await post('/organizations', { name: 'Acme', domain_data: [{ domain, state: 'verified' }] })).id;
    const { id } = await post('/admin/directories', { organization_id: organization, type: 'sftp', name: 'Acme', policy });
    const { token } = await post(`/admin/directories/${id}/tokens`);
    const keys = Array.from({ length: people }, (_, index) => `p${index}`);
    const groupsOf: Record<string, readonly string[]> = Object.fromEntries(
      Array.from({ length: groups }, (_, group) => [`g${group}`, keys.filter((_key, index) => (index + group) % 5 === 0)]),
    );
    const lines = (title: string) => [
      ...keys.map((each) => ({ type: 'user', id: each, email: `${each}@${domain}`, job_title: title })),
      ...Object.entries(groupsOf).map(([name, members]) => ({ type: 'group', id: name, name, members })),
    ];
    const consumer = new DirectoryConsumer(async (after) => {
      const { status, body } = await ask('GET', `/events?organization_id=${organization}&limit=100${after && `&after=${after}`}`);
      expect(status).toBe(200);
      return body.data;
    });
    const send = async (title: string): Promise<Body> => {
      const content = lines(title)
        .map((line) => `${JSON.stringify(line)}\n`)
        .join('');
      const { status, body } = await ask('PUT', `/admin/directories/${id}/snapshot?force=true`, content, { 'Content-Type': NDJSON });
      expect([202, 409]).toContain(status);
      return status === 202 ? body.id : body.entity_id;
    };
    const over = (run: string): Promise<Body> =>
      eventually(async () => {
        const { body } = await ask('GET', `/admin/directories/${id}/runs/${run}`);
        expect(body).toMatchObject({ phase: 'completed', error_count: 0 });
        return body;
      }, QUIET_MS);
    const scim = (method: Method, path: string, body?: object) =>
      ask(method, `/scim/v2/${id}${path}`, body, { Authorization: `Bearer ${token}`, 'Content-Type': 'application/scim+json' });
    const quiet = <Known>(known: () => Known, expected: Known): Promise<void> =>
      eventually(async () => {
        await consumer.read();
        expect(known()).toEqual(expected);
      }, QUIET_MS);
    return { id, organization, domain, keys, groupsOf, consumer, send, over, scim, quiet };
  }

  const memberships = async (organization: string): Promise<readonly Body[]> => {
    const found: Body[] = [];
    for (let after = ''; ;) {
      const path = `/user_management/organization_memberships?organization_id=${organization}&statuses=active,inactive,pending&limit=100${after}`;
      const { data, list_metadata } = (await ask('GET', path)).body;
      found.push(...data);
      if (list_metadata.after === null) return found;
      after = `&after=${list_metadata.after}`;
    }
  };

  it.each(['end', 'release'] as const)(
    'go with everything that hangs on them, memberships by %s',
    async (on_delete) => {
      const { id, organization, consumer, keys, groupsOf, send, over, quiet } = await given({ follows: 'memberships_and_roles', on_delete }, PEOPLE, GROUPS);
      await over(await send('first'));
      const sorted = Object.fromEntries(Object.entries(groupsOf).map(([name, members]) => [name, [...members].sort()]));
      await quiet(() => ({ people: consumer.people.size, members: consumer.members, memberships: consumer.memberships.size }), {
        people: keys.length,
        members: sorted,
        memberships: keys.length,
      });
      const ids = [...consumer.people.keys(), ...consumer.groups.keys()];
      expect((await ask('DELETE', `/directories/${id}`)).status).toBe(202);
      await hurt('reaction.follow-policies-of-directories', 'stands still', 'is not answered by the rows', 'is killed');
      await hurt('reaction.end-directory-users-with-their-directory', 'is not answered by the log', 'stands still', 'is killed');
      const left = on_delete === 'end' ? 0 : keys.length;
      await quiet(() => ({ people: consumer.people.size, groups: consumer.groups.size, memberships: consumer.memberships.size }), {
        people: 0,
        groups: 0,
        memberships: left,
      });
      await quiet(() => [...consumer.memberships.values()].filter(({ isManaged }) => isManaged).length, 0);
      const shown = await memberships(organization);
      expect([shown.length, shown.filter(({ directory_managed }) => directory_managed).length]).toEqual([left, 0]);
      // Nothing of people, groups and members is left in any row, nor a file or a walk that was interrupted.
      const all = new Set(ids);
      await eventually(async () => expect(await leftOf(id, all)).toEqual([]), QUIET_MS);
      await expectWhole();
    },
    600_000,
  );

  /** Rows that tell of a directory that is gone, or of who was in it; deleted rows keep their places, and nothing else. */
  async function leftOf(directory: string, ids: ReadonlySet<string>): Promise<readonly string[]> {
    const found: string[] = [];
    const db = rows.db(database);
    for (const { name } of await db.listCollections().toArray()) {
      if (STAYS.test(name)) continue;
      for await (const row of db.collection(name).find()) {
        if (row['row']?.text === null) continue;
        const text = JSON.stringify(row);
        const named = [...text.matchAll(/directory_(?:user|group)_[0-9A-Z]{26}/g)].some(([each]) => ids.has(each));
        if ((named || text.includes(directory)) && !found.includes(name)) found.push(name);
      }
    }
    return found;
  }

  it('tell each person once of each group, however many join and leave', async () => {
    const { consumer, keys, send, over, scim, quiet } = await given({}, PEOPLE, 0);
    await over(await send('first'));
    await quiet(() => consumer.people.size, keys.length);
    const people = [...consumer.people.keys()];
    const { id: group } = (await scim('POST', '/Groups', { displayName: 'all' })).body;
    const change = async (op: 'add' | 'remove', members: readonly string[]): Promise<void> => {
      const { status } = await scim('PATCH', `/Groups/${group}`, { Operations: [{ op, path: 'members', value: members.map((value) => ({ value })) }] });
      expect(status).toBe(204);
    };
    const work = 'reaction.tell-of-directory-group-members';
    const [first, second] = [people.slice(0, PEOPLE / 2), people.slice(PEOPLE / 2)];
    const changing = (async () => {
      await change('add', people);
      await change('remove', first);
      await change('add', first);
      await change('remove', second);
      await pause(2_000);
      await change('remove', first);
      await change('add', second);
      await change('add', first);
      await change('remove', second);
    })();
    await hurt(work, 'stands still', 'is not answered by the log', 'is killed', 'is not answered by the rows', 'stands still');
    await changing;
    const expected = first.map((id) => consumer.people.get(id)!.key).sort();
    await quiet(() => consumer.members, { all: expected });
    const answered = (await scim('GET', `/Groups/${group}`)).body.members.map(({ value }: Body) => value).sort();
    expect(answered).toEqual([...first].sort());
    await expectWhole();
  }, 600_000);

  it('are brought to what a listing says', async () => {
    const { id, consumer, keys, send, over, quiet } = await given({ follows: 'memberships' }, PEOPLE, 3);
    await over(await send('first'));
    await quiet(() => consumer.memberships.size, keys.length);
    const run = await send('second');
    await hurt('directory-listings', 'is not answered by the files', 'stands still', 'is not answered by the log', 'is killed', 'is not answered by the rows');
    expect(await over(run)).toMatchObject({ users: { listed: keys.length, removed: 0 } });
    await quiet(() => [...new Set([...consumer.people.values()].map(({ title }) => title))], ['second']);
    expect((await ask('GET', `/directories/${id}`)).body.metadata).toEqual({ users: { active: keys.length, inactive: 0 }, groups: 3 });
    expect(consumer.memberships.size).toBe(keys.length);
    await expectWhole();
  }, 600_000);

  it('lose those who are erased, and nobody else, while their product goes on writing', async () => {
    const { id, consumer, keys, organization, send, over, scim, quiet } = await given({ follows: 'memberships' }, 40, 1);
    await over(await send('first'));
    await quiet(() => consumer.memberships.size, keys.length);
    const people = [...consumer.people.keys()];
    const users = new Map((await memberships(organization)).map(({ user, user_id }: Body) => [user.email.split('@')[0], user_id]));
    const erased = people.filter((_, index) => index % 2 === 0);
    const writing = new AbortController();
    const refusals = new Set<string>();
    const write = async (person: string): Promise<void> => {
      for (let round = 0; !writing.signal.aborted; round++) {
        const { status } = await scim('PATCH', `/Users/${person}`, { Operations: [{ op: 'replace', path: 'title', value: `${round} ${randomUUID()}` }] });
        expect([200, 404]).toContain(status);
        if (status === 404) return void refusals.add(person);
      }
    };
    const written = Promise.all(people.map(write));
    const erasing = (async () => {
      for (const person of erased) {
        const user = users.get(consumer.people.get(person)!.key)!;
        expect((await ask('POST', `/admin/users/${user}/erasure`)).status).toBe(202);
        await pause(150);
      }
    })();
    await hurt('reaction.end-erased-directory-users', 'is not answered by the log', 'stands still', 'is killed', 'is not answered by the rows');
    await erasing;
    await until(() => erased.every((person) => refusals.has(person)), QUIET_MS);
    writing.abort();
    await written;
    expect([...refusals].sort()).toEqual([...erased].sort());
    await quiet(() => [...consumer.people.keys()].sort(), people.filter((person) => !erased.includes(person)).sort());
    await quiet(() => consumer.memberships.size, keys.length - erased.length);
    expect((await ask('GET', `/directories/${id}`)).body.metadata.users.active).toBe(keys.length - erased.length);
    await eventually(async () => {
      const { data } = (await ask('GET', `/directory_users?directory=${id}&limit=100`)).body;
      expect(data.map((each: Body) => [each.id, each.job_title]).sort()).toEqual([...consumer.people].map(([each, { title }]) => [each, title]).sort());
    }, QUIET_MS);
    await expectWhole();
  }, 600_000);

  it('give the roles that are mapped at last, to whoever is in the groups at last', async () => {
    const { id, consumer, keys, organization, send, over, scim, quiet } = await given({ follows: 'memberships_and_roles' }, 60, 0);
    await over(await send('first'));
    await quiet(() => consumer.memberships.size, keys.length);
    const people = [...consumer.people.keys()];
    for (const slug of ['org-one', 'org-two']) await post(`/authorization/organizations/${organization}/roles`, { slug, name: slug });
    const groups: string[] = [];
    for (const displayName of ['red', 'blue']) groups.push((await scim('POST', '/Groups', { displayName })).body.id);
    const map = async (...pairs: readonly (readonly [number, string])[]): Promise<void> => {
      const role_mappings = pairs.map(([group, role_slug]) => ({ group_id: groups[group]!, role_slug }));
      const answer = await ask('PUT', `/admin/directories/${id}/role_mappings`, { role_mappings });
      expect([answer.status, answer.body.code]).toEqual([200, undefined]);
    };
    const set = async (group: number, members: readonly string[]): Promise<void> => {
      const Operations = [{ op: 'replace', path: 'members', value: members.map((value) => ({ value })) }];
      expect((await scim('PATCH', `/Groups/${groups[group]!}`, { Operations })).status).toBe(204);
    };
    const changing = new AbortController();
    const mapping = (async () => {
      for (let round = 0; !changing.signal.aborted; round++) {
        await map([0, round % 2 === 0 ? 'org-one' : 'org-two'], [1, round % 3 === 0 ? 'admin' : 'org-two']);
        await pause(300);
      }
      await map([0, 'org-one'], [1, 'org-two']);
    })();
    const joining = (async () => {
      for (let round = 0; !changing.signal.aborted; round++) {
        await set(
          round % 2,
          people.filter((_, index) => (index + round) % 3 === 0),
        );
        await pause(200);
      }
      await set(0, people.slice(0, 20));
      await set(1, people.slice(20, 40));
    })();
    await hurt('reaction.follow-mapped-roles', 'stands still', 'is not answered by the log', 'is killed', 'is not answered by the rows', 'stands still');
    changing.abort();
    await Promise.all([mapping, joining]);
    const roleOf = (index: number): string => (index < 20 ? 'org-one' : index < 40 ? 'org-two' : 'member');
    const expected = Object.fromEntries(people.map((person, index) => [consumer.people.get(person)!.key, roleOf(index)]));
    let shown: readonly Body[] = [];
    await eventually(async () => {
      shown = await memberships(organization);
      expect(Object.fromEntries(shown.map(({ user, role }) => [user.email.split('@')[0], role.slug]))).toEqual(expected);
    }, QUIET_MS);
    await quiet(
      () => Object.fromEntries([...consumer.memberships].map(([each, { role }]) => [each, role])),
      Object.fromEntries(shown.map((each) => [each.id, each.role.slug])),
    );
    await expectWhole();
  }, 600_000);
});
