import { hash } from 'node:crypto';
import { GivenOrganization } from '#libs/testing/src/given-organization';
import { rawExchange } from '#libs/testing/src/raw-http';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

/** What clients send that cannot be installed here, as their HTTP libraries write it: the order of headers, the escapes and the empty values are theirs. */
const CLIENTS = {
  php: (key: string) => ['User-Agent: workos/workos-php/9.0.0', 'Content-Type: application/json', `Authorization: Bearer ${key}`],
  dotnet: (key: string) => ['Accept-Encoding: utf-8', `Authorization: Bearer ${key}`, 'User-Agent: workos-dotnet/6.2.0'],
  ruby: (key: string) => [
    'Accept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3',
    'Accept: */*',
    `Authorization: Bearer ${key}`,
    'User-Agent: workos-ruby/10.2.0 ruby/3.4.1 (x86_64-linux)',
  ],
  java: (key: string) => [
    `Authorization: Bearer ${key}`,
    'User-Agent: workos-java/7.2.0',
    'Content-Type: application/json; charset=utf-8',
    'Accept-Encoding: gzip',
  ],
} as const;

let suite: GivenSuite;
let acme: GivenOrganization;
let clientId: string;
beforeAll(async () => {
  suite = await givenSuite();
  clientId = await suite.clientIdOf(suite);
  await GivenOrganization.createModel(suite);
  acme = await GivenOrganization.create(suite);
});

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  readonly body: any;
}

/** Sends the request as it stands. */
async function sent(client: keyof typeof CLIENTS, line: string, body?: string, ...headers: readonly string[]): Promise<Answer> {
  const own = CLIENTS[client](suite.key);
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const lines = [`${line} HTTP/1.1`, `Host: ${new URL(suite.url).host}`, ...own, ...headers, ...length, 'Connection: close'];
  const answer = await rawExchange(suite.url, `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`);
  expect(answer).not.toBeNull();
  return { status: answer!.status, body: answer!.text === '' ? undefined : JSON.parse(answer!.text) };
}

const PASSWORD = 'ride-a-giraffe-7';
/** A sign-in without anything that a client would have to know: `oauth_tokens` and `impersonator` are absent, never null, which typed clients would read. */
const SIGNED_IN = { user: expect.any(Object), access_token: expect.any(String), refresh_token: expect.any(String), authentication_method: 'Password' };

async function person(email: string): Promise<void> {
  await suite.post('/user_management/users', { email, email_verified: true, password: PASSWORD }).expect(201);
}

const JSON_TYPE = 'Content-Type: application/json';
const idsOf = ({ body }: Answer): readonly string[] => body.data.map(({ id }: { id: string }) => id);

describe('the client for PHP', () => {
  it('filters by lists that it numbers', async () => {
    const { id } = await suite.post('/organizations', { name: 'Numbered', domains: ['numbered.test'] }).expect(201);
    expect(idsOf(await sent('php', 'GET /organizations?order=desc&domains%5B0%5D=numbered.test&domains%5B1%5D=nobodys.test'))).toEqual([id]);
    await suite.eventually(`/events?events=organization.created&organization_id=${id}`, { data: [{}] });
    const events = await sent('php', `GET /events?order=asc&events%5B0%5D=organization.updated&events%5B1%5D=organization.created&organization_id=${id}`);
    expect(events.body.data.map(({ event }: { event: string }) => event)).toEqual(['organization.created']);
    expect((await sent('php', `GET /events?order=asc&events%5B0%5D=user.created&organization_id=${id}`)).body.data).toEqual([]);
  });

  it('filters by lists of its enumerations', async () => {
    const membership = await acme.membership();
    await suite.put(`/user_management/organization_memberships/${membership}/deactivate`).expect(200);
    const path = `GET /user_management/organization_memberships?order=desc&organization_id=${acme.id}`;
    expect(idsOf(await sent('php', `${path}&statuses%5B0%5D=inactive`))).toEqual([membership]);
    expect(idsOf(await sent('php', `${path}&statuses%5B0%5D%5Bname%5D=Inactive&statuses%5B0%5D%5Bvalue%5D=inactive`))).toEqual([membership]);
  });

  it('is told where a filter is none of ours', async () => {
    expect(await sent('php', 'GET /organizations?order=desc&names%5B0%5D=acme')).toMatchObject({
      status: 422,
      body: { code: 'invalid_request_parameters', errors: [{ code: 'unknown_parameter', field: 'names[0]' }] },
    });
  });

  it('searches for two words', async () => {
    const { id } = await suite.post('/organizations', { name: 'Zwei Wörter GmbH' }).expect(201);
    expect(idsOf(await sent('php', 'GET /organizations?order=desc&search=w%C3%B6rter%20zwei'))).toEqual([id]);
  });

  it('writes what was never set as null, and empty maps as lists', async () => {
    const group = await acme.group();
    const roles = `{"role_assignments":[{"role_slug":"viewer","resource_id":null,"resource_external_id":null,"resource_type_slug":null}]}`;
    expect(await sent('php', `PUT /authorization/groups/${group}/role_assignments`, roles)).toMatchObject({
      status: 200,
      body: { data: [{ role: { slug: 'viewer' }, resource: { id: acme.root } }] },
    });
    const user = '{"email":"Php@Null.test ","first_name":"","last_name":null,"email_verified":null,"external_id":null,"metadata":[]}';
    expect(await sent('php', 'POST /user_management/users', user)).toMatchObject({
      status: 201,
      body: { email: 'php@null.test', first_name: '', last_name: null, email_verified: false, metadata: {} },
    });
    expect(await sent('php', 'POST /organizations', '{"name":"Php","metadata":[]}')).toMatchObject({ status: 201, body: { metadata: {} } });
    expect(await sent('php', `PUT /organizations/${acme.id}`, '[]')).toMatchObject({ status: 200, body: { id: acme.id } });
    expect(await sent('php', 'POST /organizations', '[]')).toMatchObject({ status: 422, body: { errors: [{ code: 'required', field: 'name' }] } });
  });

  it('signs somebody in, and seals the session, with null for whatever was not set', async () => {
    await person('php@sign-in.test');
    const client = `"client_id":"${clientId}","client_secret":"${suite.key}"`;
    const unset = '"invitation_token":null,"ip_address":null,"device_id":null,"user_agent":null,"signals_id":null,"radar_auth_attempt_id":null';
    const given = `{"grant_type":"password",${client},"email":"php@sign-in.test","password":"${PASSWORD}",${unset}}`;
    const signed = await sent('php', 'POST /user_management/authenticate', given);
    expect(signed).toEqual({ status: 200, body: SIGNED_IN });
    const session = `"session":{"seal_session":true,"cookie_password":"${Buffer.alloc(32, 1).toString('base64')}"}`;
    const refresh = `{"grant_type":"refresh_token",${client},"refresh_token":"${signed.body.refresh_token}","organization_id":null,${session}}`;
    const sealed = { sid: expect.stringMatching(/^session_/), sealed_session: expect.any(String) };
    expect(await sent('php', 'POST /user_management/authenticate', refresh)).toEqual({ status: 200, body: { ...SIGNED_IN, ...sealed } });
  });

  it('asks for a code, and signs in by the attempt that it is told of', async () => {
    await person('php@attempt.test');
    const browser = '"ip_address":"192.0.2.1","user_agent":"Mozilla/5.0","invitation_token":null,"signals_id":null,"radar_auth_attempt_id":null';
    const asked = await sent('php', 'POST /user_management/magic_auth', `{"email":"php@attempt.test",${browser}}`);
    expect(asked).toMatchObject({ status: 201, body: { object: 'magic_auth', radar_auth_attempt_id: expect.stringMatching(/^radar_att_/) } });
    const { code, radar_auth_attempt_id } = asked.body;
    const given = { grant_type: 'urn:workos:oauth:grant-type:magic-auth:code', client_id: clientId, client_secret: suite.key, email: 'php@attempt.test' };
    const signed = await sent('php', 'POST /user_management/authenticate', JSON.stringify({ ...given, code, radar_auth_attempt_id, device_id: null }));
    expect(signed).toEqual({ status: 200, body: { ...SIGNED_IN, authentication_method: 'MagicAuth' } });
  });

  it('deletes what hangs under a resource', async () => {
    const workspace = await acme.workspace();
    await acme.project(undefined, workspace);
    expect(await sent('php', `DELETE /authorization/resources/${workspace}?cascade_delete=0`)).toMatchObject({ status: 409 });
    expect(await sent('php', `DELETE /authorization/resources/${workspace}?cascade_delete=1`)).toEqual({ status: 204, body: undefined });
  });

  it('pages through a range that begins with a day', async () => {
    const own = await suite.otherEnvironment('php-range');
    for (const name of ['One', 'Two', 'Three']) await own.post('/organizations', { name }).expect(201);
    await own.eventually('/events?limit=3', { data: [{}, {}, {}] });
    const day = new Date(Date.now() - 24 * 60 * 60 * 1000).toISOString().slice(0, 10);
    const range = `order=asc&events%5B0%5D=organization.created&range_start=${day}&limit=2`;
    const first = await own.get(`/events?${range}`).expect(200);
    const second = await own.get(`/events?${range}&after=${first.list_metadata.after}`).expect(200);
    expect([...first.data, ...second.data].map(({ data }: { data: { name: string } }) => data.name)).toEqual(['One', 'Two', 'Three']);
    const tomorrow = new Date(Date.now() + 24 * 60 * 60 * 1000).toISOString().slice(0, 10);
    await own.get(`/events?range_start=${tomorrow}`).expect(200, { data: [] });
    for (const wrong of ['2026-02-30', '2026-1-1', 'today']) await own.get(`/events?range_start=${wrong}`).expect(422, { errors: [{ field: 'range_start' }] });
  });
});

describe('the client for .NET', () => {
  it('puts two slashes before the path, and names an encoding that nobody knows', async () => {
    expect(await sent('dotnet', `GET //organizations/${acme.id}`)).toMatchObject({ status: 200, body: { id: acme.id } });
    expect(await sent('dotnet', 'GET //openapi.json')).toMatchObject({ status: 200 });
  });

  it('takes a role away by criteria in the query, with the same in the body', async () => {
    const [membership, project] = [await acme.membership(), await acme.project()];
    const path = `/authorization/organization_memberships/${membership}/role_assignments`;
    for (const body of [undefined, '{}', `{"role_slug":"editor","resource_id":"${project}"}`]) {
      await suite.post(path, { role_slug: 'editor', resource_id: project }).expect(201);
      const type = body === undefined ? [] : [JSON_TYPE];
      expect(await sent('dotnet', `DELETE /${path}?role_slug=editor&resource_id=${project}`, body, ...type)).toEqual({ status: 204, body: undefined });
      await suite.get(path).expect(200, { data: [] });
    }
  });

  it('repeats in the query what the body of an update holds', async () => {
    const { id } = await suite.post('/organizations', { name: 'Net' }).expect(201);
    const body = '{"name":"Net & Co","metadata":{"tier":"gold"}}';
    expect(await sent('dotnet', `PUT //organizations/${id}?name=Net+%26+Co&metadata[]=%22tier%22:+%22gold%22`, body, JSON_TYPE)).toMatchObject({
      status: 200,
      body: { name: 'Net & Co', metadata: { tier: 'gold' } },
    });
  });

  it('searches for two words, and filters by lists in empty brackets', async () => {
    const { id } = await suite.post('/organizations', { name: 'Dot Net Works', domains: ['dotnet.test'] }).expect(201);
    expect(idsOf(await sent('dotnet', 'GET //organizations?search=net+dot&domains[]=dotnet.test&domains[]=nobodys.test&order=desc'))).toEqual([id]);
  });

  it('signs somebody in, reads the key set, and takes an entry from a list by the query', async () => {
    await person('dotnet@sign-in.test');
    const given = { client_id: clientId, client_secret: suite.key, grant_type: 'password', email: 'dotnet@sign-in.test', password: PASSWORD };
    const signed = await sent('dotnet', 'POST //user_management/authenticate', JSON.stringify(given), JSON_TYPE);
    expect(signed).toEqual({ status: 200, body: SIGNED_IN });
    const key = { kty: 'RSA', use: 'sig', alg: 'RS256', x5c: [expect.any(String)], 'x5t#S256': expect.any(String) };
    expect(await sent('dotnet', `GET //sso/jwks/${clientId}`)).toMatchObject({ status: 200, body: { keys: [key] } });
    await suite.post('/radar/lists/email/block', { entry: 'dotnet@sign-in.test' }).expect(200);
    const refused = await sent('dotnet', 'POST //user_management/authenticate', JSON.stringify(given), JSON_TYPE);
    expect(refused).toMatchObject({ status: 403, body: { message: expect.any(String), code: 'sign_in_blocked' } });
    expect(await sent('dotnet', 'DELETE //radar/lists/email/block?entry=dotnet%40sign-in.test')).toEqual({ status: 204, body: undefined });
    const ended = await sent(
      'dotnet',
      'POST //user_management/authenticate',
      JSON.stringify({ ...given, grant_type: 'refresh_token', refresh_token: 'x' }),
      JSON_TYPE,
    );
    expect(ended).toEqual({ status: 400, body: { error: 'invalid_grant', error_description: expect.any(String), message: ended.body.error_description } });
  });

  it('writes times with seven digits and the offset of its place', async () => {
    const own = await suite.otherEnvironment('dotnet-range');
    await own.post('/organizations', { name: 'One' }).expect(201);
    await own.eventually('/events', { data: [{}] });
    const at = (time: number): string => new Date(time + 3_600_000).toISOString().replace('Z', '0000%2B01:00');
    await own.get(`/events?range_start=${at(Date.now() - 60_000)}&range_end=${at(Date.now() + 60_000)}`).expect(200, { data: [{}] });
    await own.get(`/events?range_start=${at(Date.now() + 60_000)}`).expect(200, { data: [] });
  });
});

describe('the client for Ruby', () => {
  it('takes a role away by the role in the body and the resource in the query', async () => {
    const [membership, group, project] = [await acme.membership(), await acme.group(), await acme.project('ruby-1')];
    for (const path of [`/authorization/organization_memberships/${membership}/role_assignments`, `/authorization/groups/${group}/role_assignments`])
      for (const query of [`resource_id=${project}`, 'resource_external_id=ruby-1&resource_type_slug=project']) {
        await suite.post(path, { role_slug: 'editor', resource_id: project }).expect(201);
        expect(await sent('ruby', `DELETE ${path}?${query}`, '{"role_slug":"editor"}', JSON_TYPE)).toEqual({ status: 204, body: undefined });
        await suite.get(path).expect(200, { data: [] });
      }
  });

  it('refreshes a session with its key in the header alone, as its session helper does', async () => {
    await person('ruby@sign-in.test');
    const given = { client_id: clientId, client_secret: suite.key, grant_type: 'password', email: 'ruby@sign-in.test', password: PASSWORD };
    const { body } = await sent('ruby', 'POST /user_management/authenticate', JSON.stringify(given), JSON_TYPE);
    const refresh = JSON.stringify({ client_id: clientId, grant_type: 'refresh_token', refresh_token: body.refresh_token });
    expect(await sent('ruby', 'POST /user_management/authenticate', refresh, JSON_TYPE)).toEqual({ status: 200, body: SIGNED_IN });
  });

  it('adds a key from the second attempt on', async () => {
    const body = '{"name":"Ruby"}';
    const key = 'Idempotency-Key: 5b0e4f9e-2f4c-4a39-9d68-5a6b0b1fce2d';
    const [first, second] = [await sent('ruby', 'POST /organizations', body, JSON_TYPE, key), await sent('ruby', 'POST /organizations', body, JSON_TYPE, key)];
    expect([first.status, second.body.id]).toEqual([201, first.body.id]);
  });
});

describe('the client for Java', () => {
  it('gives a role, takes it away and gives it again, under a key that is a digest of what it asks', async () => {
    const [membership, project] = [await acme.membership(), await acme.project()];
    const path = `/authorization/organization_memberships/${membership}/role_assignments`;
    const body = `{"resource_id":"${project}","role_slug":"editor"}`;
    const key = `Idempotency-Key: retry-${hash('sha256', `POST ${path} ${body}`)}`;
    const given = await sent('java', `POST ${path}`, body, key);
    expect(await sent('java', `DELETE ${path}`, body)).toEqual({ status: 204, body: undefined });
    const again = await sent('java', `POST ${path}`, body, key);
    expect([given.status, again.status, again.body.id !== given.body.id]).toEqual([201, 201, true]);
    await suite.get(path).expect(200, { data: [{ id: again.body.id }] });
  });
});
