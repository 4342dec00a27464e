import { openApiDocument } from '#libs/contracts/src/openapi';
import { placesOf, prefixOf } from '#libs/contracts/src/json-schema';
import { isPublic, MAX_BODY, operations, type RegisteredOperation } from '#libs/contracts/src/operation';
import { WebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import { answerMatches } from '#libs/testing/src/answers';
import { end, rawExchange, type Step } from '#libs/testing/src/raw-http';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { until } from '#libs/testing/src/until';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';
import { inhabitants, pathOfList, pagedLists, type Inhabitants } from './inhabitants.ts';

const document = openApiDocument('0.1.0');
const ULID = '01J0000000000000000000000A';

const published = operations().filter((operation) => operation.route !== null);
// What is uploaded is no JSON, and is not read before it is stored.
const withBody = published.filter(
  ({ route, options }) => options.upload === undefined && route!.method !== 'get' && (route!.method !== 'delete' || options.body === true),
);
const named = (some: readonly RegisteredOperation[]) => some.map((operation): [string, RegisteredOperation] => [operation.name, operation]);

let suite: GivenSuite;
let ids: Inhabitants['ids'];
beforeAll(async () => {
  suite = await givenSuite();
  const receiver = await WebhookReceiver.listen();
  ({ ids } = await inhabitants(suite, receiver.url, await suite.clientIdOf(suite)));
  await suite.patch(`/webhook_endpoints/${ids.get(WebhookEndpoint)}`, { events: [] }).expect(200);
  await receiver.close();
});

/** A path of the operation that names nothing: what is read of the body is wrong before anything is looked for. */
const pathOf = ({ route }: RegisteredOperation): string => route!.path.replaceAll(/\{\w+\}/g, `nothing_${ULID}`);

/** Sends a body as it is; the answer is held to the document. */
async function send(method: string, path: string, body?: string | Buffer, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(suite.url + path, {
    method,
    headers: { Authorization: `Bearer ${suite.key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
    body: body === undefined ? null : body,
  });
  const text = await response.text();
  const answer = { status: response.status, headers: Object.fromEntries(response.headers), text };
  answerMatches(document, method, path, answer.status, answer.headers, text);
  expect(text).not.toMatch(/\.ts:|\.js:|node:|at Object/);
  return { ...answer, body: text === '' ? undefined : (JSON.parse(text) as Record<string, unknown>) };
}

describe('what cannot be understood is refused, and leaves nothing behind', () => {
  let before: string;
  beforeEach(async () => {
    before = await suite.head();
  });
  afterEach(async () => expect((await suite.recordsAfter(before)).filter(({ meta }) => meta.actor.source !== 'system')).toEqual([]));

  describe.each(named(withBody))('%s', (_, operation) => {
    const refused = { status: 400, body: operation.options.isOAuth === true ? { error: 'invalid_request' } : { code: 'bad_request' } };
    const method = operation.route!.method.toUpperCase();
    const bodies = [
      '{',
      '}',
      '{"name":}',
      '{"name":"x",}',
      "{'name':'x'}",
      '{"name":"x"} x',
      '{"name":"x"}{}',
      'text',
      'NaN',
      'undefined',
      '\0',
      '\ufeff{}',
      '{"name":"\u0001"}',
      '"',
    ];
    const deep = 5_000;

    it.each(bodies)('refuses the malformed body %j', async (body) => {
      expect(await send(method, pathOf(operation), body)).toMatchObject(refused);
    });

    it('refuses a body that is not UTF-8', async () => {
      expect(await send(method, pathOf(operation), Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x7d]))).toMatchObject({ status: 400 });
    });

    const forms = isPublic(operation) ? [] : ['application/x-www-form-urlencoded'];
    it.each(['text/plain', ...forms, 'multipart/form-data; boundary=x', 'application/xml', 'json', '*/*', ';;;'])(
      'refuses a body that says it is %p',
      async (type) => {
        expect(await send(method, pathOf(operation), '{"name":"x"}', { 'Content-Type': type })).toMatchObject(refused);
      },
    );

    it.each([
      '{"__proto__":{"polluted":1}}',
      '{"name":"x","metadata":{"__proto__":"polluted"}}',
      '{"name":"x","metadata":{"\\u005f\\u005fproto__":{"polluted":1}}}',
      '[[{"__proto__":1}]]',
    ])('refuses the key in %p', async (body) => {
      expect(await send(method, pathOf(operation), body)).toMatchObject(refused);
    });

    it('refuses a body over its limit', async () => {
      const answer = await rawExchange(
        suite.url,
        `${method} ${pathOf(operation)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${suite.key}\r\nContent-Type: application/json\r\nContent-Length: ${(operation.options.maxBody ?? MAX_BODY) + 1}\r\nConnection: close\r\n\r\n`,
      );
      expect(answer?.status).toBe(413);
      answerMatches(document, method, pathOf(operation), 413, answer!.headers, answer!.text);
    });

    it('refuses any depth', async () => {
      for (const body of ['['.repeat(deep) + ']'.repeat(deep), '{"a":'.repeat(deep) + '1' + '}'.repeat(deep), '['.repeat(deep)]) {
        expect(await send(method, pathOf(operation), body)).toMatchObject(refused);
      }
    });
  });

  it.each(['name', 'metadata', 'domain_data', 'external_id', 'domains', 'allow_profiles_outside_organization'])(
    'refuses depth in the field %s',
    async (field) => {
      const nested = '{"a":'.repeat(9_000) + '1' + '}'.repeat(9_000);
      for (const value of [nested, `{"a":${nested}}`, `[${nested}]`]) {
        expect(await send('POST', '/organizations', `{"name":"x","${field}":${value}}`)).toMatchObject({ status: 400, body: { code: 'bad_request' } });
      }
    },
  );

  it('answers one error for a list of thirty thousand wrong ones', async () => {
    const { status, text } = await send('POST', '/organizations', JSON.stringify({ name: 'x', domain_data: Array.from({ length: 30_000 }, () => 0) }));
    expect(status).toBe(422);
    expect(text.length).toBeLessThan(1_000);
  });

  it.each([
    '/organizations/%zz',
    '/organizations/%',
    '/organizations/%ff',
    '/organizations/%c3%28',
    '/organizations?search=%zz',
    '/organizations?%',
    '/organizations/external_id/%e0%80',
    '/%',
    '/events?after=%f',
  ])('refuses the encoding of %p', async (path) => {
    expect(await send('GET', path)).toMatchObject({ status: 400, body: { code: 'bad_request' } });
  });

  it.each(['__proto__', 'constructor', 'prototype', 'toString', '%00', '..%2f..%2fetc', '%2e%2e', "'", '😀', ' ', 'org_', `org_${ULID}0`, 'x'.repeat(128)])(
    'knows no organization %p',
    async (id) => {
      expect(await send('GET', `/organizations/${encodeURI(id)}`)).toMatchObject({ status: 404, body: { code: 'entity_not_found' } });
    },
  );

  it.each(['__proto__=x', 'constructor=x', 'domains[]=__proto__', 'domains[0]=__proto__', 'search=__proto__', 'hasOwnProperty=1'])(
    'is not confused by the query %p',
    async (query) => {
      expect(await send('GET', `/organizations?${query}`)).toMatchObject({ status: 200 });
    },
  );

  it.each(['limit[__proto__]=1', 'domains[__proto__]=x', '__proto__[domains]=x', 'constructor[0]=x'])('reads no parameter from %p', async (query) => {
    const field = query.split('=')[0];
    expect(await send('GET', `/organizations?${query}`)).toMatchObject({ status: 422, body: { errors: [{ field, code: 'unknown_parameter' }] } });
  });

  it.each(['limit=1&limit=2', 'order=asc&order=desc', 'after=a&after=b', 'search=a&search=b'])('refuses a parameter that is there twice: %s', async (query) => {
    expect(await send('GET', `/organizations?${query}`)).toMatchObject({ status: 422, body: { code: 'invalid_request_parameters' } });
  });

  describe.each(named(pagedLists))('%s', (_, operation) => {
    const cursorOf = (prefix: string): string => `${prefix}_${ULID}`;
    const own = prefixOf(operation.options.answers.of!)!;

    it('refuses both cursors at once', async () => {
      for (const order of ['asc', 'desc', 'normal'])
        expect(await send('GET', `${pathOfList(operation, ids)}order=${order}&after=${cursorOf(own)}&before=${cursorOf(own)}`)).toMatchObject({
          status: 422,
          body: { errors: [{ code: 'invalid_cursor' }] },
        });
    });

    it.each(['after', 'before'])('refuses a cursor %s that never was', async (parameter) => {
      for (const cursor of ['', 'x', cursorOf('user'), cursorOf(own), `${cursorOf(own)}0`, cursorOf(own).toLowerCase(), '__proto__', '%E2%80%A8', '0', '-1'])
        for (const order of ['asc', 'desc', 'normal'])
          expect(await send('GET', `${pathOfList(operation, ids)}order=${order}&${parameter}=${cursor}`)).toMatchObject({
            status: 422,
            body: { errors: [{ code: 'invalid_cursor', field: parameter }] },
          });
    });
  });

  describe('wrong methods', () => {
    const takes = (operation: RegisteredOperation, path: string): boolean => {
      const last = placesOf(operation).path.at(-1);
      const template = operation.route!.path.replace(last?.kind === 'text' ? new RegExp(`\\{${last.name}\\}$`) : /$^/, '.+');
      return new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path);
    };
    const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
    it.each([...new Set(published.map(({ route }) => route!.path))])('are refused on %s, and the right ones named', async (template) => {
      const allowed = published.filter(({ route }) => route!.path === template).map(({ route }) => route!.method.toUpperCase());
      const path = template.replaceAll(/\{\w+\}/g, `org_${ULID}`);
      // A longer template may have the same path, and a text at the end of one takes whatever follows.
      const known = published.filter((operation) => takes(operation, path)).map(({ route }) => route!.method.toUpperCase());
      for (const method of METHODS.filter((each) => !known.includes(each))) {
        const answer = await send(method, path, method === 'GET' ? undefined : '{');
        expect(answer).toMatchObject({ status: 405, body: { code: 'method_not_allowed' } });
        for (const each of allowed) expect(answer.headers['allow']).toContain(each);
      }
    });

    it.each(['OPTIONS', 'TRACE', 'PROPFIND', 'LOCK'])('are refused when they are unusual: %s', async (method) => {
      const answer = await rawExchange(suite.url, `${method} /organizations HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect([400, 404, 405]).toContain(answer?.status);
      expect(JSON.parse(answer!.text)).toEqual(expect.objectContaining({ message: expect.any(String) }));
    });
  });

  describe('headers', () => {
    it.each([
      '',
      'Bearer',
      'Bearer ',
      'Basic c2s6',
      'bearer\u00a0x',
      `Bearer ${'x'.repeat(10_000)}`,
      'Bearer __proto__',
      'Bearer undefined',
      'Bearer sk_',
      'sk_test',
    ])('refuses Authorization %j', async (authorization) => {
      expect(await send('GET', '/organizations', undefined, { Authorization: authorization })).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    });

    it.each(['a b', 'x'.repeat(256), 'ü', '\t', ' '])('refuses the Idempotency-Key %j', async (key) => {
      const answer = await rawExchange(suite.url, ...post('{"name":"x"}', Buffer.from(`Idempotency-Key: ${key}\r\n`)));
      expect(answer?.status).toBe(422);
    });

    it.each(['x', '-1', '9'.repeat(40), '__proto__', 'ü'])('refuses the Gatehouse-Position %p', async (position) => {
      const answer = await rawExchange(
        suite.url,
        `GET /organizations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${suite.key}\r\nGatehouse-Position: ${position}\r\nConnection: close\r\n\r\n`,
      );
      expect(answer?.status).toBe(422);
    });

    it.each<[string, string]>([
      ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n'],
      ['a negative length', 'Content-Length: -1\r\n'],
      ['a length that is no number', 'Content-Length: 1e3\r\n'],
      ['length and chunks', 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n'],
      ['an unknown encoding', 'Transfer-Encoding: chunked, nonsense\r\n'],
      ['a name with a space', 'X Y: z\r\n'],
      ['a value with a control character', 'X-Y: a\u0001b\r\n'],
      ['a folded line', 'X-Y: a\r\n b\r\nX Y\r\n'],
      ['no colon', 'nonsense\r\n'],
      ['a second host', 'Host: y\r\nContent-Length: 2\r\n'],
    ])('with %s are refused', async (_, lines) => {
      const answer = await rawExchange(suite.url, `POST /organizations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${suite.key}\r\n${lines}\r\n{}`, end);
      expect(answer?.status).toBeGreaterThanOrEqual(400);
      expect(answer?.status).toBeLessThan(500);
      expect(JSON.parse(answer!.text)).toEqual(expect.objectContaining({ message: expect.any(String), code: 'bad_request' }));
    });

    it.each<[string, string]>([
      ['longer than fits', `X-Y: ${'x'.repeat(100_000)}\r\n`],
      ['more than anybody has', Array.from({ length: 5_000 }, (_, index) => `X-${index}: y\r\n`).join('')],
      ['more than a hundred', Array.from({ length: 120 }, (_, index) => `X-${index}: y\r\n`).join('')],
    ])('that are %s are refused as such', async (_, lines) => {
      const answer = await rawExchange(suite.url, `POST /organizations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${suite.key}\r\n${lines}\r\n`, end);
      expect(answer?.status).toBe(431);
      answerMatches(document, 'POST', '/organizations', 431, answer!.headers, answer!.text);
    });
  });

  describe('connections', () => {
    it.each([
      'NONSENSE\r\n\r\n',
      'GET\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      '\0\0\0\0',
      '{"name":"x"}\r\n\r\n',
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      'GET /organizations HTTP/1.1\r\n\r\n',
    ])('that say %j are answered 400', async (bytes) => {
      const answer = await rawExchange(suite.url, bytes, end);
      expect(answer?.status).toBe(400);
      expect(JSON.parse(answer!.text)).toMatchObject({ code: 'bad_request' });
    });

    it.each<[string, number, readonly Step[]]>([
      ['half of the head', 400, ['POST /organizations HTTP/1.1\r\nHost: x\r\n', end]],
      ['half of a body', 400, [requestHead('Content-Length: 100'), '{"name":"half"', end]],
      ['half of a chunk', 400, [requestHead('Transfer-Encoding: chunked'), 'e\r\n{"name":', end]],
      ['a chunk without an end', 400, [requestHead('Transfer-Encoding: chunked'), 'e\r\n{"name":"half"\r\n', end]],
      ['a chunk of a wrong length', 400, [requestHead('Transfer-Encoding: chunked'), 'zz\r\n{"name":"half"}\r\n0\r\n\r\n', end]],
      [
        'a body in chunks beyond the limit',
        413,
        [requestHead('Transfer-Encoding: chunked'), ...Array.from({ length: 20 }, () => `10000\r\n${' '.repeat(65_536)}\r\n`), end],
      ],
    ])('that end after %s are answered %d', async (_, status, steps) => {
      const answer = await rawExchange(suite.url, ...steps.map((step) => (typeof step === 'string' ? step.replace('KEY', suite.key) : step)));
      expect(answer?.status).toBe(status);
      expect(JSON.parse(answer!.text)).toMatchObject({ code: status === 413 ? 'payload_too_large' : 'bad_request' });
    });
  });

  it('pollutes no prototype', () => {
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

function requestHead(length: string): string {
  return `POST /organizations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\n${length}\r\n\r\n`;
}

/** A creation with more headers, as bytes. */
function post(body: string, headers: Buffer): readonly Step[] {
  const first = `POST /organizations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${suite.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n`;
  return [first, headers, `\r\n${body}`];
}

describe('what only looks hostile is data', () => {
  it('keeps metadata under the names of what every object has', async () => {
    const metadata = { constructor: 'a', prototype: 'b', toString: 'c', hasOwnProperty: 'd', valueOf: 'e' };
    const created = await suite.post('/organizations', { name: '__proto__', metadata }).expect(201);
    expect(created).toMatchObject({ name: '__proto__', metadata });
    expect((await suite.get(`/organizations/${created.id}`).expect(200)).metadata).toEqual(metadata);
    const { metadata: left } = await suite.put(`/organizations/${created.id}`, { metadata: { constructor: null, prototype: null, toString: 'f' } }).expect(200);
    expect(left).toEqual({ toString: 'f', hasOwnProperty: 'd', valueOf: 'e' });
    await suite.restart();
    expect((await suite.get(`/organizations/${created.id}`).expect(200)).metadata).toEqual(left);
  });

  it.each(['"quoted"', '</script>', '\u2028', '\\', '😀', "'; DROP TABLE", '{{7*7}}', '\u0001'])('gives the name %j back as it was', async (name) => {
    const { id } = await suite.post('/organizations', { name }).expect(201, { name });
    await suite.get(`/organizations/${id}`).expect(200, { name });
  });

  it('refuses a name with half a character, which could not be sent back', () =>
    suite.post('/organizations', { name: '\ud83d' }).expect(422, { code: 'invalid_request_parameters' }));

  it('answers a client that has closed its half of the connection', async () => {
    const answer = await rawExchange(suite.url, ...post('{"name":"half closed"}', Buffer.from('')), end);
    expect(answer?.status).toBe(201);
  });

  it('reads a body that comes byte by byte', async () => {
    const bytes = [...post('{"name":"slow"}', Buffer.from(''))].flatMap((step) =>
      String(step).startsWith('\r\n')
        ? String(step)
            .split('')
            .flatMap((byte): Step[] => [byte, 2])
        : [step],
    );
    expect((await rawExchange(suite.url, ...bytes))?.status).toBe(201);
  });
});

describe('a client that is slow', () => {
  let impatient: GivenSuite;
  beforeAll(async () => {
    impatient = await givenSuite({ variables: { REQUEST_TIMEOUT: '2s' } });
    // What an environment begins with is recorded by itself, some time after the start.
    await until(async () => (await impatient.records('authorization_model.seeded')).length > 0);
  });

  it.each<[string, () => readonly Step[]]>([
    ['in its head', () => ['POST /organizations HTTP/1.1\r\nHost: x\r\n', 800, 'X-A: b\r\n', 800, 'X-B: c\r\n', 800]],
    ['in its body', () => [requestHead('Content-Length: 100').replace('KEY', impatient.key), '{"name":', 800, '"slow', 800, 'er', 800]],
    ['in its chunks', () => [requestHead('Transfer-Encoding: chunked').replace('KEY', impatient.key), '8\r\n{"name":\r\n', 800, '5\r\n"slow\r\n', 800]],
  ])('%s is answered 408, and nothing comes of it', async (_, steps) => {
    const before = await impatient.records();
    const answer = await rawExchange(impatient.url, ...steps());
    expect(answer?.status).toBe(408);
    expect(JSON.parse(answer!.text)).toMatchObject({ code: 'request_timeout' });
    expect(await impatient.records()).toEqual(before);
    await impatient.get('/organizations').expect(200);
  });

  it('is answered in the words of SCIM where it began to speak with a directory', async () => {
    const { id: organization_id } = await impatient.post('/organizations', { name: 'Slow' }).expect(201);
    const { id } = await impatient.post('/admin/directories', { organization_id, type: 'generic scim v2.0', name: 'Slow' }).expect(201);
    const { token } = await impatient.post(`/admin/directories/${id}/tokens`).expect(201);
    const head = `POST /scim/v2/${id}/Users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/scim+json\r\nContent-Length: 100\r\n\r\n`;
    const answer = await rawExchange(impatient.url, head, '{"userName":', 800, '"slow', 800, 'er', 800);
    expect([answer?.status, JSON.parse(answer!.text)]).toEqual([408, expect.objectContaining({ status: '408', detail: expect.any(String) })]);
  });
});
