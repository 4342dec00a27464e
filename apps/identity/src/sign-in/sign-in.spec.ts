import { createHash, createPublicKey, randomUUID, verify } from 'node:crypto';
import bcrypt from 'bcrypt';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const AUTHENTICATE = '/user_management/authenticate';
const USERS = '/user_management/users';
const MAGIC = '/user_management/magic_auth';
const MEMBERSHIPS = '/user_management/organization_memberships';
const urn = (name: string, vendor = 'workos'): string => `urn:${vendor}:oauth:grant-type:${name}`;
const PASSWORD = 'ride-a-giraffe-7';
const MINUTE = 60_000;

type Body = Readonly<Record<string, unknown>>;

let suite: GivenSuite;
let clock: SettableClock;
let client_id: string;
/** Another environment. */
let elsewhere: Awaited<ReturnType<GivenSuite['otherEnvironment']>>;
let theirs: string;
beforeAll(async () => {
  clock = new SettableClock(Date.now());
  suite = await givenSuite({ clock });
  elsewhere = await suite.otherEnvironment();
  [client_id, theirs] = await Promise.all([suite.clientIdOf(suite), suite.clientIdOf(elsewhere)]);
});

/** Time goes on, and the gateway hears from the log that its keys are still good. */
const later = async (milliseconds: number): Promise<void> => {
  clock.forward(milliseconds);
  await eventually(() => suite.get('/organizations').expect(200));
};
const address = (): string => `${randomUUID()}@sign-in.test`;
/** As an application that keeps a secret. */
const ask = (body: Body, headers: Readonly<Record<string, string>> = {}) => suite.post(AUTHENTICATE, { client_id, client_secret: suite.key, ...body }, headers);
/** As one that cannot. */
const askOpenly = (body: Body) => suite.post(AUTHENTICATE, { client_id, ...body }, { Authorization: '' });
const codeFor = async (email: string): Promise<string> => (await suite.post(MAGIC, { email }).expect(201)).code;
const withCode = async (email: string, more: Body = {}) => ask({ grant_type: urn('magic-auth:code'), email, code: await codeFor(email), ...more });
const signedIn = async (email = address(), more: Body = {}) => (await withCode(email, more)).body;
const refresh = (refresh_token: string, more: Body = {}, headers: Readonly<Record<string, string>> = {}) =>
  ask({ grant_type: 'refresh_token', refresh_token, ...more }, headers);
const organization = async (name = 'Acme'): Promise<string> => (await suite.post('/organizations', { name }).expect(201)).id;
const join = async (organization_id: string, user_id: string, role_slug = 'member') =>
  suite.post(MEMBERSHIPS, { organization_id, user_id, role_slug }).expect(201);
const user = async (fields: Body = {}) => suite.post(USERS, { email: address(), email_verified: true, ...fields }).expect(201);
const claimsOf = (token: string): Record<string, unknown> => JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString());
const sessionOf = ({ access_token }: { readonly access_token: string }): string => claimsOf(access_token)['sid'] as string;
const eventsOf = async (userId: string): Promise<readonly string[]> =>
  (await suite.records())
    .filter(({ subject }) => (subject as { user_id?: string } | null)?.user_id === userId)
    .flatMap((record) => record.public.map(({ name }) => name));
const oauth = (error: string) => ({ error, error_description: expect.any(String), message: expect.any(String) });

describe('a code by mail', () => {
  it('signs somebody in, whoever they are', async () => {
    const email = address();
    const answer = await withCode(email, { ip_address: '192.0.2.7', user_agent: 'Firefox' });
    expect(answer.status).toBe(200);
    expect(answer.headers['cache-control']).toBe('no-store');
    const { user: signed, access_token, refresh_token } = answer.body;
    expect(answer.body).toEqual({ user: signed, access_token, refresh_token, authentication_method: 'MagicAuth' });
    expect(signed).toMatchObject({ email, email_verified: true, last_sign_in_at: expect.any(String) });
    const [header, claims] = access_token
      .split('.')
      .slice(0, 2)
      .map((part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()));
    expect(header).toEqual({ alg: 'RS256', typ: 'JWT', kid: expect.any(String) });
    expect(claims).toEqual({
      ...{ iss: expect.stringMatching(`/user_management/${client_id}$`), sub: signed.id, sid: expect.stringMatching(/^session_[0-9A-HJKMNP-TV-Z]{26}$/) },
      ...{ client_id, aud: client_id, jti: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/) },
      ...{ iat: Math.floor(clock.now() / 1_000), exp: Math.floor(clock.now() / 1_000) + 300, auth_time: expect.any(Number) },
    });
    const { keys } = await suite.get(`/sso/jwks/${client_id}`).expect(200);
    const [head, payload, signature] = access_token.split('.');
    const key = createPublicKey({ key: keys.find(({ kid }: { kid: string }) => kid === header.kid), format: 'jwk' });
    expect(verify('sha256', Buffer.from(`${head}.${payload}`), key, Buffer.from(signature, 'base64url'))).toBe(true);
    expect(await eventsOf(signed.id)).toEqual(['magic_auth.created', 'authentication.magic_auth_succeeded', 'session.created']);
    const { data } = await suite.get(`${USERS}/${signed.id}/sessions`).expect(200);
    expect(data).toMatchObject([
      { id: claims.sid, user_id: signed.id, auth_method: 'magic_code', status: 'active', ip_address: '192.0.2.7', user_agent: 'Firefox' },
    ]);
  });

  it('is taken in either spelling of the vendor, as JSON and as a form', async () => {
    const email = address();
    for (const vendor of ['workos', 'gatehouse']) {
      const form = new URLSearchParams({ client_id, client_secret: suite.key, grant_type: urn('magic-auth:code', vendor), email, code: await codeFor(email) });
      await suite.post(AUTHENTICATE, form.toString(), { 'Content-Type': 'application/x-www-form-urlencoded' }).expect(200);
    }
  });

  it('is spent on one session, which its client may ask for again for 30 seconds', async () => {
    const email = address();
    const shown = { grant_type: urn('magic-auth:code'), email, code: await codeFor(email) };
    const first = await ask(shown).expect(200);
    const again = await ask(shown).expect(200);
    expect(sessionOf(again)).toBe(sessionOf(first));
    expect(again.refresh_token).toBe(first.refresh_token);
    await later(30_001);
    await ask(shown).expect(400, { code: 'one_time_code_previously_used' });
    expect((await suite.records('session.created')).filter(({ data }) => (data as { id: string }).id === sessionOf(first))).toHaveLength(1);
  });

  it.each([
    ['is wrong', { code: '000000' }, 'invalid_one_time_code'],
    ['is for nobody', { email: address() }, 'invalid_one_time_code'],
  ])('is refused and told where it %s', async (_, wrong, code) => {
    const email = address();
    const right = await codeFor(email);
    const given = { email, code: right === '000000' ? '000001' : right, ...wrong };
    await ask({ grant_type: urn('magic-auth:code'), ...given }).expect(400, { code, message: expect.any(String) });
    const failed = (await suite.records('authentication.magic_auth_failed')).map(({ subject }) => subject);
    expect(failed).toContainEqual(
      expect.objectContaining({ type: 'magic_auth', status: 'failed', email: given.email, error: { code, message: expect.any(String) } }),
    );
  });
});

describe('whoever tries codes', () => {
  it('learns from no sequence of answers whether somebody has the address, where nobody may sign up', async () => {
    const caller = await suite.otherEnvironment('closed');
    // Whoever fails often waits otherwise, whether somebody has the address or not.
    await caller.patch('/admin/environment_settings', { sign_up: false, risk: { brute_force_attack: 'off' } }).expect(200);
    const client = { client_id: await suite.clientIdOf(caller), client_secret: caller.key };
    const newUser = async (): Promise<string> => (await caller.post(USERS, { email: address() }).expect(201)).email;
    const tried = async (email: string, isAskedBefore: boolean) => {
      let right: string | undefined;
      const answers: unknown[] = [];
      // An application that tells nobody whether there was somebody to send it to.
      const askForCode = async () => void ({ code: right } = (await caller.post(MAGIC, { email })).body);
      const guess = async (times: number) => {
        for (let place = 0; place < times; place++) {
          const code = String(place).padStart(6, right?.startsWith('0') === true ? '1' : '0');
          const { status, body, headers } = await caller.post(AUTHENTICATE, { ...client, grant_type: urn('magic-auth:code'), email, code });
          answers.push([status, body, headers['retry-after']]);
        }
      };
      if (isAskedBefore) await askForCode();
      await guess(6);
      await later(MINUTE);
      await askForCode();
      await guess(3);
      await askForCode();
      await guess(6);
      await later(58 * MINUTE);
      await guess(1);
      await later(2 * MINUTE);
      await guess(1);
      return answers;
    };
    const unknown = await tried(address(), true);
    const codes = unknown.map((answer) => (answer as [number, { code: string }])[1].code);
    const [wrong, many] = ['invalid_one_time_code', 'one_time_code_too_many_attempts'].map(
      (code) => (times: number) => Array.from({ length: times }, () => code),
    );
    expect(codes).toEqual([...wrong!(5), ...many!(1), ...wrong!(3), ...wrong!(5), ...many!(1), ...many!(1), ...wrong!(1)]);
    expect(await tried(await newUser(), true)).toEqual(unknown);
    expect(await tried(await newUser(), false)).toEqual(unknown);
  });
});

describe('a password', () => {
  it('signs its user in', async () => {
    const { id, email } = await user({ password: PASSWORD });
    const answer = await ask({ grant_type: 'password', email: email.toUpperCase(), password: PASSWORD }).expect(200);
    expect(answer).toMatchObject({ user: { id }, authentication_method: 'Password' });
    expect(await eventsOf(id)).toEqual(['authentication.password_succeeded', 'session.created']);
  });

  it('is refused alike whoever it is not of', async () => {
    const [{ email }, { email: without }] = [await user({ password: PASSWORD }), await user()];
    const answers = [];
    for (const given of [
      { email, password: 'another-giraffe-7' },
      { email: without, password: PASSWORD },
      { email: address(), password: PASSWORD },
    ])
      answers.push((await ask({ grant_type: 'password', ...given }).expect(400)) as object);
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
      new Set([JSON.stringify({ message: 'Invalid credentials.', code: 'invalid_credentials' })]),
    );
  });

  it('that was imported is hashed anew at its first success', async () => {
    const salted = Buffer.from('salt');
    const digest = createHash('sha1').update(PASSWORD).update(salted).digest();
    const { id, email } = await user({ password_hash: `{SSHA}${Buffer.concat([digest, salted]).toString('base64')}`, password_hash_type: 'ssha' });
    const set = async () =>
      (await suite.records('user.password_set'))
        .filter(({ stream }) => stream.endsWith(id))
        .map(({ data }) => (data as { password: { type: string } }).password.type);
    await ask({ grant_type: 'password', email, password: 'another-giraffe-7' }).expect(400);
    expect(await set()).toEqual(['ssha']);
    for (let times = 0; times < 2; times++) await ask({ grant_type: 'password', email, password: PASSWORD }).expect(200);
    expect(await set()).toEqual(['ssha', 'bcrypt-hmac']);
  });

  it('does not do for an address that was never verified: its mailbox is shown first', async () => {
    const { id, email } = await user({ password: PASSWORD, email_verified: false });
    const asked = await ask({ grant_type: 'password', email, password: PASSWORD }).expect(403, { code: 'email_verification_required', email });
    const { pending_authentication_token, email_verification_id } = asked;
    expect(Object.keys(asked).sort()).toEqual(['code', 'email', 'email_verification_id', 'message', 'pending_authentication_token']);
    const { code } = await suite.get(`/user_management/email_verification/${email_verification_id}`).expect(200);
    const grant = { grant_type: urn('email-verification:code'), pending_authentication_token };
    await ask({ ...grant, code: code === '000000' ? '000001' : '000000' }).expect(400, { code: 'invalid_one_time_code' });
    const answer = await ask({ ...grant, code }).expect(200);
    expect(answer).toMatchObject({ user: { id, email_verified: true }, authentication_method: 'Password' });
    expect(await eventsOf(id)).toEqual([
      ...['authentication.password_succeeded', 'email_verification.created', 'authentication.email_verification_failed'],
      ...['authentication.email_verification_succeeded', 'session.created'],
    ]);
  });

  it('is tried, like a code, ten times a minute for an address', async () => {
    const email = address();
    const tried = await Promise.all(Array.from({ length: 11 }, () => ask({ grant_type: urn('magic-auth:code'), email, code: '000000' })));
    expect(tried.map(({ status }) => status).sort()).toEqual([...Array<number>(10).fill(400), 429]);
    expect(tried.find(({ status }) => status === 429)!.body).toEqual(oauth('too_many_requests'));
  });
});

describe('an address that was never verified', () => {
  const registered = async () => user({ password: PASSWORD, email_verified: false });
  const withPassword = (email: string) => ask({ grant_type: 'password', email, password: PASSWORD });
  const verificationOf = async ({ email_verification_id }: { readonly email_verification_id: string }) =>
    (await suite.get(`/user_management/email_verification/${email_verification_id}`).expect(200)).code;

  it('may have been taken by a stranger: who proves it otherwise ends whatever was set before', async () => {
    const { id, email } = await registered();
    const strangers = await withPassword(email).expect(403, { code: 'email_verification_required' });
    const { session_id: own } = { session_id: sessionOf(await signedIn(email)) };
    const [proof] = (await suite.records('user.updated')).filter(({ stream }) => stream.endsWith(id));
    expect(proof).toMatchObject({
      data: { email_verified: true, credentials_removed_by: own },
      subject: { id, email_verified: true },
      public: [{ name: 'user.updated' }],
    });
    await withPassword(email).expect(400, { code: 'invalid_credentials' });
    const grant = { grant_type: urn('email-verification:code'), pending_authentication_token: strangers.pending_authentication_token };
    await ask({ ...grant, code: await verificationOf(strangers) }).expect(400, { code: 'invalid_pending_authentication_token' });
    expect((await suite.get(`${USERS}/${id}/sessions`).expect(200)).data).toMatchObject([{ id: own }]);
  });

  it('is confirmed without the password: that ends it too', async () => {
    const { id, email } = await registered();
    const { email_verification_id } = await withPassword(email).expect(403);
    const code = await verificationOf({ email_verification_id });
    await suite.post(`${USERS}/${id}/email_verification/confirm`, { code }).expect(200);
    await withPassword(email).expect(400, { code: 'invalid_credentials' });
  });

  it('keeps the password that it is proven together with, and then for good', async () => {
    const { email } = await registered();
    const asked = await withPassword(email).expect(403);
    await ask({
      ...{ grant_type: urn('email-verification:code'), pending_authentication_token: asked.pending_authentication_token, code: await verificationOf(asked) },
    }).expect(200);
    await signedIn(email);
    await withPassword(email).expect(200);
  });

  it('is another one than before: sessions of before end with its proof, and only they', async () => {
    const { id, email } = await user({ password: PASSWORD });
    const before = await withPassword(email).expect(200);
    await suite.put(`${USERS}/${id}`, { email: address() }).expect(200);
    const { email: other } = await suite.get(`${USERS}/${id}`).expect(200);
    const after = await signedIn(other);
    await refresh(before.refresh_token).expect(400, oauth('invalid_grant'));
    await refresh(after.refresh_token).expect(200);
    await withPassword(other).expect(400, { code: 'invalid_credentials' });
    const revoked = { data: { id: sessionOf(before), reason: 'credentials_removed' } };
    await eventually(async () => expect(await suite.records('session.revoked')).toContainEqual(expect.objectContaining(revoked)));
    expect(await suite.records('session.revoked')).not.toContainEqual(expect.objectContaining({ data: expect.objectContaining({ id: sessionOf(after) }) }));
  });
});

describe('what cannot be understood is refused as OAuth has it', () => {
  it.each<[string, Body, string]>([
    ['no grant type', {}, 'invalid_request'],
    ['a grant type of another vendor', { grant_type: urn('magic-auth:code', 'acme') }, 'invalid_request'],
    ['no email', { grant_type: 'password', password: PASSWORD }, 'invalid_request'],
    ['no code', { grant_type: urn('magic-auth:code'), email: 'ada@sign-in.test' }, 'invalid_request'],
    ['no refresh token', { grant_type: 'refresh_token' }, 'invalid_request'],
  ])('%s', async (_, body, error) => expect((await ask(body)).body).toEqual(oauth(error)));

  it.each(['workos', 'gatehouse'])('a challenge by text message, which nobody is sent, in the words of %s', async (vendor) => {
    const { body } = await ask({ grant_type: urn('radar-sms-challenge:code', vendor), code: '000000', pending_authentication_token: 'x' });
    expect(body).toEqual({ ...oauth('invalid_request'), error_description: expect.stringContaining('text message') });
  });

  it('a password without a secret', async () => {
    await askOpenly({ grant_type: 'password', email: address(), password: PASSWORD }).expect(400, oauth('invalid_request'));
  });
  it.each<[string, Body | string, string]>([
    ['no client', { grant_type: 'password' }, 'client_id'],
    ['what is no text', { client_id: 'client_1', grant_type: 'password', email: 7, password: ['x'] }, 'email must be'],
    ['a code that is longer than any', { client_id: 'client_1', grant_type: 'password', code: 'x'.repeat(2_000) }, 'code must'],
    ['half a body', '{"grant_type":"password"', 'JSON'],
    ['a list', '[1]', 'object'],
    ['a prototype', '{"__proto__":{"grant_type":"password"}}', '__proto__'],
  ])('%s', async (_, body, sentence) => {
    const answer = await suite.post(AUTHENTICATE, body);
    const error_description = expect.stringContaining(sentence);
    expect([answer.status, answer.body]).toEqual([400, { error: 'invalid_request', error_description, message: error_description }]);
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store' });
  });
  it('a field twice in a form', async () => {
    const answer = await suite.post(AUTHENTICATE, 'client_id=client_1&client_id=client_2', { 'Content-Type': 'application/x-www-form-urlencoded' });
    expect([answer.status, answer.body]).toEqual([400, oauth('invalid_request')]);
  });
  it('more attempts than an address may have', async () => {
    const email = address();
    const tries = [];
    for (let times = 0; times < 11; times++) tries.push(await ask({ grant_type: 'password', email, password: 'another-giraffe-7' }));
    const { status, body, headers } = tries.at(-1)!;
    expect([status, body]).toEqual([429, oauth('too_many_requests')]);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  });
});

describe('whoever cannot show who they are', () => {
  const guess = (email: string, more: Body = {}) => ask({ grant_type: urn('magic-auth:code'), email, code: '000000', ...more }).expect(400);
  const toldOf = async (emails: readonly string[]): Promise<number> =>
    (await suite.records()).filter(({ type, subject }) => type.endsWith('_failed') && emails.includes((subject as { email: string }).email)).length;
  /** Those that no event tells of. */
  const untold = async (): Promise<number> => {
    const lines = (await (await fetch(`${suite.url}/metrics`)).text()).split('\n');
    const counts = lines.filter((line) => line.startsWith('gatehouse_sign_in_failures_total{') && line.includes('recorded="no"'));
    return counts.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  };

  it('is told of ten times a minute for an account, however they try, and beyond that counted', async () => {
    const [before, { email }] = [await untold(), await user({ password: PASSWORD, email_verified: false })];
    const pending = await ask({ grant_type: 'password', email, password: PASSWORD }).expect(403);
    const { code } = await suite.get(`/user_management/email_verification/${pending.email_verification_id}`).expect(200);
    const confirm = { grant_type: urn('email-verification:code'), pending_authentication_token: pending.pending_authentication_token };
    for (let times = 0; times < 9; times++) await guess(email);
    for (let times = 0; times < 2; times++) await ask({ ...confirm, code: code === '000000' ? '000001' : '000000' }).expect(400);
    expect([await toldOf([email]), (await untold()) - before]).toEqual([10, 1]);
    await later(MINUTE);
    await guess(email);
    expect([await toldOf([email]), (await untold()) - before]).toEqual([11, 1]);
  });

  it('is told of a hundred times a minute from an address, whoever they try to be, and beyond that counted', async () => {
    // Otherwise so many are blocked.
    const { risk } = await suite.get('/admin/environment_settings').expect(200);
    await suite.patch('/admin/environment_settings', { risk: { brute_force_attack: 'off', credential_stuffing: 'off' } }).expect(200);
    const [before, emails] = [await untold(), Array.from({ length: 102 }, address)];
    await Promise.all(emails.map((email, index) => guess(email, { ip_address: `2001:db8:7:7::${index}` })));
    expect([await toldOf(emails), (await untold()) - before]).toEqual([100, 2]);
    // From elsewhere it is told of.
    await guess(emails[0]!, { ip_address: '2001:db8:7:8::1' });
    await guess(emails[1]!, { ip_address: '2001:db8:7:8::1' });
    expect([await toldOf(emails), (await untold()) - before]).toEqual([102, 2]);
    await later(MINUTE);
    await guess(emails[2]!, { ip_address: '2001:db8:7:7::1' });
    expect([await toldOf(emails), (await untold()) - before]).toEqual([103, 2]);
    await suite.patch('/admin/environment_settings', { risk }).expect(200);
  });
});

describe('a pending authentication', () => {
  const pendingOf = async () => {
    const [{ id, email }, one, two] = [await user(), await organization('One'), await organization('Two')];
    await join(one, id);
    await join(two, id);
    const { pending_authentication_token: token, organizations } = await (await withCode(email)).body;
    return { id, email, one, two, token, organizations };
  };
  const choose = (pending_authentication_token: string, organization_id: string, more: Body = {}) =>
    ask({ grant_type: urn('organization-selection'), pending_authentication_token, organization_id, ...more });

  it.each([
    ['that has begun', 30_001, async () => {}],
    ['that has ended', 1, async (session_id: string) => void (await suite.post('/user_management/sessions/revoke', { session_id }).expect(200))],
  ])('spends no code that another sign-in asked for, nor anything else of its user, once it became a session %s', async (_, milliseconds, ended) => {
    const email = address();
    const { id } = await user({ email, email_verified: false, password: PASSWORD });
    const asked = async (at: string) => {
      const { pending_authentication_token, email_verification_id } = (await ask({ grant_type: 'password', email: at, password: PASSWORD })).body;
      const { code } = await suite.get(`/user_management/email_verification/${email_verification_id}`).expect(200);
      return { grant_type: urn('email-verification:code'), pending_authentication_token, code: code as string };
    };
    const first = await asked(email);
    await ended(sessionOf(await ask(first).expect(200)));
    const other = address();
    await suite.put(`${USERS}/${id}`, { email: other }).expect(200);
    await later(milliseconds);
    const next = await asked(other);
    await ask({ ...first, code: next.code }).expect(400, { code: 'invalid_pending_authentication_token' });
    await ask(next).expect(200);
    await ask({ grant_type: 'password', email: other, password: PASSWORD }).expect(200);
  });

  it('goes on with the organization that is chosen', async () => {
    const { id, one, two, token, organizations } = await pendingOf();
    expect(organizations).toEqual(
      expect.arrayContaining([
        { id: one, name: 'One' },
        { id: two, name: 'Two' },
      ]),
    );
    const answer = await choose(token, two).expect(200);
    expect(answer).toMatchObject({ organization_id: two, user: { id }, authentication_method: 'MagicAuth' });
    expect(claimsOf(answer.access_token)).toMatchObject({ org_id: two, role: 'member', roles: ['member'], permissions: expect.any(Array) });
    expect(await eventsOf(id)).toEqual(expect.arrayContaining(['authentication.magic_auth_succeeded', 'session.created']));
  });

  it('is not used up by what is refused', async () => {
    const { token, one } = await pendingOf();
    const foreign = await organization();
    await choose(token, foreign).expect(400, { code: 'invalid_organization_id' });
    await choose(token, 'org_01J0000000000000000000000A').expect(400, { code: 'invalid_organization_id' });
    await choose(token, one, { client_secret: 'sk_of_somebody_else_0123456789' }).expect(400, oauth('invalid_client'));
    await choose(token, one).expect(200);
  });

  it('is its own environment’s, for ten minutes', async () => {
    const { token, one } = await pendingOf();
    await choose(token, one, { client_id: theirs, client_secret: elsewhere.key }).expect(400, { code: 'invalid_pending_authentication_token' });
    await choose('x', one).expect(400, { code: 'invalid_pending_authentication_token' });
    await later(10 * MINUTE);
    await choose(token, one).expect(400, { code: 'invalid_pending_authentication_token' });
  });

  it('begins one session', async () => {
    const { token, one } = await pendingOf();
    const [first, again] = [await choose(token, one).expect(200), await choose(token, one).expect(200)];
    expect(sessionOf(again)).toBe(sessionOf(first));
    await later(30_001);
    await choose(token, one).expect(400, { code: 'invalid_pending_authentication_token' });
  });

  it('begins its session in the organization that was chosen first: another one meets a token that is spent', async () => {
    const { token, one, two } = await pendingOf();
    const first = await choose(token, one).expect(200);
    await choose(token, two).expect(400, { code: 'invalid_pending_authentication_token' });
    const again = await choose(token, one).expect(200);
    expect([sessionOf(again), again.organization_id, claimsOf(again.access_token)['org_id']]).toEqual([sessionOf(first), one, one]);
    expect((await refresh(again.refresh_token).expect(200)).organization_id).toBe(one);
  });

  it('lets one of two in that choose at once, and into what it chose', async () => {
    for (let round = 0; round < 3; round++) {
      const { id, token, one, two } = await pendingOf();
      const answers = await Promise.all([choose(token, one), choose(token, two)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
      const place = answers.findIndex(({ status }) => status === 200);
      const [{ body: let_in }, { body: refused }] = [answers[place]!, answers[1 - place]!];
      const chosen = [one, two][place];
      expect(refused).toMatchObject({ code: 'invalid_pending_authentication_token' });
      expect([let_in.organization_id, claimsOf(let_in.access_token)['org_id']]).toEqual([chosen, chosen]);
      expect((await refresh(let_in.refresh_token).expect(200)).organization_id).toBe(chosen);
      expect((await suite.get(`${USERS}/${id}/sessions`).expect(200)).data).toMatchObject([{ id: sessionOf(let_in), organization_id: chosen }]);
    }
  });

  it('ends with its user', async () => {
    const { id, token, one } = await pendingOf();
    await suite.delete(`${USERS}/${id}`).expect(200);
    await choose(token, one).expect(400, { code: expect.stringMatching(/^invalid_(pending_authentication_token|organization_id)$/) });
  });
});

describe('a refresh token', () => {
  it('gets the next one, once', async () => {
    const first = await signedIn();
    const second = await refresh(first.refresh_token).expect(200);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect(second).toMatchObject({ user: { id: first.user.id }, authentication_method: 'MagicAuth' });
    expect(sessionOf(second)).toBe(sessionOf(first));
    expect(claimsOf(second.access_token)['auth_time']).toBe(claimsOf(first.access_token)['auth_time']);
    const [before, requestId] = [await suite.head(), randomUUID()];
    await refresh(second.refresh_token, {}, { 'X-Request-ID': requestId }).expect(200);
    expect(await suite.recordsAfter(before, requestId, sessionOf(second), first.user.id)).toEqual([]);
  });

  it('may come again for 30 seconds, and gets the present successor', async () => {
    const { refresh_token } = await signedIn();
    const [one, two] = await Promise.all([refresh(refresh_token).expect(200), refresh(refresh_token).expect(200)]);
    expect(two.refresh_token).toBe(one.refresh_token);
    const next = await refresh(one.refresh_token).expect(200);
    expect((await refresh(refresh_token).expect(200)).refresh_token).toBe(next.refresh_token);
  });

  it('ends its session where it comes again later', async () => {
    const { user: signed, refresh_token } = await signedIn();
    const second = await refresh(refresh_token).expect(200);
    await later(30_001);
    await refresh(refresh_token).expect(400, oauth('invalid_grant'));
    await refresh(second.refresh_token).expect(400, oauth('invalid_grant'));
    expect(await eventsOf(signed.id)).toContain('session.revoked');
    expect((await suite.records('session.revoked')).map(({ data }) => data)).toContainEqual({ id: sessionOf(second), reason: 'refresh_token_reused' });
  });

  it('is refused elsewhere, changed, or with a wrong secret, which ends nothing', async () => {
    const { refresh_token } = await signedIn();
    await refresh(refresh_token, { client_id: theirs, client_secret: elsewhere.key }).expect(400, oauth('invalid_grant'));
    await refresh(refresh_token.replace('.0.', '.7.')).expect(400, oauth('invalid_grant'));
    await refresh(refresh_token, { client_secret: elsewhere.key }).expect(400, oauth('invalid_client'));
    await refresh(refresh_token).expect(200);
  });

  it('needs the secret that its session began with, wherever it stands', async () => {
    const { refresh_token } = await signedIn();
    await askOpenly({ grant_type: 'refresh_token', refresh_token }).expect(400, oauth('invalid_client'));
    // As the session helper of Ruby does.
    await suite.post(AUTHENTICATE, { client_id, grant_type: 'refresh_token', refresh_token }).expect(200);
  });

  it('ends with idleness and with the session', async () => {
    const { refresh_token } = await signedIn();
    await later(6 * 24 * 60 * MINUTE);
    const second = await refresh(refresh_token).expect(200);
    await later(7 * 24 * 60 * MINUTE);
    await refresh(second.refresh_token).expect(400, oauth('invalid_grant'));
    let { refresh_token: last } = await signedIn();
    for (let days = 0; days < 24; days += 6) {
      await later(6 * 24 * 60 * MINUTE);
      last = (await refresh(last).expect(200)).refresh_token;
    }
    await later(6 * 24 * 60 * MINUTE);
    await refresh(last).expect(400, oauth('invalid_grant'));
  });

  it('seals the session for a cookie where the helper asks for it', async () => {
    const { xsalsa20poly1305 } = await import('@noble/ciphers/salsa.js');
    const key = Buffer.alloc(32, 5);
    const { refresh_token } = await signedIn();
    const session = { seal_session: true, cookie_password: key.toString('base64') };
    const { sealed_session, sid, ...answer } = await refresh(refresh_token, { session }).expect(200);
    expect(sid).toBe(sessionOf(answer));
    const sealed = Buffer.from(sealed_session, 'base64');
    const opened = JSON.parse(Buffer.from(xsalsa20poly1305(key, sealed.subarray(0, 24)).decrypt(sealed.subarray(24))).toString());
    expect(opened).toEqual({ access_token: answer.access_token, refresh_token: answer.refresh_token, user: answer.user });
    await refresh(answer.refresh_token, { session: { seal_session: true, cookie_password: 'short' } }).expect(400, oauth('invalid_request'));
    // Nothing was spent by that.
    await later(MINUTE);
    await refresh(answer.refresh_token).expect(200);
  });

  it('switches to another organization of the user, and to no other', async () => {
    const [{ id, email }, one, two, foreign] = [await user(), await organization('One'), await organization('Two'), await organization('Foreign')];
    await join(one, id);
    const first = await signedIn(email);
    expect(claimsOf(first.access_token)['org_id']).toBe(one);
    await join(two, id, 'admin');
    await refresh(first.refresh_token, { organization_id: foreign }).expect(400, oauth('organization_membership_not_found'));
    const second = await refresh(first.refresh_token, { organization_id: two }).expect(200);
    expect(claimsOf(second.access_token)).toMatchObject({ org_id: two, role: 'admin', roles: ['admin'] });
    // Of two tabs each gets what it asks for.
    const replayed = await refresh(first.refresh_token, { organization_id: one }).expect(200);
    expect(claimsOf(replayed.access_token)['org_id']).toBe(one);
    expect(replayed.refresh_token).toBe(second.refresh_token);
    expect((await refresh(second.refresh_token).expect(200)).organization_id).toBe(two);
  });

  it('says what the membership may do by then', async () => {
    const slug = `docs-${randomUUID().slice(0, 8)}`;
    const [{ id, email }, acme] = [await user(), await organization()];
    await suite.post('/authorization/permissions', { slug: `${slug}:read`, name: 'Read' }).expect(201);
    await suite.post('/authorization/roles', { slug, name: 'Reader', permissions: [`${slug}:read`] });
    await suite.put(`/authorization/roles/${slug}/permissions`, { permissions: [`${slug}:read`] });
    const membership = await join(acme, id);
    const first = await signedIn(email);
    expect(claimsOf(first.access_token)).toMatchObject({ role: 'member' });
    await suite.put(`${MEMBERSHIPS}/${membership.id}`, { role_slug: slug }).expect(200);
    const second = await refresh(first.refresh_token).expect(200);
    expect(claimsOf(second.access_token)).toMatchObject({ role: slug, roles: [slug], permissions: [`${slug}:read`] });
  });
});

describe('what an organization asks of its members', () => {
  const memberOf = async (policy: Body) => {
    const [{ id, email }, acme] = [await user({ password: PASSWORD }), await organization()];
    await join(acme, id);
    const before = await signedIn(email);
    await suite.patch(`/admin/organizations/${acme}/authentication_policy`, policy).expect(200);
    return { email, acme, before };
  };

  it('a single sign-on, of those who are signed in as well', async () => {
    const { email, before } = await memberOf({ sso: 'required' });
    const answer = await withCode(email);
    expect([answer.status, answer.body]).toEqual([
      400,
      { ...oauth('sso_required'), email, connection_ids: [], pending_authentication_token: expect.any(String) },
    ]);
    const refused = await refresh(before.refresh_token);
    expect([refused.status, refused.body]).toEqual([400, oauth('sso_required')]);
  });

  it('another way to sign in', async () => {
    const { email } = await memberOf({ methods: { magic_auth: false } });
    const answer = await withCode(email);
    expect([answer.status, answer.body]).toEqual([
      400,
      {
        ...oauth('organization_authentication_methods_required'),
        ...{
          email,
          sso_connection_ids: [],
          pending_authentication_token: expect.any(String),
          auth_methods: expect.objectContaining({ magic_auth: false, password: true }),
        },
      },
    ]);
    await ask({ grant_type: 'password', email, password: PASSWORD }).expect(200);
  });

  it('another way to sign in, of those as well who come from another organization with the session that they have', async () => {
    const [{ id, email }, lenient, strict] = [await user({ password: PASSWORD }), await organization(), await organization()];
    await join(lenient, id);
    const session = await ask({ grant_type: 'password', email, password: PASSWORD }).expect(200);
    await join(strict, id);
    await suite.patch(`/admin/organizations/${strict}/authentication_policy`, { methods: { password: false } }).expect(200);
    const refused = await refresh(session.refresh_token, { organization_id: strict });
    expect([refused.status, refused.body]).toEqual([
      400,
      {
        ...oauth('organization_authentication_methods_required'),
        ...{ email, sso_connection_ids: [], auth_methods: expect.objectContaining({ magic_auth: true, password: false }) },
      },
    ]);
    // Nothing was spent, and nobody thrown out.
    expect((await refresh(session.refresh_token).expect(200)).organization_id).toBe(lenient);
    expect((await withCode(email)).body).toMatchObject({ code: 'organization_selection_required' });
  });

  it('a second factor', async () => {
    const { email, before } = await memberOf({ mfa: 'required' });
    const answer = await withCode(email);
    expect([answer.status, answer.body]).toMatchObject([403, { code: 'mfa_enrollment', pending_authentication_token: expect.any(String), user: { email } }]);
    expect((await refresh(before.refresh_token)).body).toEqual(oauth('mfa_enrollment'));
  });
});

describe('an access token', () => {
  it('says what the template of its environment adds', async () => {
    const [{ id, email }, acme] = [await user({ first_name: 'Ada' }), await organization('Acme')];
    const membership = await join(acme, id);
    const content = '{"name":"{{user.first_name}} of {{organization.name}}","member":"{{organization_membership.id}}"}';
    await suite.put('/user_management/jwt_template', { content }).expect(200);
    const { access_token } = await signedIn(email);
    expect(claimsOf(access_token)).toMatchObject({ sub: id, org_id: acme, name: 'Ada of Acme', member: membership.id });
    await suite.put('/user_management/jwt_template', { content: '{}' }).expect(200);
  });
});

describe('signing out', () => {
  const LOGOUT = `${USERS.slice(0, USERS.lastIndexOf('/'))}/sessions/logout`;
  const [BYE, HOME] = ['https://acme.test/bye?from=app', 'https://acme.test/home'];
  const NOWHERE = { code: 'session_not_found', message: 'There is no such session, or it has ended.' };
  /** As a browser does, which has no key. */
  const logOut = (query: Readonly<Record<string, string>>) => suite.get(`${LOGOUT}?${new URLSearchParams(query).toString()}`, { Authorization: '' });
  const settle = (settings: Body) => suite.patch('/admin/environment_settings', settings).expect(200);
  beforeAll(() => settle({ sign_out_uris: [HOME, BYE] }));

  it('ends the session, and goes on to an address that the settings list', async () => {
    const { refresh_token, access_token, user: signed } = await signedIn();
    const answer = await logOut({ session_id: sessionOf({ access_token }), return_to: BYE });
    expect([answer.status, answer.headers['location'], answer.text]).toEqual([302, BYE, '']);
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store' });
    expect(answer.headers).not.toHaveProperty('content-type');
    await refresh(refresh_token).expect(400, oauth('invalid_grant'));
    expect((await eventsOf(signed.id)).slice(-2)).toEqual(['session.created', 'session.revoked']);
    const told = (await suite.records('session.revoked')).find(({ stream }) => stream.endsWith(sessionOf({ access_token })));
    expect(told).toMatchObject({ data: { reason: 'signed_out' } });
  });

  it('goes on to the first of them where it is told none, or to the page of the application', async () => {
    const session = async () => ({ session_id: sessionOf(await signedIn()) });
    const locationOf = async (query: Readonly<Record<string, string>>) => (await logOut(query)).headers['location'];
    expect(await locationOf(await session())).toBe(HOME);
    await settle({ sign_out_uris: [], login_uri: 'https://acme.test/login' });
    expect(await locationOf(await session())).toBe('https://acme.test/login');
    await settle({ login_uri: null });
    await logOut(await session()).expect(422, { errors: [{ field: 'return_to', code: 'required' }] });
    await settle({ sign_out_uris: [HOME, BYE] });
  });

  it.each(['https://evil.test/', 'https://acme.test/bye', 'https://acme.test/bye?from=app&more', '//acme.test/bye?from=app', 'javascript:alert(1)'])(
    'does not happen where the browser would go on to %s',
    async (return_to) => {
      const { refresh_token, access_token } = await signedIn();
      await logOut({ session_id: sessionOf({ access_token }), return_to }).expect(422, { errors: [{ field: 'return_to', code: 'not_listed' }] });
      await refresh(refresh_token).expect(200);
    },
  );

  it('answers alike whether there was a session or not', async () => {
    const [first, over] = [await signedIn(), await signedIn()].map(sessionOf);
    await logOut({ session_id: first!, return_to: BYE });
    await suite.post('/user_management/sessions/revoke', { session_id: over }).expect(200);
    for (const session_id of [first!, over!, 'session_01J0000000000000000000000A', 'nobody', `session_${'x'.repeat(100)}`]) {
      const { status, headers, text } = await logOut({ session_id, return_to: BYE });
      expect([status, headers['location'], text]).toEqual([302, BYE, '']);
      expect(await logOut({ session_id, return_to: 'https://evil.test/' }).expect(400)).toEqual(NOWHERE);
      expect(await logOut({ session_id }).expect(400)).toEqual(NOWHERE);
    }
    expect((await suite.records('session.revoked')).filter(({ stream }) => stream.endsWith(first!))).toHaveLength(1);
    await logOut({ return_to: BYE }).expect(422, { errors: [{ field: 'session_id', code: 'required' }] });
    const old = await signedIn();
    await later(8 * 24 * 60 * MINUTE);
    expect((await logOut({ session_id: sessionOf(old), return_to: BYE })).headers['location']).toBe(BYE);
    expect(await logOut({ session_id: sessionOf(old) }).expect(400)).toEqual(NOWHERE);
    // What another environment lists does as well once nothing tells of a session, and before that it does not.
    const [there, goingOn] = ['https://elsewhere.test/bye', sessionOf(await signedIn())];
    await elsewhere.patch('/admin/environment_settings', { sign_out_uris: [there] }).expect(200);
    for (const session_id of [sessionOf(old), first!, 'nobody']) expect((await logOut({ session_id, return_to: there })).headers['location']).toBe(there);
    await logOut({ session_id: goingOn, return_to: there }).expect(422, { errors: [{ field: 'return_to', code: 'not_listed' }] });
  });

  it('does not happen by HEAD, which asks for nothing to be done', async () => {
    const { refresh_token, access_token } = await signedIn();
    const { status, headers } = await fetch(`${suite.url}${LOGOUT}?session_id=${sessionOf({ access_token })}`, { method: 'HEAD', redirect: 'manual' });
    expect([status, headers.get('allow')]).toEqual([405, 'GET, OPTIONS']);
    await refresh(refresh_token).expect(200);
  });
});

describe('the time of the last sign-in', () => {
  it('is shown wherever the user is, and is no change of the user', async () => {
    const [{ id, email, updated_at }, acme] = [await user({ external_id: randomUUID() }), await organization()];
    const membership = await join(acme, id);
    const showing = async (last_sign_in_at: string | null) => {
      const { external_id } = await suite.get(`${USERS}/${id}`).expect(200, { id, last_sign_in_at, updated_at });
      await suite.get(`${USERS}/external_id/${external_id}`).expect(200, { last_sign_in_at });
      for (const query of [`email=${email}`, `organization_id=${acme}`, `organization_id=${acme}&email=${email}`])
        await suite.get(`${USERS}?${query}`).expect(200, { data: [{ id, last_sign_in_at }] });
      await suite.get(`${USERS}?order=desc&limit=1`).expect(200, { data: [{ id, last_sign_in_at }] });
      await suite.get(`${MEMBERSHIPS}/${membership.id}`).expect(200, { user: { id, last_sign_in_at } });
    };
    await showing(null);
    const first = await signedIn(email);
    await eventually(() => showing(first.user.last_sign_in_at));
    await later(11_000);
    // Refreshing is not signing in.
    const { user: still } = await refresh(first.refresh_token).expect(200);
    expect(still.last_sign_in_at).toBe(first.user.last_sign_in_at);
    const { user: signed } = await signedIn(email);
    expect(signed.last_sign_in_at > first.user.last_sign_in_at).toBe(true);
    await eventually(() => showing(signed.last_sign_in_at));
    await suite.put(`${USERS}/${id}`, { first_name: 'Ada' }).expect(200, { last_sign_in_at: signed.last_sign_in_at });
    expect((await eventsOf(id)).filter((name) => name.startsWith('user.'))).toEqual([]);
  });
});

describe('a session', () => {
  const signedInTo = async () => {
    const [{ id, email }, acme] = [await user(), await organization()];
    const membership = await join(acme, id);
    return { id, acme, membership: membership.id as string, ...(await signedIn(email)) };
  };
  const list = async (userId: string) => (await suite.get(`${USERS}/${userId}/sessions`).expect(200)).data.map(({ id }: { id: string }) => id);

  it('is revoked, once, and told of', async () => {
    const { id, refresh_token, access_token } = await signedInTo();
    const session_id = sessionOf({ access_token });
    expect(await list(id)).toEqual([session_id]);
    for (let times = 0; times < 2; times++) await suite.post('/user_management/sessions/revoke', { session_id }).expect(200);
    await refresh(refresh_token).expect(400, oauth('invalid_grant'));
    expect(await list(id)).toEqual([]);
    expect((await eventsOf(id)).filter((name) => name === 'session.revoked')).toHaveLength(1);
    const never = { session_id: 'session_01J0000000000000000000000A' };
    await suite.post('/user_management/sessions/revoke', never).expect(400, { code: 'session_not_found' });
    await elsewhere.post('/user_management/sessions/revoke', { session_id }).expect(400, { code: 'session_not_found' });
  });

  it.each<[string, (given: Awaited<ReturnType<typeof signedInTo>>) => Promise<unknown>]>([
    ['user', ({ id }) => suite.delete(`${USERS}/${id}`).expect(200)],
    ['organization', ({ acme }) => suite.delete(`/organizations/${acme}`).expect(202)],
    ['membership', ({ membership }) => suite.delete(`${MEMBERSHIPS}/${membership}`).expect(200)],
    ['active membership', ({ membership }) => suite.put(`${MEMBERSHIPS}/${membership}/deactivate`).expect(200)],
  ])('ends at once with its %s', async (_, end) => {
    const given = await signedInTo();
    await end(given);
    await refresh(given.refresh_token).expect(400, oauth('invalid_grant'));
    await eventually(async () => expect(await eventsOf(given.id)).toContain('session.revoked'));
  });

  it('ends with a reset of the password', async () => {
    const { id, refresh_token, user: signed } = await signedInTo();
    await later(1);
    const { password_reset_token } = await suite.post('/user_management/password_reset', { email: signed.email }).expect(201);
    await suite.post('/user_management/password_reset/confirm', { token: password_reset_token, new_password: PASSWORD }).expect(200);
    await refresh(refresh_token).expect(400, oauth('invalid_grant'));
    await eventually(async () => expect(await eventsOf(id)).toContain('session.revoked'));
  });

  it('ends with a reset that is recorded after it, by a clock that is behind, and so does a sign-in on its way', async () => {
    const { refresh_token, user: signed } = await signedInTo();
    const fresh = await user({ email_verified: false, password: PASSWORD });
    const pending = await ask({ grant_type: 'password', email: fresh.email, password: PASSWORD }).expect(403);
    for (const email of [signed.email, fresh.email]) {
      const { password_reset_token } = await suite.post('/user_management/password_reset', { email }).expect(201);
      clock.forward(-5_000);
      await suite.post('/user_management/password_reset/confirm', { token: password_reset_token, new_password: `${PASSWORD}8` }).expect(200);
      clock.forward(5_000);
    }
    await refresh(refresh_token).expect(400, oauth('invalid_grant'));
    const { pending_authentication_token } = pending;
    await ask({ grant_type: urn('email-verification:code'), code: '000000', pending_authentication_token }).expect(400, {
      code: 'invalid_pending_authentication_token',
    });
  });

  it('does not begin with a password that was replaced by a reset while it was compared', async () => {
    const email = address();
    // Takes long enough to compare for the reset to come in between; where it does not, the session ends with the reset.
    const { id } = await user({ email, password_hash: await bcrypt.hash(PASSWORD, 12), password_hash_type: 'bcrypt' });
    const { password_reset_token } = await suite.post('/user_management/password_reset', { email }).expect(201);
    const during = (async () => ask({ grant_type: 'password', email, password: PASSWORD }))();
    await suite.post('/user_management/password_reset/confirm', { token: password_reset_token, new_password: `${PASSWORD}8` }).expect(200);
    await later(1);
    const { status, body } = await during;
    if (status === 200) await refresh(body.refresh_token).expect(400, oauth('invalid_grant'));
    else expect(body.code).toBe('invalid_credentials');
    await eventually(async () => expect((await suite.get(`${USERS}/${id}/sessions`).expect(200)).data).toEqual([]));
    await ask({ grant_type: 'password', email, password: PASSWORD }).expect(400, { code: 'invalid_credentials' });
  });

  it('outlives a restart', async () => {
    const { refresh_token } = await signedInTo();
    await suite.restart();
    await refresh(refresh_token).expect(200);
  });
});
