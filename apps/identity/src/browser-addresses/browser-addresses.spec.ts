import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';

const URIS = '/user_management/redirect_uris';
const ORIGINS = '/user_management/cors_origins';

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite()));

describe('redirect URIs', () => {
  it('have a default: the first, until another is made it', async () => {
    const caller = await suite.otherEnvironment('uris');
    const first = await caller
      .post(URIS, { uri: 'https://acme.test/callback' })
      .expect(201, { object: 'redirect_uri', uri: 'https://acme.test/callback', default: true });
    const second = await caller.post(URIS, { uri: 'http://localhost:3000/callback' }).expect(201, { default: false });
    expect(await caller.post(URIS, { uri: 'http://localhost:3000/callback' }).expect(201)).toEqual(second);
    await caller.delete(`${URIS}/${first.id}`).expect(409, { code: 'redirect_uri_is_default' });
    await caller.post(URIS, { uri: 'http://localhost:3000/callback', default: true }).expect(201, { id: second.id, default: true });
    const { data } = await caller.get(`${URIS}?order=asc`).expect(200);
    expect(data.map(({ id, default: isDefault }: { id: string; default: boolean }) => [id, isDefault])).toEqual([
      [first.id, false],
      [second.id, true],
    ]);
    await caller.delete(`${URIS}/${first.id}`).expect(204);
    await caller.delete(`${URIS}/${second.id}`).expect(204);
    await caller.get(`${URIS}?after=${first.id}`).expect(200, { data: [] });
    await caller.get(`${URIS}?after=redir_01J0000000000000000000000A`).expect(422);
    await (await suite.otherEnvironment('foreign')).delete(`${URIS}/${second.id}`).expect(404);
  });

  it('are listed by pages', async () => {
    const caller = await suite.otherEnvironment('pages');
    const ids: string[] = [];
    for (let index = 0; index < 3; index++) ids.push((await caller.post(URIS, { uri: `https://acme.test/${index}` }).expect(201)).id as string);
    const page = await caller.get(`${URIS}?limit=2`).expect(200, { list_metadata: { before: null, after: ids[1] } });
    expect(page.data).toHaveLength(2);
    expect((await caller.get(`${URIS}?limit=2&after=${ids[1]}`).expect(200)).data.map(({ id }: { id: string }) => id)).toEqual([ids[0]]);
  });

  it.each(['https://acme.test/a?b=c', 'http://127.0.0.1:8080/', 'http://[::1]/x', 'com.acme.app://callback', 'com.acme.app:/callback', 'acme://done'])(
    'may be %s',
    async (uri) => {
      await suite.post(URIS, { uri }).expect(201, { uri });
    },
  );

  it.each([
    'http://acme.test/callback',
    'https://acme.test/#part',
    'https://user:secret@acme.test/',
    'https://acme.test\\@evil.test/',
    ' https://acme.test/',
    'https://acme.test/\n',
    'javascript:alert(1)',
    'javascript://acme.test/%0aalert(1)',
    'data:text/html,hello',
    'file:///etc/passwd',
    'ws://acme.test/',
    '/callback',
    'acme.test',
    'http://localhost.evil.test/',
    '',
  ])('may not be %j', async (uri) => {
    const { errors } = await suite.post(URIS, { uri }).expect(422);
    expect(errors).toMatchObject([{ field: 'uri' }]);
  });
});

describe('CORS origins', () => {
  it('are there once, whatever their spelling', async () => {
    const caller = await suite.otherEnvironment('origins');
    const { id } = await caller.post(ORIGINS, { origin: 'HTTPS://Acme.test:443/' }).expect(201, { object: 'cors_origin', origin: 'https://acme.test' });
    await caller.post(ORIGINS, { origin: 'https://acme.test' }).expect(409, { code: 'duplicate_cors_origin' });
    await caller.get(ORIGINS).expect(200, { data: [{ id }] });
    await caller.delete(`${ORIGINS}/${id}`).expect(204);
    await caller.post(ORIGINS, { origin: 'https://acme.test' }).expect(201);
  });

  it.each(['*', 'null', 'http://acme.test', 'https://acme.test/path', 'https://acme.test?x', 'https://acme.test#x', 'com.acme.app://x'])(
    'may not be %j',
    async (origin) => {
      await suite.post(ORIGINS, { origin }).expect(422);
    },
  );
});
