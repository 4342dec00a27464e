import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventstoredbEventStore } from '#libs/event-sourcing/src/eventstoredb/eventstoredb.event-store';
import { START, type NewEvent, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import { APPS, ClusterProcess } from '#libs/testing/src/cluster/cluster-process';
import { addressesOf, place, planned } from '#libs/testing/src/cluster/plan';
import { givenEventstore, givenKafka, givenMongodb } from '#libs/testing/src/engines/given';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { messagesInKafka } from '#libs/testing/src/kafka-messages';
import { gatehouse, ROOT, SuiteProcess } from '#libs/testing/src/process';
import { recordsAfter } from '#libs/testing/src/records-after';
import { eventually } from '#libs/testing/src/until';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';

const [kafka, mongodb, eventstore] = [await givenKafka(), await givenMongodb(), await givenEventstore()];
const isThere = kafka !== null && mongodb !== null && eventstore !== null;

type Settings = Readonly<Record<string, string>>;

const LATER = new URL(`file://${ROOT}dist/libs/testing/src/later-release.js`).href;
/** The releases, in their order: the next reads a second shape of two facts, and the last writes it. */
const RELEASES = {
  earlier: {},
  next: { NODE_OPTIONS: `--import=${LATER}?writes=1` },
  last: { NODE_OPTIONS: `--import=${LATER}` },
} satisfies Readonly<Record<string, Settings>>;
type Release = keyof typeof RELEASES;

/** Which of two replicas is asked first depends on an id: of so many, both come to be. */
const MANY = 40;
const OWNERS = ['identity', 'authorization'] as const;
/** Views that the earlier release leaves where it comes to a membership in the second shape. */
const BROUGHT_ON = [
  ['identity', ['organization_memberships', 'users-of-organizations']],
  ['authorization', ['authorization_memberships']],
] as const;

const key = `sk_${randomBytes(32).toString('base64url')}`;

// oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
async function ask(url: string, method: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly body: any }> {
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? null : JSON.parse(text) };
}

/** An organization with a role of its own, and a member who holds it. */
interface Given {
  readonly id: string;
  readonly membership: string;
}

async function give(url: string, name: string): Promise<Given> {
  const created = async (path: string, body: unknown): Promise<string> => {
    const answer = await ask(url, 'POST', path, body);
    expect(answer).toMatchObject({ status: 201 });
    return answer.body.id as string;
  };
  const id = await created('/organizations', { name });
  const roles = `/authorization/organizations/${id}/roles`;
  await created(roles, { slug: 'org-own', name: 'Own' });
  expect(await ask(url, 'PUT', `${roles}/org-own/permissions`, { permissions: ['read'] })).toMatchObject({ status: 200 });
  const user_id = await created('/user_management/users', { email: `${newUlid(Date.now())}@acme.test`.toLowerCase() });
  return { id, membership: await created('/user_management/organization_memberships', { user_id, organization_id: id, role_slug: 'org-own' }) };
}

const check = (url: string, { id, membership }: Given, permission_slug: string) =>
  ask(url, 'POST', `/authorization/organization_memberships/${membership}/check`, { permission_slug, resource_id: `authz_resource_${id.slice(-26)}` });

(isThere ? describe : describe.skip)('two releases on one log, of which the later one records in a new shape', () => {
  const installation = `spec-${randomBytes(4).toString('hex')}`;
  const directory = WatchedDirectory.create('rolling-update');
  const processes = new Map<string, ClusterProcess>();
  let start: (name: string, release: Release) => Promise<ClusterProcess>;
  let url: string;
  let log: EventstoredbEventStore;
  let receiver: WebhookReceiver;

  beforeAll(async () => {
    const settings: Settings = {
      INSTALLATION: installation,
      EVENTSTORE_URL: eventstore!,
      MONGODB_URL: Object.assign(new URL(mongodb!), { pathname: '/' }).href,
      KAFKA_BROKERS: kafka!,
      KAFKA_REPLICATION: '1',
      MASTER_KEYS: randomBytes(32).toString('base64'),
      SERVICE_KEY: randomBytes(32).toString('base64url'),
      GATEHOUSE_API_KEY: key,
    };
    const placed = await place({ gateway: 1 }, []);
    const all = { ...settings, ...addressesOf(placed) };
    start = async (name, release) => {
      await processes.get(name)?.stop();
      const plan = planned(
        placed.find((each) => each.name === name)!,
        { ...all, ...RELEASES[release] },
      );
      const process = new ClusterProcess(directory, plan);
      processes.set(name, process);
      await process.start(() => {});
      return process;
    };
    log = await EventstoredbEventStore.connect({ url: eventstore!, installation, log: new PinoLog({ level: 'silent', readable: false }) });
    receiver = await WebhookReceiver.listen();
    ({ url } = (
      await Promise.all(
        ['gateway-1', 'notifications-1', 'directory-sync-1', 'audit-logs-1', 'authorization-1', 'identity-1'].map((name) => start(name, 'earlier')),
      )
    )[0]!);
  }, 120_000);
  afterAll(async () => {
    for (const app of APPS) await Promise.all([...processes.values()].filter((process) => process.app === app).map((process) => process.stop()));
    await receiver.close();
    await log.close();
    directory.remove();
  }, 60_000);

  const at = (name: string): ClusterProcess => processes.get(name)!;
  /** The numbers of a process that are not 0: `name{labels}`. */
  const numbersOf = async (name: string): Promise<ReadonlyMap<string, number>> => {
    const lines = (await (await fetch(`${at(name).operationsUrl}/metrics`)).text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))] as const).filter(([, value]) => value !== 0),
    );
  };
  /** Of what a process says by a metric, the label that tells of what it says it. */
  const saidBy = async (name: string, metric: string, label: string): Promise<readonly string[]> =>
    [...(await numbersOf(name)).keys()]
      .flatMap((each) => (each.startsWith(`gatehouse_${metric}{`) ? [new RegExp(`(?:${label})="([^"]*)"`).exec(each)![1]!] : []))
      .toSorted();
  /** How often the gateway asked another replica because one could not read what it had to. */
  const movedAlong = async (owner: string): Promise<number> =>
    (await numbersOf('gateway-1')).get(`gatehouse_operations_moved_total{owner="${owner}",reason="needs_later_release"}`) ?? 0;

  const records = (): Promise<readonly RecordedEvent[]> => recordsAfter(log, START);
  /** As a process of the last release would, whoever runs, behind the last record of the stream in which this one is. */
  const recordedLater = async (isThere: (record: RecordedEvent) => boolean, type: string, changed: (data: unknown) => object): Promise<void> => {
    const { stream } = (await records()).find(isThere)!;
    const { version, data, subject, meta } = (await log.last(stream))!;
    const at = Date.now();
    const change = changed(data);
    const event: NewEvent = {
      id: newUlid(at),
      type,
      shape: 2,
      data: change,
      subject: { ...(subject as object), ...change },
      public: [{ id: `event_${newUlid(at)}`, name: type }],
      meta: { ...meta, requestId: newUlid(at), commandId: newUlid(at), at },
    };
    await log.append(stream, version, [event]);
  };
  const roleMayMore = ({ id }: Given): Promise<void> =>
    recordedLater(
      ({ type, meta }) => type === 'organization_role.updated' && meta.organization === id,
      'organization_role.updated',
      (data) => {
        const role = data as { readonly id: string; readonly permissions: readonly unknown[] };
        return { id: role.id, permissions: [...role.permissions, write] };
      },
    );
  /** Of an organization of its own, so that which replica is asked is even. */
  const renamed = async (name: string): Promise<number> => {
    const { body } = await ask(url, 'POST', '/organizations', { name: 'Before' });
    return (await ask(url, 'PUT', `/organizations/${body.id}`, { name })).status;
  };
  /** The shapes of what was recorded while something was renamed again and again, until there was more than one. */
  const shapesWritten = async (rename: (turn: number) => Promise<void>): Promise<readonly number[]> => {
    const known = (await records()).length;
    for (let turn = 0; ; turn++) {
      await rename(turn);
      const shapes = new Set((await records()).slice(known).flatMap(({ type, shape }) => (type === 'organization.updated' ? [shape] : [])));
      if (shapes.size > 1 || turn === MANY) return [...shapes].toSorted((one, other) => one - other);
    }
  };
  const namesIn = async (path: string): Promise<readonly string[]> => {
    const answer = await ask(url, 'GET', path);
    expect(answer).toMatchObject({ status: 200 });
    return answer.body.data.map(({ name }: { readonly name: string }) => name);
  };

  /** Known to the earlier release before anything happens. */
  let a: Given;
  let b: Given;
  let write: unknown;
  /** Of which the last release has recorded a change of the membership. */
  let last: Given;

  it('the earlier one stops what would have to read it, and that alone, where nobody else is there', async () => {
    for (const slug of ['read', 'write']) await ask(url, 'POST', '/authorization/permissions', { slug, name: slug });
    ({ id: write } = (await ask(url, 'GET', '/authorization/permissions/write')).body);
    write = { id: write, slug: 'write' };
    await ask(url, 'POST', '/webhook_endpoints', { endpoint_url: receiver.url, events: ['organization.updated', 'user.created'] });
    [a, b] = [await give(url, 'A'), await give(url, 'B')];
    for (const each of [a, b]) expect(await check(url, each, 'write')).toMatchObject({ status: 200, body: { authorized: false } });

    await recordedLater(
      ({ type, meta }) => type === 'organization.created' && meta.organization === a.id,
      'organization.updated',
      () => ({ name: 'A, later' }),
    );
    await roleMayMore(a);
    const [views, works] = ['view_left_to_later_release', 'follower_left_to_later_release'] as const;
    await eventually(async () => {
      expect([await saidBy('identity-1', views, 'view'), await saidBy('identity-1', works, 'work')]).toEqual([['organizations'], ['forwarder.identity']]);
      expect(await saidBy('authorization-1', views, 'view')).toEqual(['authorization_deletions', 'authorization_resources', 'organization_roles']);
      expect(await saidBy('authorization-1', works, 'work')).toEqual(['forwarder.authorization']);
      expect(await saidBy('notifications-1', views, 'view')).toEqual(['feed']);
      expect(await saidBy('notifications-1', works, 'work')).toEqual([expect.stringMatching(/^notifications[.]webhook-intake-/)]);
      expect(await saidBy('audit-logs-1', works, 'work')).toEqual(['reaction.tell-of-administration']);
    });
    for (const name of processes.keys()) expect(await saidBy(name, 'view_stopped', 'view')).toEqual([]);
    const held = await saidBy('identity-1', 'lease_held', 'work');
    expect(held.filter((work) => /^(view[.]organizations-|forwarder)/.test(work))).toEqual([]);
    expect(held).toEqual(expect.arrayContaining([expect.stringMatching(/^view[.]users-/), 'reaction.revoke-api-keys-with-their-owners']));

    for (const path of ['/organizations', `/organizations/${a.id}`, `/authorization/organizations/${a.id}/roles`, '/events?events=user.created'])
      expect(await ask(url, 'GET', path)).toMatchObject({ status: 503, body: { code: 'service_unavailable' } });
    expect(await ask(url, 'PUT', `/organizations/${a.id}`, { name: 'Lost' })).toMatchObject({ status: 503 });
    expect(await check(url, a, 'write')).toMatchObject({ status: 503 });

    expect(await check(url, b, 'read')).toMatchObject({ status: 200, body: { authorized: true } });
    expect(await ask(url, 'PUT', `/organizations/${b.id}`, { name: 'B, meanwhile' })).toMatchObject({ status: 200 });
    expect(await ask(url, 'GET', '/user_management/users')).toMatchObject({ status: 200 });
    expect(await ask(url, 'POST', '/user_management/users', { email: 'meanwhile@acme.test' })).toMatchObject({ status: 201 });
    for (const name of processes.keys()) expect((await fetch(`${at(name).operationsUrl}/health/ready`)).status).toBe(200);
  }, 120_000);

  it('the later one takes over what was left to it, and who calls has success while both run', async () => {
    await Promise.all(['identity-2', 'authorization-2', 'notifications-2'].map((name) => start(name, 'last')));
    await eventually(async () => {
      expect((await namesIn('/organizations?limit=100')).toSorted()).toEqual(['A, later', 'B, meanwhile']);
      expect(await check(url, a, 'write')).toMatchObject({ status: 200, body: { authorized: true } });
    });
    // What is told is told in order, once, by whoever can read it; what the earlier one recorded, as the later one reads it.
    const told = ['A, later', 'B, meanwhile'];
    await eventually(async () => {
      expect((await ask(url, 'GET', '/events?events=organization.updated')).body.data).toMatchObject([
        { data: { name: told[0], metadata: {} } },
        { data: { name: told[1], metadata: { read_as: 'second shape' } } },
      ]);
      const messages = await messagesInKafka([kafka!], (topic) => topic.startsWith(`${installation}.`) && topic.endsWith('.identity'));
      expect(
        messages
          .filter(({ headers }) => headers['ce_type'] === 'organization.updated')
          .map(({ value }) => JSON.parse(value).data.name)
          .toSorted(),
      ).toEqual(told);
      const webhooks = receiver.received.map(
        ({ body }) => JSON.parse(body) as { readonly event: string; readonly data: { readonly name: string; readonly email: string } },
      );
      expect(webhooks.map(({ data }) => data.name ?? data.email).toSorted()).toEqual(expect.arrayContaining([...told, 'meanwhile@acme.test']));
    });
    const held = (await Promise.all([1, 2].map((number) => saidBy(`identity-${number}`, 'lease_held', 'work')))) as [readonly string[], readonly string[]];
    expect(held.map((works) => works.filter((work) => /^(view[.](organizations|users)-v|forwarder)/.test(work)))).toEqual([
      [expect.stringMatching(/^view[.]users-v/)],
      ['forwarder.identity', expect.stringMatching(/^view[.]organizations-v/)],
    ]);

    // Recorded while both run: by each of them, and by the one where the other has to be asked.
    expect(await shapesWritten(async (turn) => expect(await renamed(`Name ${turn}`)).toBe(200))).toEqual([1, 2]);
    const before = await Promise.all(OWNERS.map(movedAlong));
    for (let turn = 0; (await Promise.all(OWNERS.map(movedAlong))).some((times, index) => times === before[index]); turn++) {
      expect(turn).toBeLessThan(MANY);
      const given = (last = await give(url, `Given ${turn}`));
      await roleMayMore(given);
      expect(await check(url, given, 'write')).toMatchObject({ status: 200, body: { authorized: true } });
      const { membership: id } = given;
      await recordedLater(
        ({ type, data }) => type === 'organization_membership.created' && (data as { readonly id: string }).id === id,
        'organization_membership.updated',
        () => ({ id, status: 'active' }),
      );
      const ended = await ask(url, 'PUT', `/user_management/organization_memberships/${id}/deactivate`);
      expect(ended).toMatchObject({ status: 200, body: { status: 'inactive' } });
      expect(await check(url, given, 'write')).toMatchObject({ status: 200, body: { authorized: false } });
    }
    // What only the later one can read has to be in its rows before it ends: otherwise the earlier one would come to it alone, and refuse for good.
    await eventually(async () => {
      for (const [app, views] of BROUGHT_ON) {
        expect(await saidBy(`${app}-2`, 'lease_held', 'work')).toEqual(expect.arrayContaining(views.map((view) => expect.stringMatching(`^view[.]${view}-v`))));
        expect(await saidBy(`${app}-1`, 'view_left_to_later_release', 'view')).toEqual([]);
      }
      const { body } = await ask(url, 'GET', '/events?events=organization_membership.updated&limit=100');
      expect(body.data.at(-1)).toMatchObject({ data: { id: last.membership, status: 'inactive' } });
    }, 30_000);
    // It has not asked for the lease again: it would have come to the same once more.
    expect(
      readFileSync(at('identity-1').log, 'utf8').match(
        /"view":"organizations".*only a later release can fold|only a later release can fold.*"view":"organizations"/g,
      ),
    ).toHaveLength(1);
  }, 120_000);

  it('the earlier one alone, started again, goes on where the later one came to, and refuses what only that can read', async () => {
    await Promise.all(['identity-2', 'authorization-2', 'notifications-2'].map((name) => at(name).stop()));
    await Promise.all(['identity-1', 'authorization-1', 'notifications-1'].map((name) => start(name, 'earlier')));
    await eventually(async () => expect(await namesIn('/organizations?limit=100')).toContain('A, later'));
    const { body } = await ask(url, 'POST', '/organizations', { name: 'Again' });
    await eventually(async () => {
      expect(await namesIn('/organizations?limit=100')).toContain('Again');
      expect((await ask(url, 'GET', '/events?events=organization.created&limit=100')).body.data.at(-1)).toMatchObject({ data: { id: body.id } });
      expect(await check(url, b, 'read')).toMatchObject({ status: 200, body: { authorized: true } });
    });
    expect(await ask(url, 'PUT', `/organizations/${a.id}`, { name: 'A, again' })).toMatchObject({ status: 200 });
    // What is folded from its stream, and from no row.
    expect(await check(url, a, 'write')).toMatchObject({ status: 503, body: { code: 'service_unavailable' } });
    expect(await ask(url, 'PUT', `/user_management/organization_memberships/${last.membership}/reactivate`)).toMatchObject({ status: 503 });
    expect(await ask(url, 'PUT', `/user_management/organization_memberships/${a.membership}/deactivate`)).toMatchObject({ status: 200 });
  }, 120_000);

  it('a release that reads the new shape before the next one writes it leaves nothing to anybody, forward and back', async () => {
    const all = ['identity', 'authorization', 'audit-logs', 'notifications'] as const;
    const works = async (name: string): Promise<void> => {
      expect(await renamed(name)).toBe(200);
      await eventually(async () => {
        expect(await namesIn('/organizations?limit=100')).toContain(name);
        expect(await check(url, b, 'read')).toMatchObject({ status: 200, body: { authorized: true } });
        expect((await ask(url, 'GET', '/events?events=organization.updated&limit=100')).body.data.at(-1)).toMatchObject({ data: { name } });
      });
    };
    const before = await Promise.all(OWNERS.map(movedAlong));
    await Promise.all(all.map((app) => start(`${app}-2`, 'next')));
    await works('A, next');
    await Promise.all(all.map((app) => start(`${app}-1`, 'last')));
    expect(await shapesWritten((turn) => works(`A, turn ${turn}`))).toEqual([1, 2]);
    await Promise.all(all.map((app) => start(`${app}-1`, 'next')));
    await works('A, back');
    for (const name of processes.keys())
      for (const metric of ['view_left_to_later_release', 'follower_left_to_later_release']) expect(await saidBy(name, metric, 'view|work')).toEqual([]);
    expect(await Promise.all(OWNERS.map(movedAlong))).toEqual(before);
  }, 120_000);
});

describe('a data directory to which a later release has recorded in a new shape', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-rolled-back-'));
  const settings: Settings = { DATA_DIR: directory, DATA_MIN_FREE: '0', GATEHOUSE_API_KEY: key };
  let suite: SuiteProcess | undefined;
  const start = async (release: Release): Promise<string> => {
    suite = await SuiteProcess.start({ ...settings, ...RELEASES[release] });
    return suite.url;
  };
  const stop = () => suite!.stop();
  afterAll(async () => {
    await suite?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it('is served by the earlier one, which refuses what it would have to read of that, until the later one is there again', async () => {
    const before = await start('earlier');
    for (const slug of ['read', 'write']) await ask(before, 'POST', '/authorization/permissions', { slug, name: slug });
    const [a, b] = [await give(before, 'A'), await give(before, 'B')];
    await stop();

    const later = await start('last');
    const role = `/authorization/organizations/${a.id}/roles/org-own/permissions`;
    expect(await ask(later, 'PUT', role, { permissions: ['write'] })).toMatchObject({ status: 200 });
    expect(await ask(later, 'PUT', `/organizations/${a.id}`, { name: 'A, later' })).toMatchObject({ status: 200 });
    await stop();

    // Its views have been brought past that, and are as they were.
    const rolledBack = await start('earlier');
    const names = async (url: string) => (await ask(url, 'GET', '/organizations')).body.data.map(({ name }: { readonly name: string }) => name);
    expect(await names(rolledBack)).toEqual(['B', 'A, later']);
    expect(await check(rolledBack, b, 'read')).toMatchObject({ status: 200, body: { authorized: true } });
    expect(await check(rolledBack, a, 'write')).toMatchObject({ status: 503 });
    await stop();

    // It cannot fill them anew, and has emptied them by then.
    expect(await gatehouse(settings, 'rebuild')).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be filled by this release') });
    const emptied = await start('earlier');
    for (const path of ['/organizations', `/organizations/${b.id}`, '/events?events=organization.created'])
      expect(await ask(emptied, 'GET', path)).toMatchObject({ status: 503, body: { code: 'service_unavailable' } });
    expect(await ask(emptied, 'GET', '/user_management/users')).toMatchObject({ status: 200, body: { data: [{}, {}] } });
    expect(await check(emptied, b, 'read')).toMatchObject({ status: 503 });
    expect(await ask(emptied, 'POST', '/organizations', { name: 'Meanwhile' })).toMatchObject({ status: 201 });
    await stop();

    const again = await start('last');
    expect(await names(again)).toEqual(['Meanwhile', 'B', 'A, later']);
    for (const [given, permission] of [
      [a, 'write'],
      [b, 'read'],
    ] as const)
      expect(await check(again, given, permission)).toMatchObject({ status: 200, body: { authorized: true } });
    expect((await ask(again, 'GET', '/events?events=organization.created')).body.data).toHaveLength(3);
  }, 120_000);
});
