import { randomUUID } from 'node:crypto';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { codeOfStep, secretOfBase32, stepAt } from './totp.ts';

const FACTORS = '/auth/factors';
const CHALLENGES = '/auth/challenges';
const USERS = '/user_management/users';
const AUTHENTICATE = '/user_management/authenticate';
const PASSWORD = 'ride-a-giraffe-7';
const STEP = 30_000;
const MINUTE = 60_000;
const urn = (name: string): string => `urn:workos:oauth:grant-type:${name}`;

type Environment = Awaited<ReturnType<GivenSuite['otherEnvironment']>>;
type Body = Readonly<Record<string, unknown>>;

let suite: GivenSuite;
let clock: SettableClock;
let client_id: string;
/** Other environments: one, and one where second factors are required. */
let elsewhere: Environment;
let strict: Environment;
let strictClient: string;
beforeAll(async () => {
  clock = new SettableClock(Date.now());
  suite = await givenSuite({ clock });
  [client_id, elsewhere, strict] = await Promise.all([suite.clientIdOf(suite), suite.otherEnvironment(), suite.otherEnvironment('factors')]);
  strictClient = await suite.clientIdOf(strict);
});

/** Time goes on, and the gateway hears from the log that its keys are still good. */
const later = async (milliseconds: number): Promise<void> => {
  clock.forward(milliseconds);
  await eventually(() => suite.get('/organizations').expect(200));
};
const address = (): string => `${randomUUID()}@factors.test`;
const user = async (fields: Body = {}) => suite.post(USERS, { email: address(), email_verified: true, ...fields }).expect(201);
const enrol = async (fields: Body = {}) =>
  suite.post(`${FACTORS}/enroll`, { type: 'totp', totp_issuer: 'Acme', totp_user: 'ada@acme.test', ...fields }).expect(201);
const challenge = async (id: string) => suite.post(`${FACTORS}/${id}/challenge`).expect(201);
const verify = (id: string, code: string) => suite.post(`${CHALLENGES}/${id}/verify`, { code });
const codeOf = (secret: string, drift = 0): string => codeOfStep(secretOfBase32(secret)!, stepAt(clock.now()) + drift);
/** Of no step that counts. */
const wrongOf = (secret: string): string => {
  const right = [-1, 0, 1].map((drift) => codeOf(secret, drift));
  return Array.from({ length: 5 }, (_, digit) => String(digit).repeat(6)).find((code) => !right.includes(code))!;
};
const otherThan = (code: string): string => (code === '000000' ? '000001' : '000000');

describe('an authenticator app', () => {
  it('is enrolled with a secret that is shown once', async () => {
    const { id: user_id } = await user();
    const { totp, ...factor } = await enrol({ user_id });
    expect(factor).toEqual({
      ...{ object: 'authentication_factor', id: expect.stringMatching(/^auth_factor_\w{26}$/), type: 'totp', user_id },
      ...{ created_at: expect.any(String), updated_at: factor.created_at },
    });
    expect(totp).toEqual({
      ...{ issuer: 'Acme', user: 'ada@acme.test', secret: expect.stringMatching(/^[A-Z2-7]{32}$/) },
      ...{ qr_code: expect.stringMatching(/^data:image\/png;base64,/), uri: expect.stringContaining(`secret=${totp.secret}&`) },
    });
    const shown = { ...factor, totp: { issuer: 'Acme', user: 'ada@acme.test' } };
    expect(await suite.get(`${FACTORS}/${factor.id}`).expect(200)).toEqual(shown);
    expect((await suite.get(`${USERS}/${user_id}/auth_factors`).expect(200)).data).toEqual([shown]);
    expect(JSON.stringify(await suite.records('authentication_factor.enrolled'))).not.toContain(totp.secret);
  });

  it('is the same when its enrolment comes again', async () => {
    const headers = { 'Idempotency-Key': randomUUID() };
    const body = { type: 'totp', totp_issuer: 'Acme', totp_user: 'ada' };
    const made = await suite.post(`${FACTORS}/enroll`, body, headers).expect(201);
    expect(await suite.post(`${FACTORS}/enroll`, body, headers).expect(201)).toEqual(made);
  });

  it.each<[string, Body, string]>([
    ['no issuer', { type: 'totp', totp_user: 'ada' }, 'totp_issuer'],
    ['no user', { type: 'totp', totp_issuer: 'Acme' }, 'totp_user'],
    ['names too long for a QR code', { type: 'totp', totp_issuer: '\u00e9'.repeat(255), totp_user: '\u00e9'.repeat(255) }, 'totp_user'],
    ['another type', { type: 'webauthn' }, 'type'],
  ])('is not enrolled with %s', async (_, body, field) => {
    await suite.post(`${FACTORS}/enroll`, body).expect(422, { errors: [expect.objectContaining({ field })] });
  });

  it('is of a user who is there', async () => {
    await suite.post(`${FACTORS}/enroll`, { type: 'generic_otp', user_id: 'user_01J0000000000000000000000A' }).expect(404);
    await suite.post(`${USERS}/user_01J0000000000000000000000A/auth_factors`, { type: 'totp' }).expect(404);
    const { id } = await user();
    await suite.post(`${USERS}/${id}/auth_factors`, { type: 'totp', totp_secret: 'SHORT' }).expect(422);
    await suite.post(`${USERS}/${id}/auth_factors`, { type: 'sms' }).expect(422);
  });

  it('is proven by the codes of the moment, each once', async () => {
    const { id, totp } = await enrol();
    const first = await challenge(id);
    expect(first).toEqual({
      ...{ object: 'authentication_challenge', id: expect.stringMatching(/^auth_challenge_\w{26}$/), authentication_factor_id: id },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    });
    expect(await verify(first.id, wrongOf(totp.secret)).expect(201)).toEqual({ challenge: first, valid: false });
    expect(await verify(first.id, codeOf(totp.secret)).expect(201)).toMatchObject({ challenge: { id: first.id }, valid: true });
    await verify(first.id, codeOf(totp.secret)).expect(422, { code: 'authentication_challenge_previously_verified' });
    // Whoever overlooked it has the code of this half minute, too.
    expect(await verify((await challenge(id)).id, codeOf(totp.secret)).expect(201)).toMatchObject({ valid: false });
    for (const drift of [-1, 1]) expect(await verify((await challenge(id)).id, codeOf(totp.secret, drift)).expect(201)).toMatchObject({ valid: true });
    for (const drift of [-2, 2]) expect(await verify((await challenge(id)).id, codeOf(totp.secret, drift)).expect(201)).toMatchObject({ valid: false });
    expect((await suite.records('authentication_factor.verified')).filter(({ data }) => (data as { id: string }).id === id)).toHaveLength(1);
  });

  it('lets one of two who verify at once have the challenge', async () => {
    const { id, totp } = await enrol();
    const { id: both } = await challenge(id);
    const answers = await Promise.all([verify(both, codeOf(totp.secret)), verify(both, codeOf(totp.secret))]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422]);
  });

  it('is tried five times for a challenge, ten times a minute, and no more than a hundred times a day in vain', async () => {
    const { id, totp } = await enrol();
    const { id: tried } = await challenge(id);
    const wrong = await Promise.all(Array.from({ length: 7 }, () => verify(tried, wrongOf(totp.secret))));
    expect(wrong.map(({ status, body }) => (status === 201 ? body.valid : body.code)).sort()).toEqual([
      ...Array<boolean>(5).fill(false),
      ...Array<string>(2).fill('one_time_code_too_many_attempts'),
    ]);
    await verify(tried, codeOf(totp.secret)).expect(400, { code: 'one_time_code_too_many_attempts' });
    const { id: another } = await challenge(id);
    expect(await verify(another, codeOf(totp.secret)).expect(201)).toMatchObject({ valid: true });
    for (let times = 0; times < 2; times++) await verify((await challenge(id)).id, wrongOf(totp.secret));
    await verify((await challenge(id)).id, codeOf(totp.secret)).expect(429, { code: 'rate_limit_exceeded' });
    clock.forward(24 * 60 * MINUTE - (clock.now() % (24 * 60 * MINUTE)));
    await later(1);
    for (let minute = 0; minute < 10; minute++) {
      const ids = [(await challenge(id)).id, (await challenge(id)).id];
      await Promise.all(Array.from({ length: 10 }, (_, place) => verify(ids[place % 2], wrongOf(totp.secret)).expect(201)));
      await later(MINUTE);
    }
    await verify((await challenge(id)).id, codeOf(totp.secret)).expect(400, { code: 'one_time_code_too_many_attempts' });
    await later(24 * 60 * MINUTE);
    expect(await verify((await challenge(id)).id, codeOf(totp.secret)).expect(201)).toMatchObject({ valid: true });
  });

  it('is deleted, with its challenges; so is that of a user who is', async () => {
    const { id: user_id } = await user();
    const [own, other] = [await enrol({ user_id }), await enrol({ user_id })];
    const { id: open } = await challenge(own.id);
    await suite.delete(`${FACTORS}/${own.id}`).expect(204);
    await suite.delete(`${FACTORS}/${own.id}`).expect(404);
    await suite.get(`${FACTORS}/${own.id}`).expect(404);
    await suite.post(`${FACTORS}/${own.id}/challenge`).expect(404);
    await verify(open, codeOf(own.totp.secret)).expect(404, { entity_id: open });
    expect((await suite.get(`${USERS}/${user_id}/auth_factors`).expect(200)).data).toMatchObject([{ id: other.id }]);
    const { id: late } = await challenge(other.id);
    await suite.delete(`${USERS}/${user_id}`).expect(200);
    await suite.get(`${FACTORS}/${other.id}`).expect(404);
    await verify(late, codeOf(other.totp.secret)).expect(404);
    await eventually(async () =>
      expect((await suite.records('authentication_factor.deleted')).map(({ data }) => data)).toEqual(
        expect.arrayContaining([{ id: own.id }, { id: other.id }]),
      ),
    );
  });

  it('is of its own environment', async () => {
    const { id, totp } = await enrol();
    const { id: open } = await challenge(id);
    await elsewhere.get(`${FACTORS}/${id}`).expect(404);
    await elsewhere.post(`${FACTORS}/${id}/challenge`).expect(404);
    await elsewhere.delete(`${FACTORS}/${id}`).expect(404);
    await elsewhere.post(`${CHALLENGES}/${open}/verify`, { code: codeOf(totp.secret) }).expect(404);
    expect(await verify(open, codeOf(totp.secret)).expect(201)).toMatchObject({ valid: true });
  });

  it('of nobody who is known here is unknown once it is deleted, secret and all, and no other is', async () => {
    const body = { type: 'totp', totp_issuer: 'Acme', totp_user: address() };
    const [gone, kept] = [await suite.post(`${FACTORS}/enroll`, body).expect(201), await suite.post(`${FACTORS}/enroll`, body).expect(201)];
    await suite.delete(`${FACTORS}/${gone.id}`).expect(204);
    await eventually(async () => {
      const enrolled = (await suite.records('authentication_factor.enrolled')).map(({ data }) => data as { readonly id: string });
      const [first, second] = [gone, kept].map(({ id }) => enrolled.find((data) => data.id === id));
      expect(first).toMatchObject({ totp_user: null, totp_issuer: null, totp_secret: null });
      expect(second).toMatchObject({ totp_user: body.totp_user, totp_issuer: 'Acme' });
    });
    await suite.get(`${FACTORS}/${gone.id}`).expect(404);
    await suite.get(`${FACTORS}/${kept.id}`).expect(200);
  });

  it('of somebody who is erased is unknown, secret and all', async () => {
    const { id, email } = await user();
    await suite.post(`${USERS}/${id}/auth_factors`, { type: 'totp', totp_issuer: 'Acme' }).expect(201, { authentication_factor: { totp: { user: email } } });
    await suite.post(`/admin/users/${id}/erasure`).expect(202);
    await eventually(async () => {
      const enrolled = (await suite.records('authentication_factor.enrolled')).filter(({ data }) => (data as { user_id: string }).user_id === id);
      expect(enrolled).toMatchObject([{ data: { totp_user: null, totp_issuer: null, totp_secret: null } }]);
    });
  });
});

describe('codes that the application delivers', () => {
  it('are in the challenge, work once, and for ten minutes', async () => {
    const factor = await enrol({ type: 'generic_otp' });
    expect(factor).not.toHaveProperty('totp');
    const { code, ...first } = await challenge(factor.id);
    expect(code).toMatch(/^\d{6}$/);
    expect(Date.parse(first.expires_at) - Date.parse(first.created_at)).toBe(10 * MINUTE);
    expect(await verify(first.id, otherThan(code)).expect(201)).toEqual({ challenge: first, valid: false });
    expect(await verify(first.id, ` ${code} `).expect(201)).toMatchObject({ valid: true });
    await verify(first.id, code).expect(422, { code: 'authentication_challenge_previously_verified' });
    const second = await challenge(factor.id);
    await later(10 * MINUTE);
    await verify(second.id, second.code).expect(422, { code: 'authentication_challenge_expired' });
    expect(JSON.stringify(await suite.records())).not.toContain(`"${code}"`);
  });
});

describe('a sign-in with a second factor', () => {
  const ask = (body: Body) => suite.post(AUTHENTICATE, { client_id, client_secret: suite.key, ...body });
  const withPassword = (email: string) => ask({ grant_type: 'password', email, password: PASSWORD });
  const prove = (pending_authentication_token: string, authentication_challenge_id: string, code: string) =>
    ask({ grant_type: urn('mfa-totp'), pending_authentication_token, authentication_challenge_id, code });
  const enrolOf = async (user_id: string) => suite.post(`${USERS}/${user_id}/auth_factors`, { type: 'totp' }).expect(201);
  /** Somebody with an authenticator app, which was verified some time ago. */
  const withFactor = async () => {
    const somebody = await user({ password: PASSWORD });
    const { authentication_factor, authentication_challenge } = await enrolOf(somebody.id);
    await verify(authentication_challenge.id, codeOf(authentication_factor.totp.secret)).expect(201, { valid: true });
    await later(STEP + 1);
    return { ...somebody, factor: authentication_factor, secret: authentication_factor.totp.secret as string };
  };
  const eventsOf = async (userId: string): Promise<readonly string[]> =>
    (await suite.records())
      .filter(({ subject }) => (subject as { user_id?: string } | null)?.user_id === userId)
      .flatMap((record) => record.public.map(({ name }) => name));
  const organization = async (policy: Body, ...members: readonly string[]): Promise<string> => {
    const { id } = await suite.post('/organizations', { name: 'Acme' }).expect(201);
    for (const user_id of members) await suite.post('/user_management/organization_memberships', { organization_id: id, user_id }).expect(201);
    await suite.patch(`/admin/organizations/${id}/authentication_policy`, policy).expect(200);
    return id;
  };

  it('asks for it, and is a session with its code', async () => {
    const { id, email, factor, secret } = await withFactor();
    const asked = await withPassword(email).expect(403, { code: 'mfa_challenge' });
    expect(asked).toEqual({
      ...{ code: 'mfa_challenge', message: expect.any(String), pending_authentication_token: expect.any(String), user: expect.objectContaining({ id }) },
      authentication_factors: [{ id: factor.id, type: 'totp' }],
      authentication_challenge: expect.objectContaining({ object: 'authentication_challenge', authentication_factor_id: factor.id }),
    });
    const { pending_authentication_token: token, authentication_challenge } = asked;
    await prove(token, authentication_challenge.id, wrongOf(secret)).expect(400, { code: 'invalid_one_time_code' });
    const answer = await prove(token, authentication_challenge.id, codeOf(secret)).expect(200);
    expect(answer).toMatchObject({ user: { id }, authentication_method: 'Password', access_token: expect.any(String) });
    // A client that heard no answer asks again; nobody else gets in by it.
    expect((await prove(token, authentication_challenge.id, codeOf(secret)).expect(200)).refresh_token).toBe(answer.refresh_token);
    await prove(token, authentication_challenge.id, wrongOf(secret)).expect(400, { code: 'invalid_one_time_code' });
    expect(await eventsOf(id)).toEqual([
      ...['authentication.password_succeeded', 'authentication.mfa_failed', 'authentication.mfa_succeeded', 'session.created'],
      'authentication.mfa_failed',
    ]);
    await later(STEP + 1);
    await prove(token, authentication_challenge.id, codeOf(secret)).expect(400, { code: 'invalid_pending_authentication_token' });
    const { pending_authentication_token: next } = await withPassword(email).expect(403);
    await prove(next, authentication_challenge.id, codeOf(secret)).expect(400, { code: 'one_time_code_previously_used' });
  });

  it('asks each who showed the same code at first, whatever the other has proven', async () => {
    const { id, email, secret } = await withFactor();
    const [organization_id] = [await organization({}, id), await organization({}, id)];
    const { code } = await suite.post('/user_management/magic_auth', { email }).expect(201);
    const withCode = () => ask({ grant_type: urn('magic-auth:code'), email, code });
    const select = (pending_authentication_token: string) => ask({ grant_type: urn('organization-selection'), pending_authentication_token, organization_id });
    const { pending_authentication_token: token, authentication_challenge } = await withCode().expect(403, { code: 'mfa_challenge' });
    const { pending_authentication_token: theirs } = await withCode().expect(403, { code: 'mfa_challenge' });
    await prove(token, authentication_challenge.id, codeOf(secret)).expect(403, { code: 'organization_selection_required' });
    for (const other of [select(theirs), withCode()]) await other.expect(403, { code: 'mfa_challenge' });
    const { refresh_token } = await select(token).expect(200);
    for (const other of [select(theirs), withCode()]) await other.expect(400, { code: 'invalid_pending_authentication_token' });
    expect((await select(token).expect(200)).refresh_token).toBe(refresh_token);
    expect((await suite.get(`${USERS}/${id}/sessions`).expect(200)).data).toHaveLength(1);
  });

  it('takes a challenge of its own user alone', async () => {
    const [one, other] = [await withFactor(), await withFactor()];
    const { pending_authentication_token: token } = await withPassword(one.email).expect(403);
    const theirs = await challenge(other.factor.id);
    await prove(token, theirs.id, codeOf(other.secret)).expect(400, { code: 'user_mismatch' });
    const nobodys = await enrol();
    await prove(token, (await challenge(nobodys.id)).id, codeOf(nobodys.totp.secret)).expect(400, { code: 'user_mismatch' });
    await prove(token, 'auth_challenge_01J0000000000000000000000A', '123456').expect(400, { code: 'invalid_one_time_code' });
    expect(await verify(theirs.id, codeOf(other.secret)).expect(201)).toMatchObject({ valid: true });
  });

  it('takes no factor that came after it began: a stolen password enrols none', async () => {
    const { id, email, secret } = await withFactor();
    const asked = await withPassword(email).expect(403);
    clock.forward(1);
    const { authentication_factor: strangers, authentication_challenge } = await enrolOf(id);
    const code = () => codeOf(strangers.totp.secret);
    await prove(asked.pending_authentication_token, authentication_challenge.id, code()).expect(400, { code: 'invalid_one_time_code' });
    // Nor where the application lets it be verified.
    await verify(authentication_challenge.id, code()).expect(201, { valid: true });
    await later(STEP + 1);
    await prove(asked.pending_authentication_token, (await challenge(strangers.id)).id, code()).expect(400, { code: 'invalid_one_time_code' });
    await prove(asked.pending_authentication_token, asked.authentication_challenge.id, codeOf(secret)).expect(200);
  });

  it('is asked for no factor that was never verified', async () => {
    const { id, email } = await user({ password: PASSWORD });
    await enrolOf(id);
    await withPassword(email).expect(200);
  });

  it('enrols one where the organization asks for it, and goes on being signed in', async () => {
    const { id, email } = await user({ password: PASSWORD });
    const acme = await organization({ mfa: 'required' }, id);
    const { pending_authentication_token: token, ...asked } = await withPassword(email).expect(403, { code: 'mfa_enrollment' });
    expect(asked).toEqual({ code: 'mfa_enrollment', message: expect.any(String), user: expect.objectContaining({ id }) });
    await later(1);
    const { authentication_factor, authentication_challenge } = await enrolOf(id);
    const answer = await prove(token, authentication_challenge.id, codeOf(authentication_factor.totp.secret)).expect(200);
    expect(answer).toMatchObject({ organization_id: acme, authentication_method: 'Password' });
    await ask({ grant_type: 'refresh_token', refresh_token: answer.refresh_token }).expect(200);
    await withPassword(email).expect(403, { code: 'mfa_challenge', authentication_factors: [{ id: authentication_factor.id, type: 'totp' }] });
  });

  it('is asked of everybody by the settings, also of those who are signed in', async () => {
    const client = { client_id: strictClient, client_secret: strict.key };
    const { email } = await strict.post(USERS, { email: address(), email_verified: true, password: PASSWORD }).expect(201);
    const signIn = () => strict.post(AUTHENTICATE, { ...client, grant_type: 'password', email, password: PASSWORD });
    const { refresh_token } = await signIn().expect(200);
    await strict.patch('/admin/environment_settings', { mfa: 'required' }).expect(200);
    await eventually(() => signIn().expect(403, { code: 'mfa_enrollment' }));
    await strict.post(AUTHENTICATE, { ...client, grant_type: 'refresh_token', refresh_token }).expect(400, { error: 'mfa_enrollment' });
  });

  it('goes on with an organization after it', async () => {
    const { id, email, secret } = await withFactor();
    const [, two] = [await organization({}, id), await organization({ mfa: 'required' }, id)];
    const { pending_authentication_token: token, authentication_challenge } = await withPassword(email).expect(403);
    await prove(token, authentication_challenge.id, codeOf(secret)).expect(403, { code: 'organization_selection_required' });
    const chosen = { grant_type: urn('organization-selection'), pending_authentication_token: token, organization_id: two };
    const { refresh_token } = await ask(chosen).expect(200, { organization_id: two });
    await ask({ grant_type: 'refresh_token', refresh_token }).expect(200);
  });

  it('is asked for no factor of before the first proof of the address', async () => {
    const { id, email } = await user({ email_verified: false, password: PASSWORD });
    const { authentication_factor, authentication_challenge } = await enrolOf(id);
    await verify(authentication_challenge.id, codeOf(authentication_factor.totp.secret)).expect(201, { valid: true });
    await later(1);
    const { code } = await suite.post('/user_management/magic_auth', { email }).expect(201);
    await ask({ grant_type: urn('magic-auth:code'), email, code }).expect(200);
    await suite.get(`${FACTORS}/${authentication_factor.id}`).expect(404);
    expect((await suite.get(`${USERS}/${id}/auth_factors`).expect(200)).data).toEqual([]);
    await eventually(async () =>
      expect((await suite.records('authentication_factor.deleted')).map(({ data }) => data)).toContainEqual({ id: authentication_factor.id }),
    );
  });

  it('is tried ten times a minute for a factor, however many challenges there are', async () => {
    const { email, secret, factor } = await withFactor();
    await later(MINUTE);
    const { pending_authentication_token: token } = await withPassword(email).expect(403);
    const ids = [(await challenge(factor.id)).id, (await challenge(factor.id)).id, (await challenge(factor.id)).id];
    const tried = await Promise.all(Array.from({ length: 12 }, (_, place) => prove(token, ids[place % 3], wrongOf(secret))));
    expect(tried.filter(({ status }) => status === 429).map(({ body }) => body.error)).toEqual(['too_many_requests', 'too_many_requests']);
  });
});
