import { JointWrites } from '#libs/event-sourcing/src/following/joint-writes';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { hash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import '#libs/contracts/src/all';
import { asyncApiDocument } from '#libs/contracts/src/asyncapi';
import { CreateEnvironment, CreateEnvironmentKey, FindEnvironmentKey, RotateEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { eventDataOf, PUBLIC_EVENT_NAMES } from '#libs/contracts/src/events';
import type { Class, Operation } from '#libs/contracts/src/operation';
import { FollowerStates } from '#libs/event-sourcing/src/following/follower-states';
import { Forwarders } from '#libs/event-sourcing/src/following/forwarder';
import { LeasedFollowers } from '#libs/event-sourcing/src/following/leased-followers';
import { START, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { categoryOf } from '#libs/event-sourcing/src/log/naming';
import { isProtocol } from '#libs/event-sourcing/src/log/protocol';
import { SystemClock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { Lifecycle } from '#libs/platform/src/lifecycle';
import { Metrics } from '#libs/platform/src/metrics';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { systemContext } from '#libs/platform/src/system-context';
import { Leases } from '#libs/read-models/src/leases';
import { LmdbReadModels } from '#libs/read-models/src/lmdb.read-models';
import { LmdbShortLived } from '#libs/read-models/src/lmdb.short-lived';
import { Canaries } from '#libs/testing/src/canaries';
import { startDnsServer, type DnsServer } from '#libs/testing/src/dns-server';
import { DocumentSchemas } from '#libs/testing/src/document-schemas';
import { givenKafka } from '#libs/testing/src/engines/given';
import { givenKafkaBus } from '#libs/testing/src/given-kafka-bus';
import { messagesInKafka } from '#libs/testing/src/kafka-messages';
import type { Published } from '#libs/testing/src/kept-messages';
import { recordsAfter } from '#libs/testing/src/records-after';
import { ProductInProcess } from '#libs/testing/src/running-product';
import { Caller } from '#libs/testing/src/suite';
import { until } from '#libs/testing/src/until';

const given = await givenKafka();
const log = new PinoLog({ level: 'silent', readable: false });
const clock = new SystemClock();
const document = asyncApiDocument('0.1.0');

/** As the services forward it. */
const ANNOUNCED = [
  {
    service: 'identity',
    categories: [
      'organization',
      'user',
      'organization_membership',
      'group',
      'api_key',
      'magic_auth',
      'email_verification',
      'password_reset',
      'invitation',
      'radar_challenge',
      'session',
      'attempt',
      'authentication_factor',
      'directory_link',
    ],
  },
  { service: 'directory-sync', categories: ['directory', 'directory_user', 'directory_group'] },
  { service: 'authorization', categories: ['authorization_model', 'organization_roles', 'resource_tree', 'role_assignment', 'group_role_assignment'] },
] as const;
/** A password, as another product would have stored it. */
const HASH = '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy';

/** Everything that happens in one run of the product, forwarded to Kafka and read from there. */
(given === null ? describe.skip : describe)('announcements in Kafka', () => {
  const canaries = new Canaries();
  let dns: DnsServer;
  let product: ProductInProcess;
  let records: readonly RecordedEvent[];
  let messages: readonly Published[];

  beforeAll(async () => {
    dns = await startDnsServer();
    product = await ProductInProcess.open({ variables: { DNS_SERVERS: dns.address }, log });
    canaries.add('first key', product.key);
    const other = await call(CreateEnvironment, { name: 'other' });
    const created = await call(CreateEnvironmentKey, { environment_name: other.name, name: 'other' });
    canaries.add('created key', created.value);
    const rotated = await call(RotateEnvironmentKey, { id: created.id, overlap_seconds: 60 });
    canaries.add('rotated key', rotated.value);
    await Promise.all([product.key, rotated.value].map((key) => useEverything(key)));
    records = await recordsOf(product);
    messages = await readFromKafka(records);
  }, 60_000);
  afterAll(async () => {
    await dns.close();
    await product.close();
  });

  function call<Answer>(type: Class<Operation<Answer>>, fields: object): Promise<Answer> {
    return product.call(Object.assign(new type(), fields, { context: systemContext(SYSTEM_ENVIRONMENT, Date.now()) }));
  }

  async function useEverything(key: string): Promise<void> {
    const caller = new Caller(() => product.url, key);
    const hook = await caller.post('/webhook_endpoints', { endpoint_url: 'http://127.0.0.1:9/', events: ['organization.created'] }).expect(201);
    canaries.add(`webhook secret ${hook.id}`, hook.secret);
    const again = await caller.post(`/webhook_endpoints/${hook.id}/rotate_secret`, { overlap_seconds: 60 }).expect(200);
    canaries.add(`rotated webhook secret ${hook.id}`, again.secret);
    const name = randomUUID();
    const domain_data = [{ domain: `verified-${name}.test`, state: 'verified' }];
    const { id } = await caller.post('/organizations', { name: 'Zoë 😀', metadata: { plan: 'gold' }, domain_data }).expect(201);
    await caller.put(`/organizations/${id}`, { name: 'Renamed' }).expect(200);
    const domains = await Promise.all(
      ['good', 'bad'].map((kind) => caller.post('/organization_domains', { domain: `${kind}-${name}.test`, organization_id: id }).expect(201)),
    );
    const [good, bad] = domains;
    // Before, the look-up that every domain begins with might find it, and nobody could ask for it any more.
    await until(() => dns.asked.includes(good.domain));
    dns.answers(good.domain, `verification_token=${good.verification_token}`);
    await caller.post(`/organization_domains/${good.id}/verify`).expect(201);
    await caller.eventually(`/organization_domains/${good.id}`, { state: 'verified' });
    await caller.post(`/admin/organization_domains/${bad.id}/verification`, { state: 'failed' });
    await caller.post(`/organization_domains/${bad.id}/verify`);
    await caller.delete(`/organization_domains/${good.id}`);
    await useDirectory(caller, id, hook.id);
    await usePeople(caller, id, hook.id);
    await caller.delete(`/organizations/${id}`);
  }

  async function useDirectory(caller: Caller, organization_id: string, secretsOf: string): Promise<void> {
    const { id } = await caller.post('/admin/directories', { organization_id, type: 'okta scim v2.0', name: 'Okta' }).expect(201);
    const { token, id: tokenId } = await caller.post(`/admin/directories/${id}/tokens`).expect(201);
    canaries.add(`directory token ${secretsOf}`, token);
    const ask = async (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) => (await caller.scim(method, id, path, token, { body })).body;
    const password = canaries.add(`directory password ${secretsOf}`, `ride-a-zebra-${randomUUID()}`);
    const { id: user } = await ask('POST', '/Users', { userName: `${randomUUID()}@acme.test`, password });
    await ask('PATCH', `/Users/${user}`, { Operations: [{ op: 'replace', value: { title: 'Zoë 😀', password } }] });
    const { id: group } = await ask('POST', '/Groups', { displayName: 'Group', members: [{ value: user }] });
    await caller.eventually('/events?events=dsync.group.user_added&order=desc&limit=1', { data: [{ data: { user: { id: user } } }] });
    await ask('PATCH', `/Groups/${group}`, { Operations: [{ op: 'replace', value: { displayName: 'Renamed', members: [] } }] });
    await caller.eventually('/events?events=dsync.group.user_removed&order=desc&limit=1', { data: [{ data: { user: { id: user } } }] });
    await ask('DELETE', `/Groups/${group}`);
    await ask('DELETE', `/Users/${user}`);
    await caller.delete(`/admin/directories/${id}/tokens/${tokenId}`).expect(204);
    await caller.delete(`/directories/${id}`).expect(202);
  }

  async function usePeople(caller: Caller, organization: string, secretsOf: string): Promise<void> {
    const name = randomUUID();
    const password = canaries.add(`password ${secretsOf}`, `ride-a-giraffe-${name}`);
    const { id: user } = await caller.post('/user_management/users', { email: `${name}@acme.test`, password }).expect(201);
    const hashed = { password_hash: canaries.add(`password hash ${secretsOf}`, HASH), password_hash_type: 'bcrypt' };
    await caller.put(`/user_management/users/${user}`, { first_name: 'Zoë', ...hashed }).expect(200);
    const memberships = '/user_management/organization_memberships';
    const { id: membership } = await caller.post(memberships, { user_id: user, organization_id: organization }).expect(201);
    await caller.put(`${memberships}/${membership}`, { role_slug: 'admin' }).expect(200);

    const groups = `/organizations/${organization}/groups`;
    const { id: group } = await caller.post(groups, { name: 'Group' }).expect(201);
    await caller.patch(`${groups}/${group}`, { name: 'Renamed' }).expect(200);
    await caller.post(`${groups}/${group}/organization-memberships`, { organization_membership_id: membership }).expect(200);

    const apiKeys = `/user_management/users/${user}/api_keys`;
    const { id: apiKey, value } = await caller.post(apiKeys, { name: 'Build server', organization_id: organization }).expect(201);
    canaries.add(`API key ${secretsOf}`, value);
    await caller.post(`/api_keys/${apiKey}/expire`, { expires_at: '2999-01-01T00:00:00.000Z' }).expect(200);
    await caller.delete(`/api_keys/${apiKey}`).expect(204);

    const email = `${name}@acme.test`;
    const { code } = await caller.post('/user_management/magic_auth', { email }).expect(201);
    expect(code).toMatch(/^\d{6}$/);
    await signIn(caller, { email, code, password }, secretsOf);
    const { password_reset_token: token } = await caller.post('/user_management/password_reset', { email }).expect(201);
    canaries.add(`reset token ${secretsOf}`, token);
    const reset = { token, new_password: canaries.add(`reset password ${secretsOf}`, `reset-${name}`) };
    await caller.post('/user_management/password_reset/confirm', reset).expect(200);

    await invite(caller, organization, secretsOf);

    await caller.post('/admin/resource_types', { slug: 'project', name: 'Project', parent_type_slugs: ['organization'] }).expect(201);
    await caller.post('/authorization/permissions', { slug: 'read', name: 'Read' }).expect(201);
    await caller.patch('/authorization/permissions/read', { name: 'Read all' }).expect(200);
    await caller.post('/authorization/roles', { slug: 'reader', name: 'Reader', resource_type_slug: 'project' }).expect(201);
    await caller.put('/authorization/roles/reader/permissions', { permissions: ['read'] }).expect(200);
    const roles = `/authorization/organizations/${organization}/roles`;
    await caller.post(roles, { slug: 'org-reader', name: 'Ours' }).expect(201);
    await caller.patch(`${roles}/org-reader`, { name: 'Still ours' }).expect(200);
    const resource = { organization_id: organization, resource_type_slug: 'project', external_id: 'p-1', name: 'Project' };
    const { id } = await caller.post('/authorization/resources', resource).expect(201);
    const role = { role_slug: 'reader', resource_id: id };
    await caller.post(`/authorization/organization_memberships/${membership}/role_assignments`, role).expect(201);
    await caller.post(`/authorization/groups/${group}/role_assignments`, role).expect(201);

    await caller.delete(`${groups}/${group}/organization-memberships/${membership}`).expect(204);
    await caller.delete(`${groups}/${group}`).expect(204);
    await caller.delete(`${roles}/org-reader`).expect(204);
    await caller.delete(`/authorization/resources/${id}?cascade_delete=true`).expect(204);
    await caller.delete('/authorization/permissions/read').expect(204);
    await caller.delete('/admin/roles/reader').expect(204);
    await caller.delete(`${memberships}/${membership}`).expect(200);
    await caller.delete(`/user_management/users/${user}`).expect(200);
    const { id: erased } = await caller.post('/user_management/users', { email: `${name}@beta.test` }).expect(201);
    await caller.post(`/admin/users/${erased}/erasure`).expect(202);
  }

  async function invite(caller: Caller, organization_id: string, secretsOf: string): Promise<void> {
    const invitations = '/user_management/invitations';
    const { id: open } = await caller.post(invitations, { email: `${randomUUID()}@acme.test`, organization_id }).expect(201);
    await caller.post(`${invitations}/${open}/revoke`).expect(200);
    const { email } = await caller.post('/user_management/users', { email: `${randomUUID()}@acme.test` }).expect(201);
    const { id, token } = await caller.post(invitations, { email, organization_id }).expect(201);
    canaries.add(`invitation token ${secretsOf}`, token);
    const again = await caller.post(`${invitations}/${id}/resend`).expect(200);
    canaries.add(`next invitation token ${secretsOf}`, again.token);
    await caller.post(`${invitations}/${id}/accept`).expect(200);
  }

  async function signIn(caller: Caller, { email, code, password }: Readonly<Record<'email' | 'code' | 'password', string>>, secretsOf: string): Promise<void> {
    const { client_id } = await call(FindEnvironmentKey, { hash: hash('sha256', caller.key, 'hex') });
    const ask = (body: object) => caller.post('/user_management/authenticate', { client_id, client_secret: caller.key, ...body });
    const withCode = { grant_type: 'urn:workos:oauth:grant-type:magic-auth:code', email };
    await ask({ grant_type: 'password', email, password }).expect(400);
    await ask({ ...withCode, code: code === '000000' ? '000001' : '000000' }).expect(400);
    const { refresh_token, access_token, user } = await ask({ ...withCode, code }).expect(200);
    canaries.add(`refresh token ${secretsOf}`, refresh_token);
    canaries.add(`access token ${secretsOf}`, access_token);
    // Verified by mail: the password does for another address alone.
    await caller.put(`/user_management/users/${user.id}`, { password, email_verified: false }).expect(200);
    const { pending_authentication_token, email_verification_id } = await ask({ grant_type: 'password', email, password }).expect(403);
    canaries.add(`pending token ${secretsOf}`, pending_authentication_token);
    const { code: sent } = await caller.get(`/user_management/email_verification/${email_verification_id}`).expect(200);
    const grant = { grant_type: 'urn:workos:oauth:grant-type:email-verification:code', pending_authentication_token };
    await ask({ ...grant, code: sent === '000000' ? '000001' : '000000' }).expect(400);
    await ask({ ...grant, code: sent }).expect(200);
    await caller.patch('/admin/environment_settings', { risk: { bot_detection: 'challenge' } }).expect(200);
    const challenged = await ask({ grant_type: 'password', email, password, user_agent: 'curl/8.5.0' }).expect(403, { code: 'radar_challenge' });
    canaries.add(`token of a challenge ${secretsOf}`, challenged.pending_authentication_token);
    await caller.patch('/admin/environment_settings', { risk: { bot_detection: 'log' } }).expect(200);
    const { id: factor } = await caller.post('/auth/factors/enroll', { type: 'generic_otp', user_id: user.id }).expect(201);
    const challenge = async (): Promise<{ readonly id: string; readonly code: string }> => caller.post(`/auth/factors/${factor}/challenge`).expect(201);
    const first = await challenge();
    await caller.post(`/auth/challenges/${first.id}/verify`, { code: first.code }).expect(201, { valid: true });
    const more = await ask({ grant_type: 'password', email, password }).expect(403, { code: 'mfa_challenge' });
    canaries.add(`pending token of a second factor ${secretsOf}`, more.pending_authentication_token);
    const second = await challenge();
    const mfa = {
      ...{ grant_type: 'urn:workos:oauth:grant-type:mfa-totp', authentication_challenge_id: second.id },
      pending_authentication_token: more.pending_authentication_token,
    };
    await ask({ ...mfa, code: second.code === '000000' ? '000001' : '000000' }).expect(400);
    await ask({ ...mfa, code: second.code }).expect(200);
    const { totp } = await caller.post('/auth/factors/enroll', { type: 'totp', totp_issuer: 'Acme', totp_user: email }).expect(201);
    canaries.add(`totp secret ${secretsOf}`, totp.secret);
    await caller.patch('/admin/environment_settings', { sms: { countries: ['DE'] } }).expect(200);
    const phone_number = canaries.add(`phone number ${secretsOf}`, `+49151${String(Number.parseInt(randomUUID().slice(0, 8), 16) % 10 ** 8).padStart(8, '0')}`);
    const { id: telephone } = await caller.post('/auth/factors/enroll', { type: 'sms', phone_number }).expect(201);
    await caller.post(`/auth/factors/${telephone}/challenge`).expect(201);
    await caller.delete(`/auth/factors/${factor}`).expect(204);
  }

  async function readFromKafka(all: readonly RecordedEvent[]): Promise<readonly Published[]> {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-announcements-'));
    const storage = await LmdbStorage.open({ directory });
    const bus = await givenKafkaBus(given!, { partitions: 3, log });
    const [lifecycle, metrics, readModels] = [new Lifecycle(), new Metrics(), new LmdbReadModels(storage)];
    const leases = new Leases(new LmdbShortLived(storage, clock), newUlid(clock.now()), log, metrics);
    const followers = new LeasedFollowers({
      following: new LogFollowing(product.events, clock, log),
      writes: new JointWrites(readModels),
      leases,
      states: new FollowerStates(readModels, clock),
      lifecycle,
      metrics,
    });
    const forwarders = new Forwarders(followers, readModels, bus, log, metrics);
    for (const each of ANNOUNCED) forwarders.add(each);
    // Nothing else is announced today; what holds secrets would not tell them if it were.
    const announced = ANNOUNCED.flatMap(({ categories }): readonly string[] => categories);
    const rest = [...new Set(all.map(({ stream }) => categoryOf(stream)))].filter((category) => !announced.includes(category));
    forwarders.add({ service: 'notifications', categories: rest });
    await lifecycle.start();
    const expected = all.reduce((sum, record) => sum + Math.max(1, record.public.length), 0);
    const forwarded = async (): Promise<number> =>
      [...(await metrics.text()).matchAll(/^gatehouse_forwarder_messages_total\{.*\} (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
    await until(async () => (await forwarded()) >= expected, 30_000);
    await lifecycle.stop();
    const environments = new Set(all.map(({ meta }) => meta.environment));
    const stored = await messagesInKafka(given!.split(','), (topic) => environments.has(topic.split('.')[1]!));
    // The installation is Kafka's business.
    const read = new Map(stored.map((each) => [each.headers['ce_id']!, { ...each, topic: each.topic.slice(each.topic.indexOf('.') + 1) }]));
    expect(read.size).toBeGreaterThanOrEqual(expected);
    await bus.close();
    await storage.close();
    rmSync(directory, { recursive: true });
    return [...read.values()];
  }

  it('are of every kind, from both environments and from streams with secrets', () => {
    const types = new Set(messages.map(({ headers }) => headers['ce_type']));
    for (const name of PUBLIC_EVENT_NAMES) if (eventDataOf(name) !== null) expect(types).toContain(name);
    expect(new Set(messages.map(({ topic }) => topic.split('.')[0])).size).toBe(2);
    expect(types).toContain('webhook_endpoint.created');
    expect(canaries.names).toHaveLength(39);
  });

  it('hold no secret, in any form, and no field that is called so', () => {
    for (const { topic, key, value, headers } of messages) {
      const text = JSON.stringify([topic, key, headers]) + value;
      expect([headers['ce_type'], canaries.foundIn(text)]).toEqual([headers['ce_type'], []]);
      if (!topic.endsWith('.domain')) expect([...namesIn(JSON.parse(value))]).not.toContain('secret');
    }
    expect(canaries.foundIn(JSON.stringify({ value: product.key }))).not.toEqual([]);
  });

  it('are as the AsyncAPI document says', () => {
    const schemas = new DocumentSchemas(document, 'closed');
    for (const { topic, value, headers } of messages) {
      const type = headers['ce_type']!;
      const { payload, headers: header } = document.components.messages[topic.endsWith('.domain') ? 'domain_event' : type]!;
      expect([type, schemas.problemsOf(payload, JSON.parse(value)), schemas.problemsOf(header, headers)]).toEqual([type, [], []]);
    }
    const addresses = Object.values(document.channels).map(
      ({ address }) => new RegExp(`^${address.replace('{installation}.', '').replaceAll('.', '\\.').replace('{environment}', '[^.]+')}$`),
    );
    for (const { topic } of messages) if (!topic.includes('.notifications')) expect(addresses.filter((address) => address.test(topic))).toHaveLength(1);
  });
});

async function recordsOf(product: ProductInProcess): Promise<readonly RecordedEvent[]> {
  return (await recordsAfter(product.events, START)).filter(({ type, meta }) => !isProtocol(type) && meta.environment !== SYSTEM_ENVIRONMENT);
}

function* namesIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    if (!Array.isArray(value)) yield name;
    yield* namesIn(inner);
  }
}
