import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { gatehouse, SuiteProcess } from '#libs/testing/src/process';
import { until } from '#libs/testing/src/until';

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  readonly body: any;
}

/** A command with a key, and what takes back what it did. */
interface Keyed {
  readonly key: string;
  readonly path: string;
  readonly body: object;
  readonly isDone: () => Promise<boolean>;
  readonly undo: () => Promise<Answer>;
}

/** Of each kind; all are under way when the process is killed, so that each is caught at a point of its own. */
const COUNT = 20;

describe('commands with a key that a kill cuts off', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-killed-commands-'));
  const variables = { DATA_DIR: join(root, 'data'), DATA_MIN_FREE: '0' };
  let suite: SuiteProcess;
  let apiKey: string;
  let organization: string;

  beforeAll(async () => {
    suite = await SuiteProcess.start(variables);
    apiKey = readFileSync(join(variables.DATA_DIR, 'development.key'), 'utf8').trim();
    organization = await made('/organizations', { name: 'Acme' });
  });
  afterAll(async () => {
    await suite.killHard();
    rmSync(root, { recursive: true });
  });

  async function ask(method: string, path: string, body?: object, key?: string, bearer = apiKey): Promise<Answer> {
    const response = await fetch(suite.url + path, {
      method,
      headers: {
        Authorization: `Bearer ${bearer}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...(key !== undefined && { 'Idempotency-Key': key }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text) };
  }

  async function made(path: string, body: object): Promise<string> {
    const answer = await ask('POST', path, body);
    expect(answer).toMatchObject({ status: 201 });
    return answer.body.id as string;
  }

  const send = ({ path, body, key }: Keyed): Promise<Answer> => ask('POST', path, body, key);

  /** Until the process that was killed no longer counts as carrying it out. */
  async function repeated(keyed: Keyed): Promise<Answer> {
    for (const deadline = performance.now() + 60_000; ; await pause(200)) {
      const answer = await send(keyed);
      if (answer.status !== 409 || performance.now() > deadline) return answer;
    }
  }

  const GIVEN: Readonly<Record<string, () => Promise<Keyed>>> = {
    'a permission of a role': async () => {
      const [permission, role] = [`x-${randomUUID()}`, `x-${randomUUID()}`];
      await made('/authorization/permissions', { slug: permission, name: 'Named' });
      await made('/authorization/roles', { slug: role, name: 'Role' });
      const path = `/authorization/roles/${role}`;
      return {
        key: randomUUID(),
        path: `${path}/permissions`,
        body: { slug: permission },
        isDone: async () => (await ask('GET', path)).body.permissions.includes(permission),
        undo: () => ask('PUT', `${path}/permissions`, { permissions: [] }),
      };
    },
    'a member of a group': async () => {
      const user_id = await made('/user_management/users', { email: `${randomUUID()}@acme.test` });
      const organization_membership_id = await made('/user_management/organization_memberships', { organization_id: organization, user_id });
      const group = await made(`/organizations/${organization}/groups`, { name: 'Group' });
      const path = `/organizations/${organization}/groups/${group}/organization-memberships`;
      return {
        key: randomUUID(),
        path,
        body: { organization_membership_id },
        isDone: async () => (await ask('GET', path)).body.data.length > 0,
        undo: () => ask('DELETE', `${path}/${organization_membership_id}`),
      };
    },
  };

  async function eventIds(): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let after = ''; ; after = `&after=${ids.at(-1)}`) {
      const { data } = (await ask('GET', `/events?limit=100${after}`)).body as { readonly data: readonly { readonly id: string }[] };
      if (data.length === 0) return ids;
      ids.push(...data.map(({ id }) => id));
    }
  }

  it('leave of the use of a key what was stored within a second', async () => {
    const path = `/organizations/${organization}/api_keys`;
    const { value } = (await ask('POST', path, { name: 'Used' })).body;
    const used = async (): Promise<string | null> => (await ask('GET', path)).body.data[0].last_used_at;
    await ask('POST', '/api_keys/validations', { value });
    await until(async () => (await used()) !== null);
    const stored = (await used())!;
    for (let times = 0; times < 10; times++) await ask('POST', '/api_keys/validations', { value });
    await suite.killHard();
    suite = await SuiteProcess.start(variables);
    expect((await used())! >= stored).toBe(true);
  });

  it('of a product are met by those that it sends again, and no member is lost', async () => {
    const { id } = (await ask('POST', '/admin/directories', { organization_id: organization, type: 'okta scim v2.0', name: 'Okta' })).body;
    const { token } = (await ask('POST', `/admin/directories/${id}/tokens`)).body;
    const scim = (method: string, path: string, body?: object, key?: string) => ask(method, `/scim/v2/${id}${path}`, body, key, token);
    const named = await Promise.all(Array.from({ length: COUNT }, async () => (await scim('POST', '/Users', { userName: randomUUID() })).body.id));
    const group = (await scim('POST', '/Groups', { displayName: 'Everybody', members: [{ value: named[0] }] })).body.id;
    const others = Array.from({ length: COUNT }, () => ({ userName: randomUUID(), key: randomUUID() }));
    const make = ({ userName, key }: { readonly userName: string; readonly key: string }) =>
      scim('POST', '/Users', { userName, password: 'ride-a-giraffe-7' }, key);
    const join = (value: string) => scim('PATCH', `/Groups/${group}`, { Operations: [{ op: 'add', path: 'members', value: [{ value }] }] });
    // Gone while others come.
    const leave = () => scim('DELETE', `/Users/${named[0]}`);
    const underWay = [...others.map(make), ...named.slice(1).map(join), leave()];
    const settled = Promise.allSettled(underWay);
    await Promise.any(underWay);
    await suite.killHard();
    await settled;
    suite = await SuiteProcess.start(variables);

    for (const other of others) {
      const again = await make(other);
      expect(again).toMatchObject({ status: 201, body: { userName: other.userName } });
      expect((await make(other)).body.id).toBe(again.body.id);
      expect(await make({ ...other, key: randomUUID() })).toMatchObject({ status: 409, body: { scimType: 'uniqueness' } });
      expect((await scim('GET', `/Users?filter=${encodeURIComponent(`userName eq "${other.userName}"`)}`)).body).toMatchObject({
        totalResults: 1,
        Resources: [{ id: again.body.id }],
      });
    }
    expect([204, 404]).toContain((await leave()).status);
    for (const each of named.slice(1)) expect((await join(each)).status).toBe(204);
    const members = (await scim('GET', `/Groups/${group}`)).body.members.map(({ value }: { readonly value: string }) => value);
    expect(members.sort()).toEqual(named.slice(1).sort());
  });

  it.each(Object.keys(GIVEN))('are not carried out again after what was done since, whether their answer was lost or not: %s', async (kind) => {
    const first = await GIVEN[kind]!();
    const others = await Promise.all(Array.from({ length: COUNT }, GIVEN[kind]!));
    expect((await send(first)).status).toBeLessThan(300);
    let answered = 0;
    const underWay = others.map((keyed) =>
      send(keyed).then(
        () => ++answered,
        () => 0,
      ),
    );
    // The rest is lost: some of it was recorded, some was not.
    await Promise.race(underWay);
    await suite.killHard();
    await Promise.all(underWay);
    suite = await SuiteProcess.start(variables);

    for (const keyed of [first, ...others]) {
      const wasDone = await keyed.isDone();
      if (wasDone) expect((await keyed.undo()).status).toBeLessThan(300);
      expect((await repeated(keyed)).status).toBeLessThan(300);
      // Views follow: one that was carried out again is seen by whoever reads what it wrote.
      expect({ wasDone, isDone: await keyed.isDone() }).toEqual({ wasDone, isDone: !wasDone });
    }
    const ids = await eventIds();
    expect(new Set(ids).size).toBe(ids.length);
    expect(await gatehouse(variables, 'rebuild', '--check')).toMatchObject({ code: 0, stderr: '' });
  });
});
