import { connect } from 'node:net';
import { eventLogDamaged } from '#libs/event-sourcing/src/log/log-damage';
import { DomainError } from '#libs/platform/src/domain-error';
import { Readiness } from '#libs/platform/src/readiness';
import { until } from '#libs/testing/src/until';
import { LimitReached, refusal } from './http-answer.ts';
import { givenGateway, KEY, type GivenGateway } from './testing/given-gateway.ts';

const ULID = '01J00000000000000000000000';

/** Writes bytes as they are, and answers everything that comes back until the server ends the connection. */
function raw(port: number, ...parts: readonly (string | number)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => (answer += String(chunk)));
    socket.on('end', () => resolve(answer));
    socket.on('error', reject);
    void (async () => {
      for (const part of parts) {
        if (typeof part === 'string') socket.write(part);
        else await new Promise((done) => setTimeout(done, part));
      }
    })();
  });
}

async function refusalOf(response: Response): Promise<Record<string, unknown>> {
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(response.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  const body = (await response.json()) as Record<string, unknown>;
  expect(typeof body['message']).toBe('string');
  expect(JSON.stringify(body)).not.toContain('.ts:');
  return { status: response.status, code: body['code'], ...(body['errors'] !== undefined && { errors: body['errors'] }) };
}

describe('the gateway', () => {
  let gateway: GivenGateway;
  beforeAll(async () => {
    gateway = await givenGateway();
  });
  afterAll(() => gateway.close());

  describe('routes', () => {
    it('answers with what the operation declares and nothing else', async () => {
      const response = await gateway.post('/notes', { text: 'hello', unknown: 1, metadata: { colour: 'red' } });
      expect(response.status).toBe(201);
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(response.headers.get('gatehouse-position')).toBe('0000000000000007');
      expect(await response.json()).toMatchObject({ object: 'note', text: 'hello', seen: { metadata: { colour: 'red' } } });
    });

    it('sends what is serialised already as it is', async () => {
      const response = await gateway.request('GET', `/notes/note_${ULID}`);
      expect(await response.text()).toBe(`{"object":"note","id":"note_${ULID}","text":"stored","seen":"environment_${ULID}"}`);
    });

    it('sends no content type with an empty body', async () => {
      const response = await gateway.request('DELETE', `/notes/note_${ULID}`);
      expect(response.status).toBe(204);
      expect(response.headers.get('content-type')).toBeNull();
      const accepted = await gateway.request('DELETE', '/notes', { body: '{"text":"old"}', headers: { 'Content-Type': 'application/json' } });
      expect(accepted.status).toBe(202);
      expect(accepted.headers.get('content-type')).toBeNull();
      expect(await accepted.text()).toBe('');
      expect(gateway.notes.deleted).toEqual([`note_${ULID}`, 'old']);
    });

    it('answers HEAD like GET, without the body', async () => {
      const response = await gateway.request('HEAD', `/notes/note_${ULID}`);
      expect(response.status).toBe(200);
      expect(Number(response.headers.get('content-length'))).toBeGreaterThan(50);
    });

    it('lets a static segment win over a parameter', async () => {
      expect(await (await gateway.request('GET', '/notes/label/pins')).json()).toMatchObject({
        text: 'pins',
        seen: { context: { environment: `environment_${ULID}` } },
      });
      expect(await (await gateway.request('GET', `/notes/note_${ULID}/pins`)).json()).toMatchObject({ text: 'pins', seen: {} });
    });

    it.each(['a b', 'a/b', '../up', '%41', 'a%2Fb', 'a.b', 'ü'.repeat(64), '/'.repeat(128)])('decodes a path parameter once: %p', async (label) => {
      expect(await (await gateway.request('GET', `/notes/label/${encodeURIComponent(label)}`)).json()).toMatchObject({ text: label });
    });

    it('names the methods of a path that has others', async () => {
      const response = await gateway.request('PUT', `/notes/note_${ULID}`);
      expect(response.headers.get('allow')).toBe('DELETE, GET, HEAD');
      expect(await refusalOf(response)).toEqual({ status: 405, code: 'method_not_allowed' });
      expect(await refusalOf(await gateway.request('PATCH', '/notes', { body: '{', headers: { 'Content-Type': 'application/json' } }))).toEqual({
        status: 405,
        code: 'method_not_allowed',
      });
    });

    it.each([
      ['POST', '/notes/label/w1', 'DELETE, GET, HEAD'],
      ['POST', '/notes/label/w1/x/y', 'DELETE, GET, HEAD'],
      ['POST', '/notes/label/w1%2Fauthors', 'DELETE, GET, HEAD'],
      // The path of a sub-resource, whatever the method.
      ['POST', '/notes/label/w1/authors', 'GET, HEAD'],
      ['DELETE', '/notes/label/w1/authors', 'GET, HEAD'],
      ['PUT', '/notes/l%61bel/w1/%61uthors', 'GET, HEAD'],
      ['POST', '/notes/label/w1/authors/more', 'DELETE, GET, HEAD'],
    ])('tells of %s %s what the path really has', async (method, path, allowed) => {
      const response = await gateway.request(method, path);
      expect([response.status, response.headers.get('allow')]).toEqual([405, allowed]);
    });

    it.each(['GET', 'POST', 'DELETE'])('knows no object without a label on %s', async (method) => {
      expect(await refusalOf(await gateway.request(method, '/notes/label/'))).toEqual({ status: 404, code: 'route_not_found' });
    });

    it('does so for its other paths too', async () => {
      for (const path of ['/docs', '/openapi.json', '/health/live']) expect((await gateway.request('POST', path)).headers.get('allow')).toBe('GET, HEAD');
    });

    it.each(['/', '/nothing', '/notes/', `/notes/note_${ULID}/nothing`, '//nothing'])('knows no path %p', async (path) => {
      expect(await refusalOf(await gateway.request('GET', path))).toEqual({ status: 404, code: 'route_not_found' });
    });

    it.each(['/notes/%zz', '/notes/label/%', '/%ff', `/notes/note_${ULID}/pins?colour=%zz`])('refuses the encoding of %p', async (path) => {
      expect(await refusalOf(await gateway.request('GET', path))).toEqual({ status: 400, code: 'bad_request' });
    });

    it('takes the path of a sub-resource for that, whatever the method, and never for an identifier', async () => {
      expect(await (await gateway.request('GET', '/notes/label/w1/authors')).json()).toMatchObject({ text: 'authors of w1' });
      const before = gateway.notes.deleted.length;
      const refused = await gateway.request('DELETE', '/notes/label/w1/authors');
      expect(refused.headers.get('allow')).toBe('GET, HEAD');
      expect(await refusalOf(refused)).toEqual({ status: 405, code: 'method_not_allowed' });
      for (const path of ['w1%2Fauthors', 'w1/authors/', 'w1/authors/x', 'authors', '%77%31/other'])
        expect((await gateway.request('DELETE', `/notes/label/${path}`)).status).toBe(204);
      expect(gateway.notes.deleted.slice(before)).toEqual(['w1/authors', 'w1/authors/', 'w1/authors/x', 'authors', 'w1/other']);
    });

    it.each(['//notes/note_1', 'http://a/notes/note_1', 'HTTPS://elsewhere.test:8443/notes/note_1?x=1', 'http://a//notes/note_1'])(
      'takes the target %s for the path in it',
      async (target) => {
        const answer = await raw(gateway.port, `GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${KEY}\r\nConnection: close\r\n\r\n`);
        expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 200 OK');
      },
    );

    it.each(['http://a', 'http://a?/notes/note_1', 'ftp://a/notes/note_1', 'http:/notes/note_1'])('knows no path in the target %s', async (target) => {
      const answer = await raw(gateway.port, `GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${KEY}\r\nConnection: close\r\n\r\n`);
      expect(answer.split('\r\n')[0]).toMatch(/^HTTP\/1.1 40[04] /);
    });

    it('refuses a path that is longer than any', async () => {
      const tooLong = { status: 414, code: 'uri_too_long' };
      for (const path of [
        `/notes/${'x'.repeat(2_000)}`,
        `/notes/label/${'x'.repeat(2_000)}/authors`,
        `/notes/label/${'x'.repeat(5_000)}`,
        `/${'x'.repeat(5_000)}`,
      ])
        expect(await refusalOf(await gateway.request('GET', path))).toEqual(tooLong);
      expect((await gateway.request('GET', `/notes/note_${ULID}?x=${'x'.repeat(5_000)}`)).status).toBe(200);
      // The parser reads 16 KiB, and ends with what it has.
      const answer = await raw(gateway.port, `GET /${'x'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1.1 414 URI Too Long\r\n/);
      expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({ code: 'uri_too_long' });
      expect(await refusalOf(await gateway.request('GET', `/notes/label/${'x'.repeat(2_000)}`))).toMatchObject({
        status: 422,
        errors: [{ field: 'label', code: 'too_long' }],
      });
    });
  });

  describe('bodies', () => {
    const json = { 'Content-Type': 'application/json' };

    it.each(['GET', 'DELETE'])('treats an empty body with a JSON content type as absent on %s', async (method) => {
      expect((await gateway.request(method, `/notes/note_${ULID}`, { headers: json })).ok).toBe(true);
    });

    it.each([undefined, '', '  \n'])('treats the body %p as absent', async (body) => {
      expect(await refusalOf(await gateway.request('POST', '/notes', { body, headers: json }))).toMatchObject({
        status: 422,
        code: 'invalid_request_parameters',
        errors: expect.any(Array),
      });
    });

    it.each(['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON', 'application/merge-patch+json'])('reads %s', async (type) => {
      expect((await gateway.request('POST', '/notes', { body: '{"text":"x"}', headers: { 'Content-Type': type } })).status).toBe(201);
    });

    it('reads JSON that names no type', async () => {
      const body = '{"text":"bare"}';
      const answer = await raw(
        gateway.port,
        `POST /notes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      expect(answer).toMatch(/^HTTP\/1.1 201 /);
    });

    it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'nonsense'])('refuses a body of %s', async (type) => {
      expect(await refusalOf(await gateway.request('POST', '/notes', { body: '{"text":"x"}', headers: { 'Content-Type': type } }))).toEqual({
        status: 400,
        code: 'bad_request',
      });
    });

    it.each(['{', '{"text":}', 'text', '{"text":"x"} x', '\u0000'])('refuses the malformed body %p', async (body) => {
      expect(await refusalOf(await gateway.request('POST', '/notes', { body, headers: json }))).toEqual({ status: 400, code: 'bad_request' });
    });

    it('refuses a body that is not UTF-8', async () => {
      const response = await fetch(`${gateway.url}/notes`, {
        method: 'POST',
        headers: { ...json, Authorization: `Bearer ${KEY}` },
        body: Buffer.from([0x22, 0xff, 0x22]),
      });
      expect(await refusalOf(response)).toEqual({ status: 400, code: 'bad_request' });
    });

    it.each(['[]', '1', 'null', '"x"', '{"text":1}', '{"text":""}'])('refuses the value %p field by field', async (body) => {
      const refused = await refusalOf(await gateway.request('POST', '/notes', { body, headers: json }));
      expect(refused).toMatchObject({ status: 422, code: 'invalid_request_parameters' });
      expect((refused['errors'] as unknown[]).length).toBeGreaterThan(0);
    });

    it.each([
      '{"text":"x","metadata":{"__proto__":"polluted"}}',
      '{"text":"x","metadata":{"\\u005f_proto__":{"polluted":"1"}}}',
      '{"text":"x","metadata":{"__\\u0070roto__":{"polluted":"1"}}}',
      '{"__proto__":{"text":"x"}}',
    ])('refuses the key of %p', async (body) => {
      expect(await refusalOf(await gateway.request('POST', '/notes', { body, headers: json }))).toEqual({ status: 400, code: 'bad_request' });
    });

    it('takes constructor and prototype as data, and `__proto__` as text', async () => {
      const response = await gateway.post('/notes', { text: '__proto__', metadata: { constructor: 'a', prototype: 'b' } });
      expect(await response.json()).toMatchObject({ text: '__proto__', seen: { metadata: { constructor: 'a', prototype: 'b' } } });
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    });

    it.each([
      ['/notes', 64],
      ['/notes/import', 128],
    ])('%s refuses a body over %d KiB, however it arrives', async (path, kibibytes) => {
      const bodyOf = (bytes: number): string => '{"text":"x"}'.padEnd(bytes);
      expect((await gateway.request('POST', path, { body: bodyOf(kibibytes * 1024), headers: json })).status).toBe(201);
      const refused = { status: 413, code: 'payload_too_large' };
      expect(await refusalOf(await gateway.request('POST', path, { body: bodyOf(kibibytes * 1024 + 1), headers: json }))).toEqual(refused);
      const chunks = new ReadableStream({
        start: (stream) => {
          for (let count = 0; count <= kibibytes; count++) stream.enqueue(Buffer.alloc(1_024, 0x20));
          stream.close();
        },
      });
      const headers = { ...json, Authorization: `Bearer ${KEY}` };
      expect(await refusalOf(await fetch(gateway.url + path, { method: 'POST', headers, body: chunks, duplex: 'half' }))).toEqual(refused);
    });

    describe('of more than 4 KiB', () => {
      const send = (anything: string, padding = 5_000): Promise<Response> =>
        gateway.request('POST', '/notes/import', { body: `{"text":"x","anything":${anything}}`.padEnd(padding), headers: json });
      const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
      const keyed = (count: number): string => `{${Array.from({ length: count }, (_, index) => `"k${index}":0`).join(',')}}`;
      const refused = { status: 400, code: 'bad_request' };

      it('are refused where they are nested deeper than 32 levels', async () => {
        // One level is the body's own.
        expect((await send(nested(31))).status).toBe(201);
        expect(await refusalOf(await send(nested(32)))).toEqual(refused);
        expect(await refusalOf(await send('{"a":'.repeat(32) + '1' + '}'.repeat(32)))).toEqual(refused);
        expect(await refusalOf(await send('[{"a":'.repeat(5_000)))).toEqual(refused);
        // Side by side is not deep.
        expect((await send(`[${Array.from({ length: 500 }, () => nested(20)).join(',')}]`)).status).toBe(201);
      });

      it('are refused where they have more than 2,000 keys', async () => {
        expect((await send(keyed(1_998))).status).toBe(201);
        expect(await refusalOf(await send(keyed(1_999)))).toEqual(refused);
      });

      it('are judged by what is structure, not by what is text', async () => {
        for (const text of ['['.repeat(5_000), ':'.repeat(5_000), '\\"['.repeat(1_000), '\\\\', '{"a":"'.replaceAll('"', '\\"').repeat(500)])
          expect((await send(`["${text}"]`)).status).toBe(201);
        // The quote that is escaped does not end the text, the one after two backslashes does.
        expect(await refusalOf(await send(`["\\\\",${nested(40)}]`))).toEqual(refused);
        expect((await send(`["\\",${nested(40)}"]`)).status).toBe(201);
      });

      it('are looked at before they are parsed, so that what is no JSON is refused too', async () => {
        for (const body of ['"', '"\\', '}'.repeat(5_000), '"a'.repeat(3_000)]) expect(await refusalOf(await send(body))).toEqual(refused);
      });

      it('and only they', async () => {
        expect((await send(nested(100), 0)).status).toBe(201);
      });
    });

    it('ignores a body where the operation takes none', async () => {
      expect((await gateway.request('DELETE', `/notes/note_${ULID}`, { body: '{', headers: json })).status).toBe(204);
    });
  });

  describe('errors', () => {
    it('gives a refusal its declared status and a 404 the id', async () => {
      expect(await refusalOf(await gateway.post('/notes', { text: 'taken' }))).toEqual({ status: 409, code: 'domain_already_exists' });
      const missing = await gateway.request('GET', '/notes/nothing');
      expect(missing.status).toBe(404);
      expect(await missing.json()).toEqual({ message: "Note not found: 'nothing'.", code: 'entity_not_found', entity_id: 'nothing' });
    });

    it('says when to try again', async () => {
      gateway.notes.failures = 1;
      const response = await gateway.post('/notes', { text: 'away' });
      expect(response.headers.get('retry-after')).toBe('7');
      expect(await refusalOf(response)).toEqual({ status: 503, code: 'service_unavailable' });
    });

    it('says nothing of trying again where an operator has to look first', () => {
      const damaged = refusal(eventLogDamaged('organization-1'))!;
      expect(damaged).toMatchObject({ status: 503, headers: undefined });
      expect(JSON.parse(damaged.text!)).toEqual({ code: 'event_log_damaged', message: expect.stringContaining('an operator has to look') as unknown });
      const storeless = refusal(new DomainError('unavailable', 'blob_store_not_configured', 'It has none.'))!;
      expect(storeless).toMatchObject({ status: 503, headers: undefined });
    });

    it('says nothing of a wait of more than a minute, since clients sleep whatever it says', () => {
      expect(refusal(new LimitReached(10, 60))?.headers).toMatchObject({ 'Retry-After': '60' });
      expect(refusal(new LimitReached(10, 61))?.headers).not.toHaveProperty('Retry-After');
    });

    it('tells of a bug only a request id, and tells the log the rest', async () => {
      const response = await gateway.post('/notes', { text: 'bug' }, { 'X-Request-ID': 'the-bug' });
      expect(response.status).toBe(500);
      const text = await response.text();
      expect(JSON.parse(text)).toEqual({ message: expect.stringContaining('the-bug'), code: 'internal_error' });
      expect(text).not.toContain('secret detail');
      const line = gateway.log.lines.find(({ level }) => level === 'error');
      expect(line?.fields).toMatchObject({ requestId: 'the-bug', operation: 'CreateNote', error: expect.objectContaining({ message: 'secret detail' }) });
    });
  });

  describe('request ids', () => {
    it('accepts a harmless one and replaces others', async () => {
      const idOf = async (given: string) => (await gateway.request('GET', '/notes/x', { headers: { 'X-Request-ID': given } })).headers.get('x-request-id');
      expect(await idOf('Trace_1-a')).toBe('Trace_1-a');
      for (const given of ['a b', 'x'.repeat(65), 'a;b', '<script>']) expect(await idOf(given)).toMatch(/^req_[0-9A-Z]{26}$/);
    });

    it('are on every answer', async () => {
      for (const path of ['/nothing', '/notes/%zz', '/docs', '/openapi.json', '/health/live'])
        expect((await gateway.request('GET', path)).headers.get('x-request-id')).not.toBeNull();
    });
  });

  describe('positions', () => {
    it('lets a read wait for one, and refuses one beyond the end or none at all', async () => {
      const read = (position: string) => gateway.request('GET', `/notes/note_${ULID}`, { headers: { 'Gatehouse-Position': position } });
      expect((await read('5')).status).toBe(200);
      expect(await refusalOf(await read('6'))).toMatchObject({ status: 422, code: 'position_not_reached' });
      expect(await refusalOf(await read('nonsense'))).toMatchObject({ status: 422, code: 'position_not_reached', errors: [] });
    });
  });

  describe('connections', () => {
    it('answers what is no HTTP', async () => {
      const answer = await raw(gateway.port, 'NONSENSE\r\n\r\n');
      expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\nX-Request-ID: req_/);
      expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({ code: 'bad_request' });
    });

    const ask = (lines: string, path = `/notes/note_${ULID}`, version = '1.1'): Promise<string> =>
      raw(gateway.port, `GET ${path} HTTP/${version}\r\n${lines}Authorization: Bearer ${KEY}\r\nConnection: close\r\n\r\n`);

    it.each(['', 'Host: a\r\nHost: a\r\n', 'Host: a\r\nhOST: b\r\n'])('refuses a request that names its host not once: %j', async (lines) => {
      for (const path of [`/notes/note_${ULID}`, '/nothing', '/docs', '/health/live']) {
        // It comes to an end because the server closes the connection: what follows may be somebody's second request.
        const answer = await raw(gateway.port, `GET ${path} HTTP/1.1\r\n${lines}Authorization: Bearer ${KEY}\r\n\r\n`);
        expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
        expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({ code: 'bad_request' });
      }
    });

    it('answers HTTP/1.0, which has no host', async () => {
      expect(await ask('', undefined, '1.0')).toMatch(/^HTTP\/1.1 200 /);
      expect(await ask('Host: a\r\nHost: b\r\n', undefined, '1.0')).toMatch(/^HTTP\/1.1 400 /);
    });

    it('refuses more headers than anybody sends', async () => {
      const headers = (count: number, value = 'y'): string => Array.from({ length: count }, (_, index) => `X-${index}: ${value}\r\n`).join('');
      // With Host, Authorization and Connection it is a hundred.
      expect(await ask(`Host: x\r\n${headers(97)}`)).toMatch(/^HTTP\/1.1 200 /);
      for (const lines of [headers(98), headers(1_500), headers(5_000), headers(50, 'y'.repeat(1_000)), `X: ${'y'.repeat(20_000)}\r\n`]) {
        const answer = await ask(`Host: x\r\n${lines}`);
        expect(answer).toMatch(/^HTTP\/1.1 431 Request Header Fields Too Large\r\n/);
        expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({ code: 'headers_too_large' });
      }
    });

    it('ignores an expectation that it does not know', async () => {
      const head = `GET /notes/note_${ULID} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nExpect: 200-maybe\r\nConnection: close\r\n\r\n`;
      expect(await raw(gateway.port, head)).toMatch(/^HTTP\/1.1 200 /);
    });

    it('does nothing for a client that leaves in the middle of its body', async () => {
      const before = gateway.notes.carriedOut.length;
      await new Promise<void>((resolve) => {
        const socket = connect(gateway.port, '127.0.0.1');
        socket.end(`POST /notes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: 16\r\n\r\n{"text":"x"`);
        socket.resume().on('close', () => resolve());
      });
      expect(gateway.notes.carriedOut.length).toBe(before);
      expect((await gateway.request('GET', `/notes/note_${ULID}`)).status).toBe(200);
    });

    it('answers a client that has closed its half of the connection', async () => {
      const answer = await new Promise<string>((resolve) => {
        const socket = connect({ port: gateway.port, host: '127.0.0.1', allowHalfOpen: true });
        let text = '';
        socket.on('data', (chunk) => (text += String(chunk)));
        socket.on('end', () => resolve(text));
        socket.end(`GET /notes/note_${ULID} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n\r\n`);
      });
      expect(answer).toMatch(/^HTTP\/1.1 200 /);
    });
  });

  it('counts requests by operation, and unknown paths under none', async () => {
    await gateway.request('GET', '/nothing');
    const metrics = await (await gateway.request('GET', '/metrics')).text();
    expect(metrics).toMatch(/gatehouse_requests_total\{operation="GetNote",status="2xx"\} [1-9]/);
    expect(metrics).toMatch(/gatehouse_requests_total\{operation="none",status="4xx"\} [1-9]/);
    expect(metrics).not.toContain(ULID);
  });

  it('serves health beside the API when it has no port of its own', async () => {
    expect((await gateway.request('GET', '/health/live')).status).toBe(200);
    expect((await gateway.request('GET', '/health/ready')).status).toBe(200);
  });
});

it('answers 408 to a request that does not arrive', async () => {
  const gateway = await givenGateway({ REQUEST_TIMEOUT: '2s' });
  try {
    const answer = await raw(gateway.port, `POST /notes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: 100\r\n\r\n{"text":`);
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
    expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({ code: 'request_timeout' });
  } finally {
    await gateway.close();
  }
});

it('answers 503 to a request whose operation does not end', async () => {
  const gateway = await givenGateway({ REQUEST_TIMEOUT: '2s' });
  let open = (): void => {};
  gateway.notes.gate = new Promise((resolve) => (open = resolve));
  try {
    expect(await refusalOf(await gateway.post('/notes', { text: 'wait' }))).toEqual({ status: 503, code: 'service_unavailable' });
  } finally {
    open();
    await gateway.close();
  }
});

it('limits requests per key, and says when to come back', async () => {
  const gateway = await givenGateway({ RATE_LIMITS: 'on', RATE_LIMIT_PER_SECOND: '3' });
  try {
    const responses = await Promise.all(Array.from({ length: 10 }, () => gateway.request('GET', `/notes/note_${ULID}`)));
    const limited = responses.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThan(0);
    expect(limited[0]!.headers.get('retry-after')).toBe('1');
    expect(limited[0]!.headers.get('ratelimit-limit')).toBe('3');
    expect(await refusalOf(limited[0]!)).toEqual({ status: 429, code: 'rate_limit_exceeded' });
  } finally {
    await gateway.close();
  }
});

describe('the bytes of bodies', () => {
  // The clock is that of the machine: whatever is sent in a moment lies in two windows at most.
  const LIMIT = 64 * 1024;
  const body = '{"text":"x"}'.padEnd(LIMIT / 2);
  const headers = { 'Content-Type': 'application/json' };
  const statusesOf = async (variables: Readonly<Record<string, string>>, send: (gateway: GivenGateway) => Promise<Response>): Promise<readonly Response[]> => {
    const gateway = await givenGateway({ RATE_LIMIT_BODY_BYTES: '64KiB', ...variables });
    try {
      return await Promise.all(Array.from({ length: 12 }, () => send(gateway)));
    } finally {
      await gateway.close();
    }
  };
  const whole = (gateway: GivenGateway): Promise<Response> => gateway.request('POST', '/notes', { body, headers });
  const inChunks = (gateway: GivenGateway): Promise<Response> => {
    const stream = new ReadableStream({
      start: (controller) => {
        controller.enqueue(Buffer.from(body));
        controller.close();
      },
    });
    return fetch(`${gateway.url}/notes`, { method: 'POST', headers: { ...headers, Authorization: `Bearer ${KEY}` }, body: stream, duplex: 'half' });
  };

  it.each([
    ['with their length', whole],
    ['in chunks', inChunks],
  ])('are counted per key, where they come %s', async (_, send) => {
    const responses = await statusesOf({ RATE_LIMITS: 'on' }, send);
    const refused = responses.filter(({ status }) => status === 429);
    expect(responses.some(({ status }) => status === 201)).toBe(true);
    // Two halves fill a window, and there may be two windows.
    expect(refused.length).toBeGreaterThanOrEqual(12 - 2 * 2);
    expect(refused[0]!.headers.get('retry-after')).toBe('1');
    expect(await refusalOf(refused[0]!)).toEqual({ status: 429, code: 'rate_limit_exceeded' });
  });

  it('are not counted where no requests are', async () => {
    expect(new Set((await statusesOf({}, whole)).map(({ status }) => status))).toEqual(new Set([201]));
  });

  it('of small bodies are hardly noticed', async () => {
    const small = (gateway: GivenGateway): Promise<Response> => gateway.request('POST', '/notes', { body: '{"text":"x"}', headers });
    expect(new Set((await statusesOf({ RATE_LIMITS: 'on' }, small)).map(({ status }) => status))).toEqual(new Set([201]));
  });
});

it('writes one line per request, without bodies and keys', async () => {
  const gateway = await givenGateway({ ACCESS_LOG: 'on', TRUSTED_PROXIES: '127.0.0.0/8' });
  try {
    await gateway.post('/notes', { text: 'confidential' }, { 'X-Forwarded-For': '203.0.113.9' });
    const [line] = gateway.log.lines;
    expect(line?.fields).toMatchObject({ method: 'POST', route: '/notes', status: 201, environment: `environment_${ULID}`, address: '203.0.113.9' });
    expect(JSON.stringify(gateway.log.lines)).not.toMatch(/confidential|sk_/);
  } finally {
    await gateway.close();
  }
});

it('believes no X-Forwarded-For of a stranger', async () => {
  const gateway = await givenGateway({ ACCESS_LOG: 'on' });
  try {
    await gateway.request('GET', '/notes/x', { headers: { 'X-Forwarded-For': '203.0.113.9' } });
    expect(gateway.log.lines[0]?.fields).toMatchObject({ address: '127.0.0.1' });
  } finally {
    await gateway.close();
  }
});

it('answers 503 until everything behind it is there, and says where to look', async () => {
  const gateway = await givenGateway({}, { isStarted: false });
  const early = await gateway.post('/notes', { text: 'too early' });
  expect(early.status).toBe(503);
  expect(early.headers.get('retry-after')).not.toBeNull();
  expect((await gateway.request('GET', '/health/live')).status).toBe(200);
  expect(await (await gateway.request('GET', '/health/ready')).json()).toEqual({ status: 'not_ready', reason: 'starting' });
  gateway.app.get(Readiness).start();
  expect((await gateway.post('/notes', { text: 'in time' })).status).toBe(201);
  await gateway.close();
});

it('finishes what is in flight when it stops, and takes nothing more', async () => {
  const gateway = await givenGateway();
  let open = (): void => {};
  gateway.notes.gate = new Promise((resolve) => (open = resolve));
  const inFlight = gateway.post('/notes', { text: 'wait' });
  await until(() => gateway.notes.carriedOut.length > 0);
  const closed = gateway.close();
  await expect(gateway.request('GET', '/health/live')).rejects.toThrow();
  open();
  const answer = await inFlight;
  expect(answer.status).toBe(201);
  expect(answer.headers.get('connection')).toBe('close');
  await closed;
});

it('cuts off what does not finish in time', async () => {
  const gateway = await givenGateway({ SHUTDOWN_TIMEOUT: '1s' });
  gateway.notes.gate = new Promise(() => {});
  const inFlight = gateway.post('/notes', { text: 'wait' });
  const cut = expect(inFlight).rejects.toThrow();
  await until(() => gateway.notes.carriedOut.length > 0);
  await gateway.close();
  await cut;
});
