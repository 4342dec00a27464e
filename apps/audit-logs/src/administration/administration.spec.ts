import { RotateTokenKeys } from '#libs/contracts/src/token-keys/operations';
import { ListEnvironmentKeys, ListEnvironments, RevokeEnvironmentKey, RotateEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { START } from '#libs/event-sourcing/src/log/event-store';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { Canaries } from '#libs/testing/src/canaries';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

interface Told {
  readonly id: string;
  readonly action: string;
  readonly organization_id: string;
  readonly leaf_index: number;
  readonly occurred_at: string;
  readonly actor: { readonly id: string; readonly type: string; readonly name: string | null };
  readonly context: { readonly location: string; readonly user_agent: string | null };
  readonly targets: readonly { readonly id: string; readonly type: string; readonly name: string | null }[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

const TRAIL = '/audit_logs/events?scope=environment&limit=100&order=asc';
const OPERATOR = { actor: { id: 'command_line', source: 'system', name: 'command line' } } as const;

describe('the trail of an environment', () => {
  const canaries = new Canaries();
  const secret = canaries.add('client secret', 'GOCSPX-not-for-anybody');
  const sms = canaries.add('webhook secret', 'an-sms-secret-for-nobody');
  let suite: GivenSuite;
  let caller: Caller & { readonly id: string };
  let organization: string;
  let told: readonly Told[];

  const listed = async (query = ''): Promise<Told[]> => (await caller.get(`${TRAIL}${query}`).expect(200)).data;
  const of = (action: string): readonly Told[] => told.filter((each) => each.action === action);

  /** Somebody administers all day. */
  beforeAll(async () => {
    suite = await givenSuite({ replicas: true });
    caller = await suite.otherEnvironment();
    const agent = { 'User-Agent': 'console/1.0' };
    await caller.patch('/admin/environment_settings', { sign_up: false, sessions: { access_token_seconds: 900 } }, agent).expect(200);
    await caller.patch('/admin/environment_settings', { sign_up: true, sign_out_uris: ['https://acme.test/bye'] }, agent).expect(200);
    await caller
      .patch('/admin/environment_settings', { providers: { google: { client_id: 'acme', client_secret: secret } }, sms: { webhook_secret: sms } })
      .expect(200);
    organization = (await caller.post('/organizations', { name: 'Acme', domain_data: [{ domain: 'acme.test', state: 'verified' }] }).expect(201)).id;
    await caller.patch(`/admin/organizations/${organization}/authentication_policy`, { mfa: 'required' }).expect(200);
    const directory = (await caller.post('/admin/directories', { organization_id: organization, type: 'generic scim v2.0', name: 'Okta' }).expect(201)).id;
    const token = await caller.post(`/admin/directories/${directory}/tokens`).expect(201);
    canaries.add('directory token', token.token);
    await caller.delete(`/admin/directories/${directory}/tokens/${token.id}`).expect(204);
    await caller.patch(`/admin/directories/${directory}`, { name: 'Entra', policy: { follows: 'memberships' } }).expect(200);
    await caller.delete(`/directories/${directory}`).expect(202);
    const endpoint = await caller.post('/webhook_endpoints', { endpoint_url: 'https://acme.test/hooks', events: ['user.created'] }).expect(201);
    canaries.add('signing secret', endpoint.secret);
    await caller.delete(`/webhook_endpoints/${endpoint.id}`).expect(204);
    const [key] = await suite.call(ListEnvironmentKeys, {}).then((keys) => keys.filter(({ environment_id }) => environment_id === caller.id));
    const origin = { address: 'bastion', userAgent: 'gatehouse command line', operator: 'Ada Lovelace' };
    const rotated = await suite.call(RotateEnvironmentKey, { id: key!.id, overlap_seconds: 3_600 }, { ...OPERATOR, origin });
    canaries.add('environment key', rotated.value);
    await suite.call(RevokeEnvironmentKey, { id: rotated.id }, { ...OPERATOR, origin });
    const name = (await suite.call(ListEnvironments, {})).find(({ id }) => id === caller.id)!.name;
    await suite.call(RotateTokenKeys, { environment_name: name, now: true, drop: false }, { ...OPERATOR, origin, environment: SYSTEM_ENVIRONMENT });
    const user = (await caller.post('/user_management/users', { email: 'grace@acme.test' }).expect(201)).id;
    await caller.post(`/admin/users/${user}/erasure`).expect(202);
    await caller.delete(`/organizations/${organization}`).expect(202);
    told = await eventually(async () => {
      const all = await listed();
      expect(all.map(({ action }) => action)).toContain('organization.deleted');
      // Facts of one moment are listed by the clocks of who recorded them.
      return [...all].sort((one, other) => one.leaf_index - other.leaf_index);
    });
  });

  it('tells of each, in the order of the log', () => {
    const actions = told.map(({ action }) => action);
    expect(actions.filter((action) => action !== 'audit_key.created')).toEqual([
      ...['environment.created', 'environment_key.created'],
      ...['environment_settings.changed', 'environment_settings.changed', 'environment_settings.changed'],
      'authentication_policy.changed',
      ...['directory.created', 'dsync.token.created', 'dsync.token.revoked', 'directory.updated', 'dsync.deleted'],
      ...['webhook_endpoint.created', 'webhook_endpoint.deleted'],
      ...['environment_key.created', 'environment_key.rotated', 'environment_key.revoked'],
      ...['token_key.created'],
      'user.erased',
      'organization.deleted',
    ]);
    expect(told.map(({ leaf_index }) => leaf_index)).toEqual(told.map((_, index) => index));
    expect(new Set(told.map(({ organization_id }) => organization_id))).toEqual(new Set([caller.id]));
  });

  it('says who, from where, and what was before', () => {
    const [first, second, third] = of('environment_settings.changed');
    expect(first).toMatchObject({
      actor: { id: expect.stringMatching(/^environment_key_/), type: 'environment_key', name: 'test' },
      context: { location: expect.stringMatching(/^[0-9a-f.:]+$/), user_agent: 'console/1.0' },
      targets: [{ id: caller.id, type: 'environment_settings', name: null }],
    });
    const request = { request_id: expect.any(String) };
    expect(first!.metadata).toEqual({
      ...request,
      'before-sign_up': true,
      'after-sign_up': false,
      'before-sessions-access_token_seconds': 300,
      'after-sessions-access_token_seconds': 900,
    });
    expect(second!.metadata).toEqual({
      ...request,
      'before-sign_up': false,
      'after-sign_up': true,
      'before-sign_out_uris': '[]',
      'after-sign_out_uris': '["https://acme.test/bye"]',
    });
    expect(third!.metadata).toEqual({
      ...request,
      'after-providers-google-client_id': 'acme',
      'after-providers-google-client_secret': '(secret)',
      'after-sms-webhook_secret': '(secret)',
    });
    expect(of('authentication_policy.changed')[0]).toMatchObject({
      targets: [{ id: organization, type: 'authentication_policy' }],
      metadata: { 'before-mfa': 'inherit', 'after-mfa': 'required' },
    });
    expect(of('directory.updated')[0]).toMatchObject({
      targets: [
        { type: 'directory', name: 'Entra' },
        { type: 'organization', id: organization },
      ],
      metadata: { 'before-name': 'Okta', 'after-name': 'Entra', 'before-policy-follows': 'off', 'after-policy-follows': 'memberships' },
    });
    expect(of('dsync.token.revoked')[0]!.metadata).toMatchObject({ 'before-token_suffix': expect.any(String) });
    expect(of('organization.deleted')[0]!.metadata).toMatchObject({ 'before-name': 'Acme' });
    const operated = {
      actor: { id: 'command_line', type: 'command_line', name: 'Ada Lovelace' },
      context: { location: 'bastion', user_agent: 'gatehouse command line' },
    };
    expect(of('environment_key.rotated')[0]).toMatchObject({ ...operated, metadata: { 'after-expires_at': expect.any(String) } });
    expect(of('environment_key.revoked')[0]).toMatchObject({ ...operated, metadata: { 'before-is_revoked': false, 'after-is_revoked': true } });
    expect(of('token_key.created').at(-1)).toMatchObject(operated);
    expect(of('environment.created')[0]).toMatchObject({ actor: { id: 'system', type: 'system', name: null }, context: { location: '', user_agent: null } });
  });

  it('is found by what it says, one event too, and proven as any trail', async () => {
    expect((await listed('&actions=dsync.token.created')).map(({ action }) => action)).toEqual(['dsync.token.created']);
    expect((await listed('&actor_names=Ada%20Lovelace')).length).toBeGreaterThanOrEqual(4);
    expect((await listed(`&target_ids=${organization}`)).map(({ action }) => action)).toEqual([
      ...['authentication_policy.changed', 'directory.created', 'dsync.token.created', 'dsync.token.revoked', 'directory.updated', 'dsync.deleted'],
      'organization.deleted',
    ]);
    const [one] = told;
    await caller.get(`/audit_logs/events/${one!.id}`).expect(200, one);
    const proofs = `/audit_logs/organizations/${caller.id}`;
    const { size } = await caller.eventually(`${proofs}/checkpoint`, { organization_id: caller.id, trail: 'intact' });
    expect(size).toBeGreaterThan(0);
    await caller.get(`${proofs}/inclusion?event_id=${one!.id}&size=${size}`).expect(200, { leaf_index: 0 });
    await caller.get(`${proofs}/consistency?from=1`).expect(200, { to: size });
  });

  it('is nobody else’s to write, and shown to no other environment', async () => {
    const event = { action: 'forged', occurred_at: new Date().toISOString(), actor: { id: 'a', type: 'user' }, targets: [], context: { location: '' } };
    await caller.post('/audit_logs/events', { organization_id: caller.id, event }).expect(404, { entity_id: caller.id });
    expect((await suite.get(`/audit_logs/events?scope=environment&target_ids=${organization}`).expect(200)).data).toEqual([]);
    await suite.get(`/audit_logs/events/${told[0]!.id}`).expect(404);
  });

  it('holds no secret, and its log nothing personal in clear', async () => {
    const records = JSON.stringify(
      (await suite.recordsAfter(START)).filter(({ meta, stream }) => meta.environment === caller.id || stream.includes(caller.id)),
    );
    for (const text of [JSON.stringify(told), records]) expect(canaries.foundIn(text)).toEqual([]);
    for (const personal of ['console/1.0', 'Ada Lovelace', 'bastion']) expect(records).not.toContain(personal);
    expect(JSON.stringify(told)).not.toContain('enc.v1.');
    // Nothing but what is administration carries it.
    const origins = (await suite.records()).filter(({ meta }) => meta.environment === caller.id && meta.origin !== undefined).map(({ type }) => type);
    expect(origins).not.toContain('user.created');
    expect(origins).toContain('user.erased');
  });

  it('is whole again when the server was away, each event once', async () => {
    await suite.restart();
    await caller.patch('/admin/environment_settings', { sign_up: false }).expect(200);
    const all = await eventually(async () => {
      const now = await listed();
      expect(now.length).toBeGreaterThan(told.length);
      return now;
    });
    all.sort((one, other) => one.leaf_index - other.leaf_index);
    expect(all.slice(0, told.length)).toEqual(told);
    expect(all.slice(told.length).filter(({ action }) => action !== 'audit_key.created')).toMatchObject([{ action: 'environment_settings.changed' }]);
  });
});
