import { createHash, hash, randomUUID } from 'node:crypto';
import { FindEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { operationOf } from '#libs/contracts/src/operation';
import { Authenticate } from '#libs/contracts/src/sign-in/operations';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { PinoLog } from '#libs/platform/src/pino.log';
import { systemContext } from '#libs/platform/src/system-context';
import { ProductInProcess } from '#libs/testing/src/running-product';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { Caller } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { codeOfStep, secretOfBase32, stepAt } from '../authentication-factors/totp.ts';
import { proveFactor, sessionDecider } from '../domain/session.decider.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { DeviceCodes } from './device-codes.ts';
import { SessionIds } from './session-ids.ts';

const USERS = '/user_management/users';
const MAGIC = '/user_management/magic_auth';
const PASSWORD = 'ride-a-giraffe-7';
const MINUTE = 60_000;
const VERIFIER = 'a-verifier-of-forty-three-characters-or-more-1';
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url');
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const PROGRAM = { user_agent: 'curl/8.5.0' };
const urn = (name: string): string => `urn:workos:oauth:grant-type:${name}`;

type Body = Readonly<Record<string, unknown>>;
type Answered = PromiseLike<Awaited<ReturnType<Caller['post']>>>;

/** A line of the tables: what it is called, how it comes about, and what is answered. */
type Line = readonly [line: string, asked: () => Answered, status: number, body: Body];
/** Beside that, how the client goes on. `more` is what it was answered. */
type Continuation = readonly [line: string, begun: () => Promise<Begun>, status: number, body: Body];
interface Begun {
  readonly asked: Answered;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a line reads of an answer, it also asserts
  readonly finish: (more: any) => Answered;
}

let product: ProductInProcess;
let clock: SettableClock;
let suite: Caller;
let environment: string;
let client_id: string;
beforeAll(async () => {
  clock = new SettableClock(Date.now());
  product = await ProductInProcess.open({ variables: {}, log: new PinoLog({ level: 'silent', readable: false }), clock });
  suite = new Caller(() => product.url, product.key);
  const key = Object.assign(new FindEnvironmentKey(), { hash: hash('sha256', product.key, 'hex'), context: systemContext('system', clock.now()) });
  ({ environment_id: environment, client_id } = await product.call(key));
});
afterAll(() => product.close());

const later = async (milliseconds: number): Promise<void> => {
  clock.forward(milliseconds);
  await eventually(() => suite.get('/organizations').expect(200));
};
const context = () => systemContext(environment, clock.now());
const ask = (body: Body) => suite.post('/user_management/authenticate', { client_id, client_secret: product.key, ...body });
const settle = (settings: Body) => suite.patch('/admin/environment_settings', settings).expect(200);
/** What is asked while the settings are others. */
async function under<Result>(settings: Body, before: Body, asked: () => PromiseLike<Result>): Promise<Result> {
  await settle(settings);
  const answer = await asked();
  await settle(before);
  return answer;
}

const address = (): string => `${randomUUID()}@tables.test`;
const user = (fields: Body = {}) => suite.post(USERS, { email: address(), email_verified: true, password: PASSWORD, ...fields }).expect(201);
const organization = async (name = 'Acme'): Promise<string> => (await suite.post('/organizations', { name }).expect(201)).id;
const join = (organization_id: string, user_id: string) => suite.post('/user_management/organization_memberships', { organization_id, user_id }).expect(201);
const policy = (id: string, change: Body) => suite.patch(`/admin/organizations/${id}/authentication_policy`, change).expect(200);
const memberUnder = async (change: Body) => {
  const [member, acme] = [await user(), await organization()];
  await join(acme, member.id);
  await policy(acme, change);
  return { ...member, acme };
};
const ofTwo = async () => {
  const [member, one, two] = [await user(), await organization('One'), await organization('Two')];
  for (const id of [one, two]) await join(id, member.id);
  return { ...member, one, two };
};
const withPassword = (email: string, more: Body = {}) => ask({ grant_type: 'password', email, password: PASSWORD, ...more });
const codeFor = async (email: string): Promise<string> => (await suite.post(MAGIC, { email }).expect(201)).code;
const otherThan = (code: string): string => (code === '000000' ? '000001' : '000000');
const withCode = (email: string, code: string, more: Body = {}) => ask({ grant_type: urn('magic-auth:code'), email, code, ...more });
const goOn = (grant: string, pending_authentication_token: string, more: Body) => ask({ grant_type: urn(grant), pending_authentication_token, ...more });
const refresh = (refresh_token: string, more: Body = {}) => ask({ grant_type: 'refresh_token', refresh_token, ...more });
const codeOf = (secret: string): string => codeOfStep(secretOfBase32(secret)!, stepAt(clock.now()));
const factorOf = async (user_id: string) => {
  const factor = await suite.post('/auth/factors/enroll', { type: 'totp', totp_issuer: 'Acme', totp_user: 'ada', user_id }).expect(201);
  return { id: factor.id as string, secret: factor.totp.secret as string };
};
const challengeOf = async (factor: string): Promise<string> => (await suite.post(`/auth/factors/${factor}/challenge`).expect(201)).id;
const withFactor = async () => {
  const owner = await user();
  const factor = await factorOf(owner.id);
  await suite.post(`/auth/challenges/${await challengeOf(factor.id)}/verify`, { code: codeOf(factor.secret) }).expect(201, { valid: true });
  await later(MINUTE);
  return { ...owner, factor };
};
/** A code as a page issues it, for somebody who has shown a password there. */
const issued = async (challenge: string | null) => {
  const { id: user_id, email } = await user();
  const session_id = await product.get(SessionIds).ofCommand(context());
  const about = { id: session_id, user_id, email, ip_address: null, user_agent: null, has_secret: true, credentials_version: 0 };
  await product.get(Repository).transact(sessionDecider, context(), session_id, proveFactor('password', about, null));
  return { user_id, code: await product.get(AuthorizationCodes).issue(context(), { client_id, session_id, user_id, chosen: null }, challenge) };
};
const withIssued = (code: string, code_verifier?: string) => ask({ grant_type: 'authorization_code', code, code_verifier });
const poll = (device_code: string) => ask({ grant_type: DEVICE, device_code, client_secret: undefined });
const device = () => product.get(DeviceCodes).issue(context(), client_id);

const text = expect.any(String);
const oauth = (error: string): Body => ({ error, error_description: text, message: text });
const coded = (code: string): Body => ({ code, message: text });
const shownUser = expect.objectContaining({ object: 'user', id: text, email: text });
const pending = { pending_authentication_token: text };

/** As the API calls what the lines cause. */
const met = new Set<string>();
const answered = async (asked: Answered, status: number, body: Body): Promise<Body> => {
  const answer = await asked;
  expect([answer.status, answer.body]).toEqual([status, body]);
  expect(answer.headers).toMatchObject({ 'cache-control': 'no-store' });
  met.add(answer.body.error === undefined || answer.body.code !== undefined ? answer.body.code : answer.body.error);
  return answer.body;
};

describe('continuation responses, and how a client goes on', () => {
  const lines: readonly Continuation[] = [
    [
      'email_verification_required: the email-verification grant',
      async () => ({
        asked: withPassword((await user({ email_verified: false })).email),
        finish: async ({ pending_authentication_token: token, email_verification_id: id }) =>
          goOn('email-verification:code', token, { code: (await suite.get(`/user_management/email_verification/${id}`).expect(200)).code }),
      }),
      403,
      { ...coded('email_verification_required'), ...pending, email: text, email_verification_id: text },
    ],
    [
      'mfa_enrollment: a factor of the user, then mfa-totp',
      async () => {
        const { id, email } = await memberUnder({ mfa: 'required' });
        const finish = async ({ pending_authentication_token: token }: Body) => {
          const made = await suite.post(`${USERS}/${id}/auth_factors`, { type: 'totp', totp_issuer: 'Acme', totp_user: 'ada' }).expect(201);
          const code = codeOf(made.authentication_factor.totp.secret);
          return goOn('mfa-totp', String(token), { code, authentication_challenge_id: made.authentication_challenge.id });
        };
        return { asked: withPassword(email), finish };
      },
      403,
      { ...coded('mfa_enrollment'), ...pending, user: shownUser },
    ],
    [
      'mfa_challenge: a challenge of one factor, then mfa-totp',
      async () => {
        const { email, factor } = await withFactor();
        const finish = async ({
          pending_authentication_token: token,
          authentication_factors: [{ id }],
        }: Body & { readonly authentication_factors: readonly [{ readonly id: string }] }) =>
          goOn('mfa-totp', String(token), { code: codeOf(factor.secret), authentication_challenge_id: await challengeOf(id) });
        return { asked: withPassword(email), finish };
      },
      403,
      {
        ...{ ...coded('mfa_challenge'), ...pending, user: shownUser, authentication_factors: [{ id: text, type: 'totp' }] },
        authentication_challenge: expect.objectContaining({ object: 'authentication_challenge', id: text }),
      },
    ],
    [
      'organization_selection_required: organization-selection',
      async () => {
        const { email, two } = await ofTwo();
        return {
          asked: withPassword(email),
          finish: ({ pending_authentication_token: token }) => goOn('organization-selection', token, { organization_id: two }),
        };
      },
      403,
      {
        ...{ ...coded('organization_selection_required'), ...pending, user: shownUser },
        organizations: expect.arrayContaining(['One', 'Two'].map((name) => ({ id: text, name }))),
      },
    ],
    [
      'radar_challenge in both words: radar-email-challenge',
      async () => {
        const { email } = await user();
        const asked = under({ risk: { bot_detection: 'challenge' } }, { risk: { bot_detection: 'log' } }, () => withPassword(email, PROGRAM));
        const finish = async ({ pending_authentication_token: token, radar_challenge_id }: Body) => {
          const { code } = await suite.get(`/user_management/radar_challenges/${String(radar_challenge_id)}`).expect(200);
          return goOn('radar-email-challenge:code', String(token), { code, radar_challenge_id });
        };
        return { asked, finish };
      },
      403,
      { ...coded('radar_challenge'), ...oauth('radar_email_challenge'), ...pending, radar_challenge_id: text, user: shownUser },
    ],
    [
      'sso_required: another way in than this one',
      async () => {
        const { email, acme } = await memberUnder({ sso: 'required' });
        const finish = async () => (await policy(acme, { sso: 'optional' }), withPassword(email));
        return { asked: withPassword(email), finish };
      },
      400,
      { ...oauth('sso_required'), ...pending, email: text, connection_ids: [] },
    ],
    [
      'organization_authentication_methods_required: another method',
      async () => {
        const { email } = await memberUnder({ methods: { password: false } });
        return { asked: withPassword(email), finish: async () => withCode(email, await codeFor(email)) };
      },
      400,
      {
        ...{ ...oauth('organization_authentication_methods_required'), ...pending, email: text, sso_connection_ids: [] },
        auth_methods: { apple_oauth: false, github_oauth: false, google_oauth: false, magic_auth: true, microsoft_oauth: false, password: false },
      },
    ],
  ];
  it.each(lines)('%s', async (_, begun, status, body) => {
    const { asked, finish } = await begun();
    const more = await answered(asked, status, body);
    const done = await finish(more);
    expect([done.status, done.body]).toMatchObject([200, { access_token: text, refresh_token: text, user: shownUser }]);
  });

  const terminal: readonly Line[] = [
    [
      'authentication_method_not_allowed: terminal',
      async () => {
        const { email } = await user();
        const code = await codeFor(email);
        return under({ sign_in_methods: { magic_auth: false } }, { sign_in_methods: { magic_auth: true } }, () => withCode(email, code));
      },
      400,
      oauth('authentication_method_not_allowed'),
    ],
    [
      'email_password_auth_disabled: terminal',
      async () => {
        const { email } = await user();
        return under({ sign_in_methods: { password: false } }, { sign_in_methods: { password: true } }, () => withPassword(email));
      },
      403,
      coded('email_password_auth_disabled'),
    ],
    [
      'sso_required on refresh: only what ends a session',
      async () => {
        const { email, acme } = await memberUnder({});
        const { refresh_token } = await withPassword(email).expect(200);
        await policy(acme, { sso: 'required' });
        return refresh(refresh_token);
      },
      400,
      oauth('sso_required'),
    ],
    [
      'mfa_enrollment on refresh: only what ends a session',
      async () => {
        const { email, acme } = await memberUnder({});
        const { refresh_token } = await withPassword(email).expect(200);
        await policy(acme, { mfa: 'required' });
        return refresh(refresh_token);
      },
      400,
      oauth('mfa_enrollment'),
    ],
  ];
  it.each(terminal)('%s', async (_, asked, status, body) => void (await answered(asked(), status, body)));

  it('a rejected step does not use the pending token up', async () => {
    const { email, one } = await ofTwo();
    const { pending_authentication_token: token } = await withPassword(email).expect(403);
    await goOn('organization-selection', token, { organization_id: await organization() });
    await goOn('email-verification:code', token, { code: '000000' });
    await goOn('mfa-totp', token, { code: '000000', authentication_challenge_id: 'x' });
    await goOn('organization-selection', token, { organization_id: one, client_secret: 'sk_of_somebody_else_0123456789' });
    await goOn('organization-selection', token, { organization_id: one }).expect(200);
  });
});

describe('failure codes of authenticate', () => {
  const codedLines: readonly Line[] = [
    [
      'invalid_credentials: a wrong password',
      async () => withPassword((await user()).email, { password: 'another-giraffe-7' }),
      400,
      coded('invalid_credentials'),
    ],
    ['invalid_credentials: an unknown email', async () => withPassword(address()), 400, coded('invalid_credentials')],
    [
      'invalid_one_time_code',
      async () => {
        const { email } = await user();
        return withCode(email, otherThan(await codeFor(email)));
      },
      400,
      coded('invalid_one_time_code'),
    ],
    [
      'one_time_code_previously_used',
      async () => {
        const { email } = await user();
        const code = await codeFor(email);
        await withCode(email, code).expect(200);
        await later(31_000);
        return withCode(email, code);
      },
      400,
      coded('one_time_code_previously_used'),
    ],
    [
      'one_time_code_expired',
      async () => {
        const { email } = await user();
        const code = await codeFor(email);
        await later(10 * MINUTE + 1);
        return withCode(email, code);
      },
      400,
      coded('one_time_code_expired'),
    ],
    [
      'one_time_code_too_many_attempts',
      async () => {
        const { email } = await user();
        const code = await codeFor(email);
        for (let tries = 0; tries < 5; tries++) await withCode(email, otherThan(code)).expect(400, coded('invalid_one_time_code'));
        return withCode(email, code);
      },
      400,
      coded('one_time_code_too_many_attempts'),
    ],
    [
      'invalid_pending_authentication_token',
      async () => goOn('organization-selection', 'x', { organization_id: await organization() }),
      400,
      coded('invalid_pending_authentication_token'),
    ],
    [
      'invalid_organization_id',
      async () => {
        const { email } = await ofTwo();
        const { pending_authentication_token: token } = await withPassword(email).expect(403);
        return goOn('organization-selection', token, { organization_id: await organization() });
      },
      400,
      coded('invalid_organization_id'),
    ],
    ['code_challenge_not_found', async () => withIssued((await issued(null)).code, VERIFIER), 400, coded('code_challenge_not_found')],
    [
      'user_mismatch',
      async () => {
        const [one, other] = [await withFactor(), await withFactor()];
        const { pending_authentication_token: token } = await withPassword(one.email).expect(403);
        return goOn('mfa-totp', token, { code: codeOf(other.factor.secret), authentication_challenge_id: await challengeOf(other.factor.id) });
      },
      400,
      coded('user_mismatch'),
    ],
    [
      'sign_in_blocked, of our own: what a control blocks',
      async () => {
        const { email } = await user();
        return under({ risk: { bot_detection: 'block' } }, { risk: { bot_detection: 'log' } }, () => withPassword(email, PROGRAM));
      },
      403,
      coded('sign_in_blocked'),
    ],
  ];
  it.each(codedLines)('%s', async (_, asked, status, body) => void (await answered(asked(), status, body)));

  const invited = async (email: string) => suite.post('/user_management/invitations', { email }).expect(201);
  const oauthLines: readonly Line[] = [
    ['invalid_grant: an unknown code', () => withIssued('x', VERIFIER), 400, oauth('invalid_grant')],
    [
      'invalid_grant: an expired code',
      async () => {
        const { code } = await issued(CHALLENGE);
        await later(10 * MINUTE + 1);
        return withIssued(code, VERIFIER);
      },
      400,
      oauth('invalid_grant'),
    ],
    [
      'invalid_grant: a code that was used',
      async () => {
        const { code } = await issued(CHALLENGE);
        expect((await withIssued(code, VERIFIER)).status).toBe(200);
        await later(31_000);
        return withIssued(code, VERIFIER);
      },
      400,
      oauth('invalid_grant'),
    ],
    ['invalid_grant: an unknown refresh token', () => refresh('x'), 400, oauth('invalid_grant')],
    [
      'invalid_grant: a refresh token that was used',
      async () => {
        const { refresh_token } = await withPassword((await user()).email).expect(200);
        await refresh(refresh_token).expect(200);
        await later(31_000);
        return refresh(refresh_token);
      },
      400,
      oauth('invalid_grant'),
    ],
    ['invalid_grant: another verifier', async () => withIssued((await issued(CHALLENGE)).code, `${VERIFIER}x`), 400, oauth('invalid_grant')],
    [
      'invalid_grant: a deleted user',
      async () => {
        const { id, email } = await user();
        const { refresh_token } = await withPassword(email).expect(200);
        await suite.delete(`${USERS}/${id}`).expect(200);
        return refresh(refresh_token);
      },
      400,
      oauth('invalid_grant'),
    ],
    ['invalid_request: a missing field', () => ask({ grant_type: 'password', email: address() }), 400, oauth('invalid_request')],
    ['invalid_request: an unknown grant type', () => ask({ grant_type: 'implicit' }), 400, oauth('invalid_request')],
    [
      'invalid_request: a challenge by text message, which comes later',
      () => goOn('radar-sms-challenge:code', 'x', { code: '0' }),
      400,
      oauth('invalid_request'),
    ],
    ['invalid_client: a wrong secret', () => ask({ grant_type: 'password', client_secret: 'sk_of_somebody_else_0123456789' }), 400, oauth('invalid_client')],
    ['invalid_client: an unknown client', () => ask({ grant_type: 'password', client_id: 'client_nobody' }), 400, oauth('invalid_client')],
    ['invitation_invalid', async () => withPassword((await user()).email, { invitation_token: 'x' }), 400, oauth('invitation_invalid')],
    [
      'invitation_cannot_be_used_for_email',
      async () => withPassword((await user()).email, { invitation_token: (await invited(address())).token }),
      400,
      oauth('invitation_cannot_be_used_for_email'),
    ],
    [
      'organization_membership_not_found',
      async () => {
        const { refresh_token } = await withPassword((await user()).email).expect(200);
        return refresh(refresh_token, { organization_id: await organization() });
      },
      400,
      oauth('organization_membership_not_found'),
    ],
    [
      'token_too_big',
      async () => {
        const { email } = await user({ metadata: Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`m${index}`, 'x'.repeat(600)])) });
        const members = Array.from({ length: 6 }, (_, index) => `"c${index}":"{{user.metadata.m${index}}}"`);
        await suite.put('/user_management/jwt_template', { content: `{${members.join(',')}}` }).expect(200);
        const answer = await withPassword(email);
        await suite.put('/user_management/jwt_template', { content: '{}' }).expect(200);
        return answer;
      },
      400,
      oauth('token_too_big'),
    ],
    ['authorization_pending', async () => poll((await device()).deviceCode), 400, oauth('authorization_pending')],
    [
      'slow_down',
      async () => {
        const { deviceCode } = await device();
        await poll(deviceCode);
        return poll(deviceCode);
      },
      400,
      oauth('slow_down'),
    ],
    [
      'access_denied',
      async () => {
        const { deviceCode, userCode } = await device();
        await product.get(DeviceCodes).decide(context(), userCode, 'denied');
        return poll(deviceCode);
      },
      400,
      oauth('access_denied'),
    ],
    [
      'expired_token',
      async () => {
        const { deviceCode } = await device();
        await later(5 * MINUTE + 1);
        return poll(deviceCode);
      },
      400,
      oauth('expired_token'),
    ],
  ];
  it.each(oauthLines)('%s', async (_, asked, status, body) => void (await answered(asked(), status, body)));

  it('the chosen organization demands SSO: a message, and what to go on with beside it', async () => {
    const { email, two } = await ofTwo();
    const { pending_authentication_token: token } = await withPassword(email).expect(403);
    await policy(two, { sso: 'required' });
    const body = { ...oauth('sso_required'), ...pending, email, connection_ids: [] };
    await answered(goOn('organization-selection', token, { organization_id: two }), 400, body);
  });

  it('429 too_many_requests: the eleventh try of an email in a minute', async () => {
    const { email } = await user();
    for (let tries = 0; tries < 10; tries++) await withPassword(email).expect(200);
    await answered(withPassword(email), 429, oauth('too_many_requests'));
  });

  it('are all that the operation declares', () => {
    // It takes a hundred wrong passwords, and stands with what is said of risk.
    const known = ['password_reset_required', ...met];
    const declared = operationOf(Authenticate).options.refuses!.map((code) => (code === 'mfa_enrollment_at_refresh' ? 'mfa_enrollment' : code));
    expect(known.sort()).toEqual([...new Set(declared)].sort());
  });
});
