import { randomUUID } from 'node:crypto';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';

const PATH = '/admin/environment_settings';

let suite: GivenSuite;
beforeAll(async () => {
  suite = await givenSuite();
});

/** An environment that nothing was set in yet. */
const fresh = (): Promise<Caller & { readonly id: string }> => suite.otherEnvironment('settings');

describe('the settings of an environment', () => {
  it('begin with defaults, and change where they are told to', async () => {
    const caller = await fresh();
    const before = await caller
      .get(PATH)
      .expect(200, { object: 'environment_settings', environment_id: caller.id, updated_at: null, token_algorithm: 'RS256' });
    const { updated_at, ...after } = await caller
      .patch(PATH, { mfa: 'required', sessions: { access_token_seconds: 900 }, sms: { countries: ['DE', 'FR', 'DE'] } })
      .expect(200);
    expect({ ...after, updated_at: null }).toEqual({
      ...before,
      mfa: 'required',
      sessions: { ...before.sessions, access_token_seconds: 900 },
      sms: { ...before.sms, countries: ['DE', 'FR'] },
    });
    expect(Date.parse(updated_at)).toBeGreaterThan(0);
    await caller.get(PATH).expect(200, { ...after, updated_at });
    await (await fresh()).get(PATH).expect(200, { mfa: 'optional', updated_at: null });
  });

  it('record who changed what, and nothing where nothing differs', async () => {
    const caller = await fresh();
    await caller.patch(PATH, { sign_up: false }).expect(200);
    await caller.patch(PATH, { sign_up: false, risk: {} }).expect(200);
    await caller.patch(PATH, {}).expect(200);
    const records = (await suite.records('environment_settings.changed')).filter(({ meta }) => meta.environment === caller.id);
    expect(records.map(({ data, meta }) => ({ data, actor: meta.actor }))).toEqual([
      { data: { sign_up: false }, actor: { id: expect.stringMatching(/^environment_key_/), source: 'api', name: 'test' } },
    ]);
  });

  it('take secrets, and show only that there are any', async () => {
    const caller = await fresh();
    const secret = 'GOCSPX-not-for-anybody';
    const shown = await caller
      .patch(PATH, { providers: { google: { client_id: 'acme.apps.test', client_secret: secret } }, sms: { webhook_secret: `${secret}-of-sms` } })
      .expect(200, { providers: { google: { client_id: 'acme.apps.test', has_client_secret: true } }, sms: { has_webhook_secret: true } });
    expect(JSON.stringify(shown)).not.toContain(secret);
    expect(JSON.stringify(await suite.records())).not.toContain(secret);
    await caller
      .patch(PATH, { providers: { google: { client_secret: null } } })
      .expect(200, { providers: { google: { client_id: 'acme.apps.test', has_client_secret: false }, github: { has_client_secret: false } } });
  });

  it.each([
    ['sessions.access_token_seconds', { sessions: { access_token_seconds: 86_401 } }],
    ['sessions.access_token_seconds', { sessions: { access_token_seconds: '300' } }],
    ['token_algorithm', { token_algorithm: 'none' }],
    ['risk.bot_detection', { risk: { bot_detection: 'ask' } }],
    ['sms.countries.0', { sms: { countries: ['Germany'] } }],
    ['sms.webhook_url', { sms: { webhook_url: 'https://169.254.169.254/latest' } }],
    ['sms.webhook_url', { sms: { webhook_url: 'https://acme:secret@acme.test/sms' } }],
    ['branding.color', { branding: { color: 'red' } }],
    ['hosted_domain', { hosted_domain: 'acme test' }],
    ['login_uri', { login_uri: 'http://acme.test/login' }],
    ['login_uri', { login_uri: 'javascript://acme.test/%0aalert(1)' }],
    ['sign_out_uris.1', { sign_out_uris: ['https://acme.test/', 'https://acme.test/#top'] }],
    ['sign_out_uris.0', { sign_out_uris: ['https://user@acme.test/'] }],
    ['resources.0', { resources: ['https://acme.test\\@evil.test/'] }],
    ['issuer', { issuer: 'ftp://acme.test' }],
    ['default_role', { default_role: 'nobody' }],
  ])('refuse a wrong %s', async (field, body) => {
    const { errors } = await suite.patch(PATH, body).expect(422);
    expect(errors.map((error: { field: string }) => error.field)).toEqual([field]);
  });

  it('allow http for addresses of the machine that a browser runs on', async () => {
    const sign_out_uris = ['http://localhost:3000/', 'http://127.0.0.1/bye', 'http://[::1]:8080/', 'https://acme.test/bye?x=1'];
    await suite.patch(PATH, { sign_out_uris }).expect(200, { sign_out_uris });
  });

  it('say which role newcomers have, and whether there may be several', async () => {
    const caller = await fresh();
    const organization_id = (await caller.post('/organizations', { name: 'Acme' }).expect(201)).id;
    const memberships = '/user_management/organization_memberships';
    const joined = async (roles: object, status: number): Promise<{ readonly roles: readonly { readonly slug: string }[]; readonly code: string }> => {
      const user_id = (await caller.post('/user_management/users', { email: `${randomUUID()}@acme.test` }).expect(201)).id;
      return caller.post(memberships, { organization_id, user_id, ...roles }).expect(status);
    };
    await caller.patch(PATH, { default_role: 'admin', multiple_roles: false }).expect(200);
    expect((await joined({}, 201)).roles).toEqual([{ slug: 'admin' }]);
    expect((await joined({ role_slugs: ['admin', 'member'] }, 422)).code).toBe('multiple_roles_not_enabled');
    await caller.patch(PATH, { default_role: 'member', multiple_roles: null }).expect(200);
    expect((await joined({}, 201)).roles).toEqual([{ slug: 'member' }]);
    expect((await joined({ role_slugs: ['admin', 'member'] }, 201)).roles).toHaveLength(2);
  });

  it('say which permissions API keys may have', async () => {
    const caller = await fresh();
    const { id } = await caller.post('/organizations', { name: 'Acme' }).expect(201);
    const keys = `/organizations/${id}/api_keys`;
    await caller.patch(PATH, { api_key_permissions: ['widgets:sso:manage'] }).expect(200);
    await caller.post(keys, { name: 'one', permissions: ['widgets:sso:manage'] }).expect(201);
    await caller
      .post(keys, { name: 'two', permissions: ['widgets:sso:manage', 'widgets:dsync:manage'] })
      .expect(422, { errors: [{ code: 'permission_not_allowed', field: 'permissions.1' }] });
    await caller.patch(PATH, { api_key_permissions: null }).expect(200);
    await caller.post(keys, { name: 'two', permissions: ['widgets:dsync:manage'] }).expect(201);
  });
});
