import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOfStep, secretOfBase32, stepAt } from '#apps/identity/src/authentication-factors/totp';
import { Text } from '#libs/contracts/src/fields';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { LmdbKeyStore } from '#libs/event-sourcing/src/sealing/lmdb.key-store';
import { markedFieldsOf } from '#libs/event-sourcing/src/sealing/marked-fields';
import { SealingEventStore } from '#libs/event-sourcing/src/sealing/sealing.event-store';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Canaries } from '#libs/testing/src/canaries';
import { gatehouse, SuiteProcess, type Ended } from '#libs/testing/src/process';
import { rawExchange } from '#libs/testing/src/raw-http';
import { eventually, until } from '#libs/testing/src/until';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';

const root = mkdtempSync(join(tmpdir(), 'gatehouse-canaries-'));
afterAll(() => rmSync(root, { recursive: true }));

const HASH = '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy';

const random = (): string => randomBytes(32).toString('base64url');

interface Answer {
  readonly status: number;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  readonly body: any;
}

type Ask = (
  method: string,
  path: string,
  options?: { readonly key?: string; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> },
) => Promise<Answer>;

interface Asking {
  readonly ask: Ask;
  /** As `ask`, where the answer may show no secret. */
  readonly askInPublic: Ask;
  readonly receiver: WebhookReceiver;
}

const SIGN_IN_EVENTS = [
  ...['magic_auth.created', 'email_verification.created', 'password_reset.created', 'password_reset.succeeded', 'invitation.created', 'invitation.revoked'],
  ...['authentication.magic_auth_failed', 'authentication.magic_auth_succeeded', 'authentication.password_succeeded'],
  ...['session.created', 'session.revoked'],
];

const claimsOf = (token: string): string => Buffer.from(token.split('.')[1]!, 'base64url').toString();

/** One run of the product that meets every kind of secret, kept with all that it left behind. */
describe('secrets', () => {
  const canaries = new Canaries();
  /** Of a password: rows of views hold it, and nothing else does. */
  const hashes = new Canaries();
  /** What is personal, or may be: views hold it, and so did deliveries and the bus. */
  const people = new Canaries();
  /** Of people of directories: views hold it, and nobody reads it in what a customer's IT is shown, nor in what is logged. */
  const listed = new Canaries();
  let shownRequests: string;
  const directory = join(root, 'data');
  const backup = join(root, 'backup');
  const ours = canaries.add('GATEHOUSE_API_KEY', `sk_${random()}`);
  const variables = {
    DATA_DIR: directory,
    DATA_MIN_FREE: '0',
    LOG_LEVEL: 'debug',
    ACCESS_LOG: 'on',
    GATEHOUSE_API_KEY: ours,
    MASTER_KEYS: canaries.add('master key', randomBytes(32).toString('base64')),
  };
  let firstKey: string;
  let runs: readonly Ended[];
  /** Answers that may show no secret, by what was asked. */
  const answers: (readonly [string, string])[] = [];
  let deliveries: string;
  let feed = '';
  let shownDeliveries: string;

  // Where it broke off, nothing may keep this process alive.
  let leave: readonly (() => unknown)[] = [];
  afterAll(async () => {
    for (const end of leave) await end();
  });
  beforeAll(async () => {
    const receiver = await WebhookReceiver.listen();
    receiver.answers(200, people.add('answer of a receiver', random()));
    const first = await SuiteProcess.start(variables);
    leave = [() => first.killHard(), () => receiver.close()];
    firstKey = canaries.add('first key', readFileSync(join(directory, 'development.key'), 'utf8').trim());
    let { url } = first;

    const ask: Ask = async (method, path, options = {}) => {
      const { key = ours, body, headers } = options;
      const response = await fetch(url + path, {
        method,
        headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
        body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
      });
      const text = await response.text();
      return { status: response.status, text, body: text === '' ? undefined : JSON.parse(text) };
    };
    /** As `ask`, where the answer may show no secret. */
    const askInPublic: Ask = async (method, path, options) => {
      const answer = await ask(method, path, options);
      answers.push([`${method} ${path}`, answer.text]);
      return answer;
    };

    // Keys: made, used, replaced and revoked.
    const made = async (name: string, ...words: readonly string[]): Promise<readonly [id: string, key: string]> => {
      const { code, stdout } = await gatehouse(variables, ...words);
      expect(code).toBe(0);
      const [id, key] = stdout.trim().split(/\s+/) as [string, string];
      return [id, canaries.add(name, key)];
    };
    const [id, created] = await made('created key', 'keys', 'create', '--environment', 'development', '--name', 'canary');
    const [replacingId, replacing] = await made('rotated key', 'keys', 'rotate', id, '--overlap', '1h');
    for (const key of [firstKey, created, replacing]) expect((await askInPublic('GET', '/organizations', { key })).status).toBe(200);
    expect((await gatehouse(variables, 'keys', 'revoke', replacingId)).code).toBe(0);
    expect((await askInPublic('GET', '/organizations', { key: replacing })).status).toBe(401);
    answers.push(['keys list', (await gatehouse(variables, 'keys', 'list')).stdout]);

    // Webhook secrets: shown by the answers about their endpoint, also from a stored answer.
    const keyed = { 'Idempotency-Key': 'canary' };
    const endpoint = {
      endpoint_url: receiver.url,
      events: ['organization.created', 'organization.updated', 'user.created', 'user.updated', 'api_key.created', 'api_key.revoked', ...SIGN_IN_EVENTS],
    };
    const { body: hook } = await ask('POST', '/webhook_endpoints', { body: endpoint, headers: keyed });
    canaries.add('webhook secret', hook.secret);
    expect((await ask('POST', '/webhook_endpoints', { body: endpoint, headers: keyed })).body).toEqual(hook);
    const { body: organization } = await askInPublic('POST', '/organizations', { body: { name: 'Watched' } });
    await receiver.receives(({ data }) => data.id === organization.id);
    const { body: rotated } = await ask('POST', `/webhook_endpoints/${hook.id}/rotate_secret`, { body: { overlap_seconds: 3600 }, headers: keyed });
    canaries.add('rotated webhook secret', rotated.secret);
    await ask('PATCH', `/webhook_endpoints/${hook.id}`, { body: { status: 'enabled' } });
    await askInPublic('PUT', `/organizations/${organization.id}`, { body: { name: 'Still watched' } });
    await receiver.receives(({ event }) => event === 'organization.updated');
    shownDeliveries = (await askInPublic('GET', `/webhook_endpoints/${hook.id}/deliveries`)).text;
    await askInPublic('POST', '/webhook_endpoints', { body: endpoint });

    // Passwords: as they are, and as another product stored them.
    const password = canaries.add('password', random());
    const { body: user } = await askInPublic('POST', '/user_management/users', {
      body: { email: people.add('email', `ada-${random().slice(0, 20).toLowerCase()}@acme.test`), password, first_name: people.add('name', random()) },
    });
    const imported = { password_hash: hashes.add('password hash', HASH), password_hash_type: 'bcrypt' };
    await askInPublic('PUT', `/user_management/users/${user.id}`, { body: imported });
    await askInPublic('PUT', `/user_management/users/${user.id}`, { body: { first_name: 'Ada' } });
    await askInPublic('GET', `/user_management/users?email=${user.email}`);
    await askInPublic('POST', '/user_management/users', { body: { email: user.email, password }, headers: { 'Idempotency-Key': 'password' } });
    await askInPublic('POST', '/user_management/users', { body: { email: 'grace@acme.test', password, ...imported } });
    await receiver.receives(({ event }) => event === 'user.updated');

    // API keys of customers: shown by the answer that makes them, also by a stored one; then asked about, expired and revoked.
    const apiKeys = `/organizations/${organization.id}/api_keys`;
    const { body: apiKey } = await ask('POST', apiKeys, { body: { name: 'canary' }, headers: keyed });
    canaries.add('API key', apiKey.value);
    expect((await ask('POST', apiKeys, { body: { name: 'canary' }, headers: keyed })).body).toEqual(apiKey);
    const validation = { value: apiKey.value };
    expect((await askInPublic('POST', '/api_keys/validations', { body: validation })).body.api_key.id).toBe(apiKey.id);
    expect((await askInPublic('GET', '/organizations', { key: apiKey.value })).status).toBe(401);
    await askInPublic('POST', '/api_keys/validations', { body: { ...validation, name: 7 } });
    await askInPublic('POST', `/api_keys/${apiKey.id}/expire`, { body: {} });
    await askInPublic('GET', apiKeys);
    await askInPublic('DELETE', `/api_keys/${apiKey.id}`);
    expect((await askInPublic('POST', '/api_keys/validations', { body: validation })).body.api_key).toBeNull();
    await receiver.receives(({ event }) => event === 'api_key.revoked');

    // Audit events: what an application tells lies sealed in rows as well.
    const told: string = canaries.add('audit event', random());
    const party = { id: told, type: told, name: told, metadata: { note: told } };
    const event = {
      action: told,
      occurred_at: new Date().toISOString(),
      actor: party,
      targets: [party],
      context: { location: told, user_agent: told },
      metadata: party.metadata,
    };
    const ownKey: Readonly<Record<string, string>> = { 'Idempotency-Key': canaries.add('key of an audit event', random()) };
    for (const headers of [{}, ownKey])
      expect((await askInPublic('POST', '/audit_logs/events', { body: { organization_id: organization.id, event }, headers })).status).toBe(200);
    const trail = await ask('GET', `/audit_logs/events?organization_id=${organization.id}&actor_names=${told}`);
    expect(trail.body.data).toHaveLength(1);

    // Secrets of the stream of a trail: used, replaced and never shown, also where it fails.
    const stream = `/admin/organizations/${organization.id}/audit_log_stream`;
    const streamReceiver = await WebhookReceiver.listen();
    leave = [() => first.killHard(), () => receiver.close(), () => streamReceiver.close()];
    streamReceiver.answers(200, people.add('answer of a receiver of a stream', random()));
    const streamed = { type: 'GenericHttps', url: streamReceiver.url, secret: canaries.add('secret of a stream', random()), from: 'beginning' };
    expect((await askInPublic('PUT', stream, { body: streamed })).status).toBe(200);
    await streamReceiver.receives(({ object }) => object === 'audit_log_batch');
    await until(async () => (await askInPublic('GET', `${stream}/deliveries`)).body.data.length > 0);
    const token = canaries.add('token of a stream', random());
    expect((await askInPublic('PUT', stream, { body: { type: 'Splunk', url: 'http://127.0.0.1:9/', token } })).status).toBe(200);
    await askInPublic('PUT', stream, { body: { type: 'GenericHttps', url: 'http://127.0.0.1:9/', token } });
    await askInPublic('PUT', stream, { body: { type: 'Splunk', url: 'http://127.0.0.1:9/', token: ` ${token}` } });
    await ask('POST', '/audit_logs/events', { body: { organization_id: organization.id, event: { ...event, action: 'streamed' } } });
    await until(async () => (await askInPublic('GET', stream)).body.state === 'error');

    await directories({ ask, askInPublic, receiver }, organization.id);
    await signIn({ ask, askInPublic, receiver });

    // Errors, with keys in places where they do not belong.
    const lost = canaries.add('unknown key', `sk_${random()}`);
    for (const key of [lost, `${lost} x`, `x${lost}`]) await askInPublic('GET', '/organizations', { key });
    for (const key of [lost, replacing]) {
      await ask('GET', `/organizations/${key}`);
      await ask('GET', `/organizations?after=${key}`);
      await ask('GET', `/${key}`);
      await ask('GET', `/%zz${key}`);
      await ask('POST', '/organizations', { body: `{"name":"${key}"` });
      await ask('POST', '/organizations', { body: { name: { key } } });
      await ask('POST', '/organizations', { body: { name: 'x', metadata: { [key]: 'x'.repeat(1_000) } } });
      await rawExchange(url, `GET ${key} HTTP/1.1\r\nAuthorization ${key}\r\n\r\n`);
      expect((await gatehouse(variables, 'keys', 'revoke', key)).code).not.toBe(0);
    }
    await ask('POST', '/organizations', { body: { name: 'x' }, headers: { 'Idempotency-Key': lost } });

    for (let after = '', page: Answer; ; after = `&after=${page.body.list_metadata.after}`) {
      page = await ask('GET', `/events?limit=100${after}`);
      feed += page.text;
      if (page.body.list_metadata.after === null) break;
    }
    for (const name of ['organization.updated', 'magic_auth.created', 'session.created', 'invitation.created']) expect(feed).toContain(name);
    answers.push(['metrics', await (await fetch(`${url}/metrics`)).text()]);
    expect(await gatehouse(variables, 'backup', backup)).toMatchObject({ code: 0 });
    const killed = await first.killHard();
    const second = await SuiteProcess.start(variables);
    leave = [() => second.killHard(), () => receiver.close(), ...leave.slice(2)];
    ({ url } = second);
    expect((await ask('POST', '/webhook_endpoints', { body: endpoint, headers: keyed })).body).toEqual(hook);
    runs = [killed, await second.stop()];
    deliveries = JSON.stringify(receiver.received);
  });

  /** A token of a directory, and what its product sends: passwords, which are taken and kept nowhere, and what is personal, in places where it belongs and in others. */
  async function directories({ ask, askInPublic }: Asking, organization_id: string): Promise<void> {
    const { body: directory } = await askInPublic('POST', '/admin/directories', { body: { organization_id, type: 'generic scim v2.0', name: 'People' } });
    const { body: made } = await ask('POST', `/admin/directories/${directory.id}/tokens`);
    const token = canaries.add('token of a directory', made.token);
    await askInPublic('GET', `/admin/directories/${directory.id}/tokens`);
    const password = canaries.add('password by SCIM', random());
    const person = (what: string): string => listed.add(what, random());
    const scim = (method: string, path: string, body?: unknown) => askInPublic(method, `/scim/v2/${directory.id}${path}`, { key: token, body });
    const body = { userName: person('user name'), name: { givenName: person('given name') }, shoe: person('attribute of its own') };
    const { status, body: user } = await scim('POST', '/Users', { ...body, password });
    expect(status).toBe(201);
    const patch = (...Operations: readonly object[]) => scim('PATCH', `/Users/${user.id}`, { Operations });
    expect((await scim('PUT', `/Users/${user.id}`, { ...body, PASSWORD: password })).status).toBe(200);
    expect((await patch({ op: 'replace', path: 'password', value: password }, { op: 'add', value: { Password: password } })).status).toBe(200);
    expect((await patch({ op: 'add', path: 'urn:ietf:params:scim:schemas:core:2.0:User:password', value: password })).status).toBe(200);
    // Where neither belongs.
    for (const text of [password, token, body.userName]) {
      await ask('GET', `/scim/v2/${directory.id}/Users/${text}`, { key: token });
      await ask('GET', `/scim/v2/${directory.id}/${text}?filter=${encodeURIComponent(`password eq "${text}"`)}&attributes=${text}`, { key: token });
      await ask('GET', `/scim/v2/${directory.id}/Users?filter=${encodeURIComponent(`userName eq "${text}`)}`, { key: token });
      await ask('PATCH', `/scim/v2/${directory.id}/Users/${user.id}`, {
        key: token,
        body: { Operations: [{ op: text, path: `emails[value eq "${text}"`, value: text }] },
      });
      await ask('POST', `/scim/v2/${directory.id}/Groups`, { key: token, body: { displayName: text, members: [{ value: text }] } });
      await ask('POST', `/scim/v2/${directory.id}/Users`, { key: token, body: `{"userName":"${text}"` });
      await ask('GET', `/scim/v2/${text}/Users`, { key: text });
      await ask('GET', '/directories', { key: text });
    }
    // By a listing, once in a field that none may have.
    const listing = async (fields: object) => {
      const line = JSON.stringify({ type: 'user', id: body.userName, first_name: person('name in a listing'), ...fields });
      const headers = { 'Content-Type': 'application/x-ndjson' };
      const { body: run } = await askInPublic('PUT', `/admin/directories/${directory.id}/snapshot?force=true`, { body: `${line}\n`, headers });
      return eventually(async () => {
        const { body: shown, text } = await askInPublic('GET', `/admin/directories/${directory.id}/runs/${run.id}`);
        expect(['completed', 'failed']).toContain(shown.phase);
        expect(listed.foundIn(text)).toEqual([]);
        return shown.phase as string;
      });
    };
    expect(await listing({ password })).toBe('failed');
    expect(await listing({ shoe: person('another attribute') })).toBe('completed');
    shownRequests = await eventually(async () => {
      const { body: shown, text } = await askInPublic('GET', `/admin/directories/${directory.id}/requests?limit=100`);
      expect(shown.data.length).toBeGreaterThan(20);
      return text;
    });
    await askInPublic('DELETE', `/admin/directories/${directory.id}/tokens/${made.id}`);
    expect((await scim('GET', '/Users')).status).toBe(401);
  }

  /** Every kind of secret by which somebody signs in: shown by the answer that makes it, then used, used again, and shown where it does not belong. */
  async function signIn({ ask, askInPublic, receiver }: Asking): Promise<void> {
    const [users, factors] = ['/user_management/users', '/auth/factors'];
    const client_id = /client_\w+/.exec((await gatehouse(variables, 'environments', 'list')).stdout)![0];
    const given = { client_id, client_secret: ours, user_agent: people.add('browser', random()) };
    const grant = (name: string): string => `urn:workos:oauth:grant-type:${name}`;
    const authenticate = (fields: object) => ask('POST', '/user_management/authenticate', { body: { ...given, ...fields } });
    /** As `authenticate`, where it is refused. */
    const refused = async (fields: object): Promise<void> =>
      expect((await askInPublic('POST', '/user_management/authenticate', { body: { ...given, ...fields } })).status).toBeGreaterThanOrEqual(400);
    const refresh = (refresh_token: string) => authenticate({ grant_type: 'refresh_token', refresh_token });
    const email = (): string => people.add('address of a sign-in', `grace-${random().slice(0, 20).toLowerCase()}@acme.test`);

    const secrets = {
      providers: { google: { client_id: 'acme.apps.test', client_secret: canaries.add('client secret of a provider', random()) } },
      sms: { webhook_secret: canaries.add('secret of the webhook for texts', random()) },
    };
    expect((await askInPublic('PATCH', '/admin/environment_settings', { body: secrets })).status).toBe(200);

    // A code by mail, and the session that it yields.
    const person = email();
    const { body: magic } = await ask('POST', '/user_management/magic_auth', { body: { email: person } });
    const code = canaries.addWord('magic code', magic.code);
    const shown = { grant_type: grant('magic-auth:code'), email: person };
    await refused({ ...shown, code: canaries.addWord('wrong code', code === '918273' ? '918274' : '918273') });
    const { body: first } = await authenticate({ ...shown, code });
    const { body: second } = await refresh(canaries.add('refresh token', first.refresh_token));
    canaries.add('next refresh token', second.refresh_token);
    canaries.add('access token', second.access_token.split('.')[2]);
    await refused({ grant_type: 'refresh_token', refresh_token: second.refresh_token, client_secret: second.refresh_token });

    // A second factor.
    const { body: factor } = await ask('POST', `${factors}/enroll`, {
      body: { type: 'totp', totp_issuer: 'Acme', totp_user: 'grace', user_id: first.user.id },
    });
    const secret = canaries.add('TOTP secret', factor.totp.secret);
    canaries.addBytes('TOTP secret, as bytes', secretOfBase32(secret)!);
    const totp = canaries.addWord('TOTP code', codeOfStep(secretOfBase32(secret)!, stepAt(Date.now())));
    const challenge = async (): Promise<string> => (await askInPublic('POST', `${factors}/${factor.id}/challenge`)).body.id;
    expect((await askInPublic('POST', `/auth/challenges/${await challenge()}/verify`, { body: { code: totp } })).body.valid).toBe(true);
    const { body: another } = await ask('POST', '/user_management/magic_auth', { body: { email: person } });
    const { body: pending } = await authenticate({ ...shown, code: canaries.addWord('next magic code', another.code) });
    const token = canaries.add('pending token', pending.pending_authentication_token);
    const goesOn = { grant_type: grant('mfa-totp'), pending_authentication_token: token, authentication_challenge_id: await challenge() };
    await refused({ ...goesOn, code: totp });
    await refused({ ...goesOn, grant_type: grant('organization-selection'), organization_id: token });

    // A code that an application delivers itself, one that something speaks against a sign-in, and a token of a widget.
    const { body: delivered } = await askInPublic('POST', `${factors}/enroll`, { body: { type: 'generic_otp', user_id: first.user.id } });
    const { body: otp } = await ask('POST', `${factors}/${delivered.id}/challenge`, { body: {} });
    canaries.addWord('delivered code', otp.code);
    for (let times = 0; times < 2; times++) await askInPublic('POST', `/auth/challenges/${otp.id}/verify`, { body: { code: otp.code } });
    const suspected = { email: email(), password: canaries.add('password of a suspect', random()) };
    expect((await askInPublic('POST', users, { body: { ...suspected, email_verified: true } })).status).toBe(201);
    const riskOf = (bot_detection: string) => askInPublic('PATCH', '/admin/environment_settings', { body: { risk: { bot_detection } } });
    await riskOf('challenge');
    const { body: challenged } = await authenticate({ grant_type: 'password', ...suspected, user_agent: 'curl/8.5.0' });
    await riskOf('log');
    const { body: sentBeside } = await ask('GET', `/user_management/radar_challenges/${challenged.radar_challenge_id}`);
    const proof = { grant_type: grant('radar-email-challenge:code'), radar_challenge_id: challenged.radar_challenge_id };
    const goesOnThen = { ...proof, pending_authentication_token: canaries.add('pending token of a suspect', challenged.pending_authentication_token) };
    expect((await authenticate({ ...goesOnThen, code: canaries.addWord('code of a challenge', sentBeside.code) })).status).toBe(200);
    await refused({ ...proof, pending_authentication_token: first.refresh_token, code: sentBeside.code });
    const { body: acme } = await askInPublic('POST', '/organizations', { body: { name: 'Widgets' } });
    await askInPublic('POST', '/user_management/organization_memberships', { body: { organization_id: acme.id, user_id: first.user.id, role_slug: 'admin' } });
    const wanted = { organization_id: acme.id, user_id: first.user.id, scopes: [] };
    const { body: widget } = await ask('POST', '/widgets/token', { body: wanted, headers: { 'Idempotency-Key': 'widget' } });
    canaries.add('widget token', widget.token.split('.')[2]);
    expect((await askInPublic('GET', '/organizations', { key: widget.token })).status).toBe(401);

    // A code by text.
    expect((await askInPublic('PATCH', '/admin/environment_settings', { body: { sms: { countries: ['DE'] } } })).status).toBe(200);
    const phone_number = people.add('phone number', `+49151${String(randomBytes(4).readUInt32BE() % 10 ** 8).padStart(8, '0')}`);
    const { body: telephone } = await askInPublic('POST', `${factors}/enroll`, { body: { type: 'sms', phone_number } });
    const { body: texted } = await askInPublic('POST', `${factors}/${telephone.id}/challenge`, { body: {} });
    const text = await eventually(async () => {
      const { data } = (await ask('GET', '/dev/mailbox/messages')).body as { readonly data: readonly { readonly to: string; readonly text: string }[] };
      return data.find(({ to }) => to === phone_number)?.text ?? Promise.reject(new Error('No text came.'));
    });
    const sent = canaries.addWord('code of a text', /\d{6}/.exec(text)![0]);
    for (const given of [sent, sent]) await askInPublic('POST', `/auth/challenges/${texted.id}/verify`, { body: { code: given } });
    await askInPublic('POST', `${factors}/enroll`, { body: { type: 'sms', phone_number: `${phone_number}0` } });
    await askInPublic('GET', `${factors}/${phone_number}`);

    // An address that is confirmed, a password that is reset.
    const unproven = { email: email(), password: canaries.add('password of a sign-in', random()) };
    const { body: made } = await askInPublic('POST', users, { body: unproven });
    const { body: asked } = await authenticate({ grant_type: 'password', ...unproven });
    canaries.add('pending token of a password', asked.pending_authentication_token);
    const { body: verification } = await ask('GET', `/user_management/email_verification/${asked.email_verification_id}`);
    canaries.addWord('code of an address', verification.code);
    const confirmation = { body: { code: verification.code } };
    for (let times = 0; times < 2; times++) await askInPublic('POST', `${users}/${made.id}/email_verification/confirm`, confirmation);
    const { body: reset } = await ask('POST', '/user_management/password_reset', { body: { email: unproven.email } });
    canaries.add('reset token', reset.password_reset_token);
    const confirm = { body: { token: reset.password_reset_token, new_password: canaries.add('new password', random()) } };
    for (let times = 0; times < 2; times++) await askInPublic('POST', '/user_management/password_reset/confirm', confirm);

    // An invitation: its answer is stored.
    const invited = { body: { email: email() }, headers: { 'Idempotency-Key': 'invitation' } };
    const { body: invitation } = await ask('POST', '/user_management/invitations', invited);
    expect((await ask('POST', '/user_management/invitations', invited)).body).toEqual(invitation);
    canaries.add('invitation token', invitation.token);
    await refused({ ...shown, code, invitation_token: invitation.token });
    await ask('POST', `/user_management/invitations/${invitation.id}/revoke`);

    for (const misplaced of [second.refresh_token, token, invitation.token, reset.password_reset_token, secret]) {
      await ask('GET', `/organizations/${misplaced}`);
      await ask('POST', '/user_management/authenticate', { body: `{"grant_type":"${misplaced}"` });
      await refused({ grant_type: misplaced });
      await refused({ grant_type: 'refresh_token', refresh_token: misplaced, client_id: misplaced });
      await refused({ ...goesOn, pending_authentication_token: misplaced, code: misplaced, invitation_token: misplaced });
    }
    await askInPublic('POST', '/user_management/sessions/revoke', { body: { session_id: /session_\w+/.exec(claimsOf(second.access_token))![0] } });
    await refused({ grant_type: 'refresh_token', refresh_token: second.refresh_token });
    await receiver.receives(({ event }) => event === 'session.revoked');
  }

  it('are met in the run, every kind', () => {
    expect(canaries.names).toEqual([
      'GATEHOUSE_API_KEY',
      'master key',
      'first key',
      'created key',
      'rotated key',
      'webhook secret',
      'rotated webhook secret',
      'password',
      'API key',
      ...['audit event', 'key of an audit event', 'secret of a stream', 'token of a stream'],
      ...['token of a directory', 'password by SCIM'],
      ...['client secret of a provider', 'secret of the webhook for texts'],
      ...['magic code', 'wrong code', 'refresh token', 'next refresh token', 'access token'],
      ...['TOTP secret', 'TOTP secret, as bytes', 'TOTP code', 'next magic code', 'pending token'],
      ...['delivered code', 'password of a suspect', 'pending token of a suspect', 'code of a challenge', 'widget token', 'code of a text'],
      ...['password of a sign-in', 'pending token of a password', 'code of an address', 'reset token', 'new password', 'invitation token'],
      'unknown key',
    ]);
  });

  it('lie in no file of the data directory, but for the first key in its own', () => {
    expect(canaries.foundInDirectory(directory)).toEqual({ 'development.key': expect.arrayContaining(['first key, as it is']) });
  });

  it('of passwords lie, hashed, in rows alone', () => {
    expect(Object.keys(hashes.foundInDirectory(directory)).filter((file) => !file.startsWith('views'))).toEqual([]);
    expect(hashes.foundInDirectory(backup)).toEqual({});
    for (const text of [feed, deliveries, ...runs.flatMap(({ stdout, stderr }) => [stdout, stderr]), ...answers.map(([, answer]) => answer)])
      expect(hashes.foundIn(text)).toEqual([]);
  });

  it('lie in no backup', () => {
    expect(canaries.foundInDirectory(backup)).toEqual({});
    expect(canaries.foundInDirectory(`${backup}-keys`)).toEqual({});
  });

  it('of persons, and what receivers answered, lie in no backup either: only in what is refilled from the log, and is not in it', () => {
    expect(people.foundInDirectory(backup)).toEqual({});
    expect(people.foundInDirectory(`${backup}-keys`)).toEqual({});
    expect(readdirSync(join(backup, 'data')).sort()).toEqual(['format', 'log', 'log.state']);
    // They were there, and are found where they may be.
    expect(Object.values(people.foundInDirectory(join(directory, 'views'))).flat()).toEqual(expect.arrayContaining(['email, as it is', 'name, as it is']));
    expect(people.foundIn(shownDeliveries)).toEqual(['answer of a receiver, as it is']);
    expect(
      Object.values(people.foundInDirectory(directory))
        .flat()
        .filter((found) => found.startsWith('answer')),
    ).toEqual([]);
  });

  it('of people of directories are in nothing that the IT of their organization is shown, in no line that is logged, and in no file but of rows', () => {
    expect(listed.foundIn(shownRequests)).toEqual([]);
    for (const { stdout, stderr } of runs) expect(listed.foundIn(stdout + stderr)).toEqual([]);
    expect(listed.foundInDirectory(backup)).toEqual({});
    const found = Object.keys(listed.foundInDirectory(directory));
    expect(found.filter((file) => !file.startsWith('views'))).toEqual([]);
    expect(found).not.toEqual([]);
  });

  it('are in no line that is logged; the first key is shown once, by the start that made it', () => {
    const [first, second] = runs as [Ended, Ended];
    const lines = first.stdout.split('\n');
    const shown = lines.filter((line) => canaries.foundIn(line).length > 0);
    expect(shown).toEqual([`  first key  ${firstKey}`]);
    expect(lines.length).toBeGreaterThan(20);
    for (const output of [first.stderr, second.stdout, second.stderr]) expect(canaries.foundIn(output)).toEqual([]);
  });

  it('are in no event, delivery or answer that is not about them', () => {
    expect(canaries.foundIn(feed)).toEqual([]);
    expect(canaries.foundIn(deliveries)).toEqual([]);
    for (const [asked, text] of answers) expect([asked, canaries.foundIn(text)]).toEqual([asked, []]);
  });

  it('would be found', () => {
    const planted = join(root, 'planted');
    const value = canaries.add('planted', `sk_${random()}`);
    for (const text of [
      value,
      `{"a":"${value}"}`,
      Buffer.from(`x${value}`).toString('base64'),
      Buffer.from(`xy${value}z`).toString('base64url'),
      Buffer.from(value).toString('hex'),
    ]) {
      writeFileSync(planted, text);
      expect(canaries.foundInDirectory(root)['planted']).toHaveLength(text.includes(value) ? 2 : 1);
    }
    rmSync(planted);
    const word = canaries.addWord('planted word', '564738');
    for (const text of [word, `{"code":"${word}"}`, `is ${word}, used`]) expect(canaries.foundIn(text)).toEqual(['planted word, as it is']);
    for (const text of [`1${word}`, `0.${word}`, `${word}f`, `a-${word}`]) expect(canaries.foundIn(text)).toEqual([]);
  });
});

describe('personal values', () => {
  class Person {
    @Text({ doc: 'The name.', personal: true }) name!: string;
    @Text({ doc: 'The address.', personal: true }) email!: string;
    @Text({ doc: 'Shown to everybody.' }) nick!: string;
  }

  it('lie in no file of the log', async () => {
    const canaries = new Canaries();
    const directory = join(root, 'personal');
    const storage = await LmdbStorage.open({ directory });
    const keys = await LmdbKeyStore.open(storage.keys, []);
    const events = new SealingEventStore(new LmdbEventStore(storage), keys, markedFieldsOf({ person: Person }));
    const person = { name: canaries.add('name', 'Augusta Ada King'), email: canaries.add('email', 'ada@lovelace.test'), nick: 'countess-of-numbers' };
    const id = newUlid(Date.now());
    const meta = { environment: 'environment_1', actor: { id: 'spec', source: 'system', name: null }, requestId: id, commandId: id, at: Date.now() };
    const sealed = [{ of: 'person.1', fields: ['data', 'subject'].flatMap((part) => [`${part}.name`, `${part}.email`]) }];
    await events.append('person-environment_1-1', 0, [{ id, type: 'person.created', shape: 1, data: person, subject: person, public: [], sealed, meta }]);
    expect((await events.read('person-environment_1-1'))[0]?.data).toEqual(person);
    await storage.close();
    expect(canaries.foundInDirectory(directory)).toEqual({});
    canaries.add('nick', person.nick);
    expect(Object.values(canaries.foundInDirectory(directory)).flat()).toContain('nick, as it is');
  });
});
