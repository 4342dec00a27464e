import { rawExchange } from '#libs/testing/src/raw-http';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';

const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
const OWN = 'urn:ietf:params:scim:schemas:extension:gatehouse:2.0:User';
const ERROR = 'urn:ietf:params:scim:api:messages:2.0:Error';
const NOWHERE = 'directory_01J0000000000000000000000A';

interface Opened {
  readonly id: string;
  readonly token: string;
}

/** It stands at the beginning of a second. */
let clock: SettableClock;
let suite: GivenSuite;
beforeAll(async () => {
  clock = new SettableClock(Date.now() - (Date.now() % 1_000));
  suite = await givenSuite({
    clock,
    variables: { SCIM_RATE_LIMIT: '25', DIRECTORY_USERS_RATE_LIMIT: '4', TRUSTED_PROXIES: '127.0.0.1', PUBLIC_URL: 'https://api.acme.test/' },
  });
});
/** A gateway that has heard nothing of the log for so long answers nothing, until it hears of it again. */
beforeEach(async () => {
  clock.forward(1_000);
  await suite.eventually('/organizations', { object: 'list' });
});

async function opened(caller: Caller = suite): Promise<Opened> {
  const { id: organization_id } = await caller.post('/organizations', { name: 'Acme' }).expect(201);
  const { id } = await caller.post('/admin/directories', { organization_id, type: 'okta scim v2.0', name: 'Okta' }).expect(201);
  return { id, token: (await caller.post(`/admin/directories/${id}/tokens`).expect(201)).token };
}

const ask = (id: string, token: string, address = '203.0.113.1') => suite.scim('GET', id, '/Users', token, { headers: { 'X-Forwarded-For': address } });
const statuses = async (...answers: readonly ReturnType<typeof ask>[]) => (await Promise.all(answers)).map(({ status }) => status);
const times = (count: number, request: () => ReturnType<typeof ask>) => Array.from({ length: count }, request);

describe('requests of a product', () => {
  it('are counted for its directory', async () => {
    const [one, other] = [await opened(), await opened()];
    const answers = await Promise.all(times(26, () => ask(one.id, one.token)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(25);
    expect(answers.find(({ status }) => status !== 200)).toMatchObject({
      status: 429,
      headers: { 'retry-after': '1' },
      body: { schemas: [ERROR], status: '429' },
    });
    expect(await statuses(ask(other.id, other.token))).toEqual([200]);
    clock.forward(1_000);
    expect(await statuses(ask(one.id, one.token))).toEqual([200]);
  });

  it('that no directory lets in are counted for their network, change nothing, and keep nobody out who is let in from there', async () => {
    const directory = await opened();
    const path = `/directories/${directory.id}`;
    const address = '2001:db8:1:2::7';
    expect(
      new Set(await statuses(...times(13, () => ask(directory.id, 'dst_unknown', address)), ...times(12, () => ask(NOWHERE, 'dst_unknown', address)))),
    ).toEqual(new Set([401, 404]));
    const refused = await ask(directory.id, 'dst_unknown', '2001:db8:1:2::8');
    expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '1' }, body: { status: '429' } });
    await suite.get(path).expect(200, { state: 'validating' });
    expect(await statuses(ask(directory.id, 'dst_unknown', '2001:db8:1:3::7'), ask(directory.id, directory.token, address))).toEqual([401, 200]);
    clock.forward(1_000);
    expect(await statuses(ask(directory.id, 'dst_unknown', address))).toEqual([401]);
  });

  it('come nowhere with the token of another directory, in whatever environment that lies', async () => {
    const directory = await opened();
    const elsewhere = await opened(await suite.otherEnvironment());
    expect(await statuses(ask(directory.id, elsewhere.token), ask(elsewhere.id, directory.token))).toEqual([404, 404]);
    expect((await ask(directory.id, elsewhere.token)).body).toEqual((await ask(NOWHERE, elsewhere.token)).body);
  });
});

it('people of a directory are listed a few times a second, also by a group, and all together', async () => {
  const [one, other] = [await opened(), await opened()];
  const group = (await suite.scim('POST', one.id, '/Groups', one.token, { body: { displayName: 'Admins' } })).body.id;
  const list = async (query: string) => suite.get(`/directory_users?${query}`);
  for (let reads = 0; reads < 4; reads++) await list(`directory=${one.id}`).then(({ status }) => expect(status).toBe(200));
  const refused = await list(`directory=${one.id}`);
  expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([429, 'rate_limit_exceeded', '1']);
  expect((await list(`group=${group}`)).status).toBe(429);
  expect((await list(`directory=${other.id}`)).status).toBe(200);
  for (const status of [200, 200, 200, 200, 429]) expect((await list('limit=1')).status).toBe(status);
});

describe('what stands at addresses of SCIM', () => {
  let directory: Opened;
  beforeAll(async () => void (directory = await opened()));
  const exchange = async (head: string, ...more: readonly string[]) =>
    rawExchange(suite.url, `${head}\r\n${more.join('\r\n')}${more.length > 0 ? '\r\n' : ''}\r\n`);

  it('is what the API is called outside, whatever host was asked', async () => {
    const body = { schemas: [USER], userName: 'ada@acme.test' };
    const made = await suite.scim('POST', directory.id, '/Users', directory.token, { body, headers: { 'X-Forwarded-Host': 'evil.test' } });
    const location = `https://api.acme.test/scim/v2/${directory.id}/Users/${made.body.id}`;
    expect([made.headers['location'], made.body.meta.location]).toEqual([location, location]);
  });

  it.each([
    ['of no directory', 'GET /scim HTTP/1.1', 404],
    ['of no version', 'GET /scim/v1/x/Users HTTP/1.1', 404],
    ['with an escape that means nothing', `GET /scim/v2/${NOWHERE}/%zz HTTP/1.1`, 400],
    ['by a method that there is not', `PROPFIND /scim/v2/${NOWHERE}/Users HTTP/1.1`, 405],
    ['too long', `GET /scim/v2/${'x'.repeat(5_000)} HTTP/1.1`, 414],
    ['too long, below no route', `GET /scim/${'x'.repeat(5_000)} HTTP/1.1`, 414],
    ['longer than anybody reads', `GET /scim/v2/${'x'.repeat(20_000)} HTTP/1.1`, 414],
    ['that is no HTTP', `GET /scim/v2/x HTTP/9.9`, 400],
  ])('is refused in the words of SCIM: a request %s', async (_, line, status) => {
    const answer = await exchange(line, 'Host: api.acme.test', 'Connection: close');
    expect(answer).toMatchObject({ status, headers: { 'content-type': 'application/scim+json; charset=utf-8' } });
    expect(JSON.parse(answer!.text)).toMatchObject({ schemas: [ERROR], status: String(status), detail: expect.any(String) });
    expect(answer!.headers['x-request-id']).toBeDefined();
  });

  it.each([
    ['no host', []],
    ['two hosts', ['Host: one.test', 'Host: two.test']],
    ['very many headers', ['Host: one.test', ...Array.from({ length: 101 }, (_, index) => `X-${index}: x`)]],
  ])('is refused in the words of SCIM: a head with %s', async (_, headers) => {
    for (const path of [`/scim/v2/${NOWHERE}/Users`, '/scim/nothing']) {
      const answer = await exchange(`GET ${path} HTTP/1.1`, ...headers, 'Connection: close');
      expect(answer?.headers['content-type']).toBe('application/scim+json; charset=utf-8');
      expect(JSON.parse(answer!.text)).toMatchObject({ schemas: [ERROR], status: String(answer!.status) });
    }
  });

  it('is one list at the root: people, then groups', async () => {
    const own = await opened();
    const post = async (path: string, body: object) => (await suite.scim('POST', own.id, path, own.token, { body })).body;
    const people = [await post('/Users', { userName: 'a' }), await post('/Users', { userName: 'b' })];
    const groups = [await post('/Groups', { displayName: 'a' }), await post('/Groups', { displayName: 'b' })];
    const all = [...people, ...groups].map(({ id }) => id);
    const page = async (query: string) => (await suite.scim('GET', own.id, `?${query}`, own.token)).body;
    const ids = ({ Resources }: { readonly Resources: readonly { readonly id: string }[] }) => Resources.map(({ id }) => id);
    for (const [query, expected] of [
      ['', all],
      ['startIndex=2&count=2', all.slice(1, 3)],
      ['startIndex=4', all.slice(3)],
      ['count=0', []],
      ['startIndex=9', []],
    ] as const)
      expect(await page(query).then((answer) => [answer.totalResults, ids(answer)])).toEqual([4, expected]);
    const filtered = async (filter: string) => ids(await post('/.search', { filter }));
    expect(await filtered('meta.resourceType eq "group"')).toEqual(all.slice(2));
    expect(await filtered('meta.resourceType eq "User" and userName eq "b"')).toEqual([all[1]]);
    expect(await filtered('userName eq "a" or displayName eq "b"')).toEqual([all[0], all[3]]);
    expect((await suite.scim('DELETE', own.id, '', own.token)).status).toBe(405);
  });

  it('tells of custom attributes, to those who ask for them', async () => {
    const own = await opened();
    const call = async (method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, body?: object) => suite.scim(method, own.id, path, own.token, { body });
    const user = { schemas: [USER], userName: 'a', title: 'Dr', [OWN]: { customAttributes: { job_title: 'King' } } };
    const { id, ...made } = (await call('POST', '/Users', user)).body;
    expect(made).not.toHaveProperty([OWN]);
    const shown = (await call('GET', `/Users/${id}?attributes=${OWN}:customAttributes`)).body;
    expect(shown).toEqual({ id, schemas: [USER, OWN], [OWN]: { customAttributes: { job_title: 'Dr' } } });
    const change = { Operations: [{ op: 'replace', path: `${OWN}:customAttributes.job_title`, value: 'King' }] };
    expect(await call('PATCH', `/Users/${id}`, change)).toMatchObject({ status: 400, body: { scimType: 'mutability' } });
    const [attribute] = (await call('GET', `/Schemas/${OWN}`)).body.attributes;
    expect(attribute.subAttributes.map(({ name }: { readonly name: string }) => name)).toContain('cost_center');
    await suite.patch(`/admin/directories/${own.id}`, { attributes: [] }).expect(200);
    expect((await call('GET', `/Schemas/${OWN}`)).status).toBe(404);
    expect((await call('GET', '/ResourceTypes/User')).body.schemaExtensions).toHaveLength(1);
  });

  it('is counted by what was asked, how it ended and why it was refused, and by no directory', async () => {
    await ask(directory.id, directory.token);
    await suite.scim('GET', directory.id, '/Users?filter=nothing', directory.token);
    await ask(directory.id, 'dst_unknown');
    const text = await (await fetch(`${suite.url}/metrics`)).text();
    for (const line of [
      /^gatehouse_scim_requests_total\{operation="list_users",status="2xx"\} [1-9]/m,
      /^gatehouse_scim_requests_total\{operation="create_user",status="2xx"\} [1-9]/m,
      /^gatehouse_scim_refusals_total\{reason="invalidFilter"\} [1-9]/m,
      /^gatehouse_scim_refusals_total\{reason="unauthenticated"\} [1-9]/m,
      /^gatehouse_scim_refusals_total\{reason="limited"\} [1-9]/m,
      /^gatehouse_scim_request_duration_seconds_count\{operation="get_user"\} [1-9]/m,
    ])
      expect(text).toMatch(line);
    expect(text).not.toContain(directory.id);
  });
});
