import { hash } from 'node:crypto';
import { newUlid } from '#libs/platform/src/ids';
import { until } from '#libs/testing/src/until';
import { givenGateway, type GivenGateway } from './testing/given-gateway.ts';

const ENVIRONMENT = 'environment_01J00000000000000000000000';
/** Another at each time: answers are kept for a moment. */
let asks = 0;
const path = (): string => `/clients/client_specs/notes?${++asks}`;
const NOTES = '/clients/notes';
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

type Fields = Readonly<Record<string, unknown>>;

describe('an operation that finds its environment by client id', () => {
  let gateway: GivenGateway;
  beforeAll(async () => {
    gateway = await givenGateway();
  });
  afterAll(() => gateway.close());

  /** Without a key. */
  const ask = async (method: string, path: string, body: string | null = null, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(gateway.url + path, { method, headers, body });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Fields & { readonly seen: Fields & { readonly context: Fields } },
    };
  };
  const postForm = (form: string) => ask('POST', NOTES, form, FORM);

  it('needs no key, and knows who asks by client id and address', async () => {
    const { status, headers, body } = await ask('GET', path(), null, { 'User-Agent': 'specs' });
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('public, max-age=300');
    expect(body.seen.context).toMatchObject({
      environment: ENVIRONMENT,
      actor: { id: 'client_specs', source: 'api', name: null },
      connection: { address: '127.0.0.1', userAgent: 'specs', bearerHash: null },
    });
  });

  it('is answered once for all who ask within a second, where anybody may keep the answer', async () => {
    const kept = '/clients/client_specs/notes?kept';
    const [one, other] = [await ask('GET', kept), await ask('GET', kept)];
    expect(other.body['id']).toBe(one.body['id']);
    expect((await ask('GET', `${kept}&other`)).body['id']).not.toBe(one.body['id']);
    await until(async () => (await ask('GET', kept)).body['id'] !== one.body['id']);
  });

  it('does not look at Authorization', async () => {
    const asked = gateway.keys.asked;
    for (const authorization of ['Bearer wrong', 'Basic abc', 'Bearer sk_test_of_the_gateway_specs']) {
      const { status, body } = await ask('GET', path(), null, { Authorization: authorization });
      expect(status).toBe(200);
      expect(body.seen.context['actor']).toMatchObject({ id: 'client_specs' });
    }
    expect(gateway.keys.asked).toBe(asked);
    const { body } = await ask('GET', path(), null, { Authorization: 'Bearer wrong' });
    expect(body.seen.context['connection']).toMatchObject({ bearerHash: hash('sha256', 'wrong', 'hex') });
  });

  it('keeps its connection from those that need a key', async () => {
    const response = await gateway.request('GET', '/notes/label/mine');
    expect(((await response.json()) as { readonly seen: { readonly context: Fields } }).seen.context).not.toHaveProperty('connection');
  });

  it('is not found under an unknown client id, where the path names it', async () => {
    expect(await ask('GET', '/clients/client_nobody/notes')).toMatchObject({ status: 404, body: { code: 'entity_not_found', entity_id: 'client_nobody' } });
  });

  it('is refused as OAuth has it under an unknown client id in the body', async () => {
    const { status, body } = await ask('POST', NOTES, JSON.stringify({ client_id: 'client_nobody', text: 'hello' }), { 'Content-Type': 'application/json' });
    expect(status).toBe(400);
    const sentence = 'No environment has this client id.';
    expect(body).toEqual({ error: 'invalid_client', error_description: sentence, message: sentence });
  });

  it('takes a form as it takes JSON', async () => {
    const json = await ask('POST', NOTES, JSON.stringify({ client_id: 'client_specs', text: 'hello', pinned: false, place: 7 }), {
      'Content-Type': 'application/json',
    });
    const form = await ask('POST', NOTES, 'client_id=client_specs&text=hel%6Co&pinned=false&place=7&other=', {
      'Content-Type': 'Application/X-WWW-Form-Urlencoded; charset=UTF-8',
    });
    for (const { status, body } of [json, form]) {
      expect(status).toBe(201);
      expect(body).toMatchObject({ text: 'hello', seen: { pinned: false, place: 7, context: { environment: ENVIRONMENT } } });
    }
  });

  it.each([
    ['a field twice', 'client_id=client_specs&text=one&text=two', 400],
    ['two client ids', 'client_id=client_specs&client_id=client_nobody&text=one', 400],
    ['__proto__', 'client_id=client_specs&text=one&__proto__=x', 400],
    ['too many fields', `client_id=client_specs&${Array.from({ length: 100 }, (_, index) => `f${index}=1`).join('&')}`, 400],
    ['no value', 'client_id=client_specs&text=', 422],
    ['no client id', 'text=one', 422],
    ['what is no number', 'client_id=client_specs&text=one&place=1e3', 422],
  ])('refuses a form with %s', async (_, form, status) => {
    expect((await postForm(form)).status).toBe(status);
  });

  it('takes no form where a key is needed', async () => {
    const response = await gateway.request('POST', '/notes', { body: 'text=hello', headers: FORM });
    expect(response.status).toBe(400);
  });

  it('carries out every request, whatever its Idempotency-Key', async () => {
    const before = gateway.notes.carriedOut.length;
    const headers = { ...FORM, 'Idempotency-Key': 'the-same' };
    const ids = [];
    for (let time = 0; time < 2; time++) ids.push((await ask('POST', NOTES, 'client_id=client_specs&text=again', headers)).body['id']);
    expect(new Set(ids).size).toBe(2);
    expect(gateway.notes.carriedOut.length - before).toBe(2);
  });

  it('may be read by scripts of the origins that its environment lists, refusals too', async () => {
    const body = JSON.stringify({ client_id: 'client_specs', text: 'hello' });
    const json = { 'Content-Type': 'application/json' };
    const allowed = async (origin: string, text = body) => {
      const { headers } = await ask('POST', NOTES, text, { ...json, Origin: origin });
      expect(headers.get('vary')).toBe('Origin');
      return headers.get('access-control-allow-origin');
    };
    expect(await allowed('https://acme.test')).toBe('https://acme.test');
    for (const origin of ['https://acme.test.evil.test', 'http://acme.test', 'https://acme.test:444', 'null', `https://${'a'.repeat(400)}.test`])
      expect(await allowed(origin)).toBeNull();
    expect(await allowed('https://acme.test', JSON.stringify({ client_id: 'client_nobody', text: 'hello' }))).toBeNull();
    expect((await ask('GET', path(), null, { Origin: 'https://anybody.test' })).headers.get('access-control-allow-origin')).toBe('*');
    const withKey = await gateway.request('GET', '/notes/label/mine', { headers: { Origin: 'https://acme.test' } });
    expect(withKey.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('is asked for beforehand by browsers', async () => {
    const headers = { Origin: 'https://acme.test', 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type' };
    const preflight = await fetch(gateway.url + NOTES, { method: 'OPTIONS', headers });
    expect(preflight.status).toBe(204);
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      'access-control-allow-origin': 'https://acme.test',
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': expect.stringContaining('Content-Type'),
      'access-control-max-age': '600',
    });
    expect(preflight.headers.get('access-control-allow-credentials')).toBeNull();
    expect((await fetch(`${gateway.url}/notes`, { method: 'OPTIONS', headers })).status).toBe(405);
  });

  it('asks once for a client id, until the log tells of another', async () => {
    await ask('GET', path());
    await ask('GET', '/clients/client_renamed/notes');
    const asked = gateway.clientIds.asked;
    await Promise.all([ask('GET', path()), postForm('client_id=client_specs&text=one'), ask('GET', '/clients/client_renamed/notes')]);
    expect(gateway.clientIds.asked).toBe(asked);
    gateway.clientIds.environments.set('client_renamed', ENVIRONMENT);
    const meta = {
      environment: 'system',
      actor: { id: 'specs', source: 'system', name: null },
      requestId: 'req',
      commandId: newUlid(Date.now()),
      at: Date.now(),
    } as const;
    await gateway.events.append(`environment-system-${ENVIRONMENT.slice(-26)}`, 0, [
      { id: newUlid(Date.now()), type: 'environment.updated', shape: 1, data: {}, subject: null, public: [], meta },
    ]);
    await until(async () => (await ask('GET', '/clients/client_renamed/notes')).status === 200);
  });
});

describe('requests without a key', () => {
  let gateway: GivenGateway;
  beforeAll(async () => {
    gateway = await givenGateway({ RATE_LIMITS: 'on', RATE_LIMIT_PER_SECOND: '5', TRUSTED_PROXIES: '127.0.0.1/32' });
    gateway.clientIds.environments.set('client_other', 'environment_01J00000000000000000000001');
  });
  afterAll(() => gateway.close());

  /** How many of so many requests are let through, at once and so in one second, or two. */
  const letThrough = async (path: string, addresses: readonly string[]): Promise<number> => {
    const statuses = await Promise.all(addresses.map(async (address) => (await fetch(gateway.url + path, { headers: { 'X-Forwarded-For': address } })).status));
    return statuses.filter((status) => status !== 429).length;
  };
  const times = (count: number, address: (index: number) => string): readonly string[] => Array.from({ length: count }, (_, index) => address(index));

  it('are limited by environment and address', async () => {
    await letThrough('/clients/client_specs/notes', ['198.51.100.1']);
    await letThrough('/clients/client_other/notes', ['198.51.100.1']);
    const all = await Promise.all([
      letThrough(
        '/clients/client_specs/notes',
        times(30, () => '203.0.113.1'),
      ),
      letThrough(
        '/clients/client_other/notes',
        times(5, () => '203.0.113.1'),
      ),
      letThrough(
        '/clients/client_specs/notes',
        times(30, (index) => `203.0.113.${index + 2}`),
      ),
    ]);
    expect(all[0]).toBeLessThanOrEqual(10);
    expect(all.slice(1)).toEqual([5, 30]);
  });

  it('are limited together where their IPv6 addresses are of one network', async () => {
    expect(
      await letThrough(
        '/clients/client_specs/notes',
        times(30, (index) => `2001:db8::${index + 1}`),
      ),
    ).toBeLessThanOrEqual(10);
  });

  it('are limited by address where they try client ids', async () => {
    const tried = await Promise.all(times(30, (index) => `/clients/client_nobody${index}/notes`).map((path) => letThrough(path, ['203.0.113.200'])));
    expect(tried.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(10);
  });
});
