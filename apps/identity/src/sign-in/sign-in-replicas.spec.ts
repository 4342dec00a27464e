import { randomUUID } from 'node:crypto';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { Caller, givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { codeOfStep, secretOfBase32, stepAt } from '../authentication-factors/totp.ts';

const AUTHENTICATE = '/user_management/authenticate';
const USERS = '/user_management/users';
const MAGIC = '/user_management/magic_auth';
const FACTORS = '/auth/factors';
const INVITATIONS = '/user_management/invitations';
const PASSWORD = 'ride-a-giraffe-7';
const urn = (name: string): string => `urn:workos:oauth:grant-type:${name}`;
const MINUTE = 60_000;

type Body = Readonly<Record<string, unknown>>;

interface Mailbox {
  readonly data: readonly { readonly id: string; readonly text: string }[];
}

/** What is done through one gateway, with the services behind it, holds at the other with the next request. */
describe('sign-in through two gateways', () => {
  let suite: GivenSuite;
  let clock: SettableClock;
  let client_id: string;
  let one: Caller;
  let other: Caller;
  beforeAll(async () => {
    // Whatever is counted by the minute is counted from its beginning.
    clock = new SettableClock(Math.floor(Date.now() / MINUTE) * MINUTE);
    suite = await givenSuite({ clock, replicas: true });
    client_id = await suite.clientIdOf(suite);
    [one, other] = suite.urls.map((url) => new Caller(() => url, suite.key)) as [Caller, Caller];
  });

  const later = async (milliseconds: number): Promise<void> => {
    clock.forward(milliseconds);
    for (const gateway of [one, other]) await eventually(() => gateway.get('/organizations').expect(200));
  };
  const address = (): string => `${randomUUID()}@replicas.test`;
  const ask = (at: Caller, body: Body) => at.post(AUTHENTICATE, { client_id, client_secret: suite.key, ...body });
  const refresh = (at: Caller, refresh_token: string) => ask(at, { grant_type: 'refresh_token', refresh_token });
  const withCode = (at: Caller, email: string, code: string) => ask(at, { grant_type: urn('magic-auth:code'), email, code });
  const codeFor = async (email: string, at = one): Promise<string> => (await at.post(MAGIC, { email }).expect(201)).code;
  const signedIn = async (at = one, email = address()) => withCode(at, email, await codeFor(email, at)).expect(200);
  const user = async (fields: Body = {}) => one.post(USERS, { email: address(), email_verified: true, ...fields }).expect(201);
  const organization = async (): Promise<string> => (await one.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const join = (organization_id: string, user_id: string) => one.post('/user_management/organization_memberships', { organization_id, user_id }).expect(201);
  const sessionOf = ({ access_token }: { readonly access_token: string }): string =>
    JSON.parse(Buffer.from(access_token.split('.')[1]!, 'base64url').toString()).sid;
  /** At both by turns, all at once. */
  const byTurns = <Answer>(times: number, asked: (at: Caller, turn: number) => PromiseLike<Answer>): Promise<readonly Answer[]> =>
    Promise.all(Array.from({ length: times }, (_, turn) => asked(turn % 2 === 0 ? one : other, turn)));
  const otherThan = (code: string): string => (code === '000000' ? '000001' : '000000');
  const sessionsBegun = async (userId: string): Promise<number> =>
    (await suite.records('session.created')).filter(({ subject }) => (subject as { user_id: string }).user_id === userId).length;

  describe('a session', () => {
    it('that is revoked through one is refused by the other with the next refresh, in turn', async () => {
      for (const [at, elsewhere] of [
        [one, other],
        [other, one],
      ] as const) {
        const first = await signedIn(at);
        const { refresh_token } = await refresh(elsewhere, first.refresh_token).expect(200);
        await at.post('/user_management/sessions/revoke', { session_id: sessionOf(first) }).expect(200);
        await refresh(elsewhere, refresh_token).expect(400, { error: 'invalid_grant' });
        expect((await elsewhere.get(`${USERS}/${first.user.id}/sessions`).expect(200)).data).toEqual([]);
      }
    });

    it.each<[string, (id: string, acme: string, membership: string) => Promise<unknown>]>([
      ['its user', (id) => one.delete(`${USERS}/${id}`).expect(200)],
      ['its organization', (_, acme) => one.delete(`/organizations/${acme}`).expect(202)],
      ['its membership', (_, __, membership) => one.delete(`/user_management/organization_memberships/${membership}`).expect(200)],
    ])('is refused by the other once %s was deleted through one', async (_, end) => {
      const [{ id, email }, acme] = [await user(), await organization()];
      const membership = await join(acme, id);
      const { refresh_token } = await refresh(other, (await signedIn(one, email)).refresh_token).expect(200);
      await end(id, acme, membership.id);
      await refresh(other, refresh_token).expect(400, { error: 'invalid_grant' });
    });

    it('is refreshed with the same token at once through both: one successor, which both take', async () => {
      const { refresh_token } = await signedIn();
      const answers = await byTurns(6, (at) => refresh(at, refresh_token).expect(200));
      const [next, ...more] = new Set(answers.map((answer) => answer.refresh_token));
      expect(more).toEqual([]);
      expect(next).not.toBe(refresh_token);
      expect((await refresh(other, refresh_token).expect(200)).refresh_token).toBe(next);
      await refresh(other, (await refresh(one, next).expect(200)).refresh_token).expect(200);
    });

    it('ends at both where a token that was turned at one comes to the other later', async () => {
      const { refresh_token } = await signedIn();
      const second = await refresh(one, refresh_token).expect(200);
      await later(30_001);
      await refresh(other, refresh_token).expect(400, { error: 'invalid_grant' });
      await refresh(one, second.refresh_token).expect(400, { error: 'invalid_grant' });
    });

    it('is none where a reset through one comes after the password was shown to the other', async () => {
      const { email } = await user({ password: PASSWORD });
      const { refresh_token } = await ask(other, { grant_type: 'password', email, password: PASSWORD }).expect(200);
      clock.forward(1);
      const { password_reset_token: token } = await one.post('/user_management/password_reset', { email }).expect(201);
      await one.post('/user_management/password_reset/confirm', { token, new_password: `${PASSWORD}8` }).expect(200);
      await refresh(other, refresh_token).expect(400, { error: 'invalid_grant' });
      await ask(other, { grant_type: 'password', email, password: PASSWORD }).expect(400, { code: 'invalid_credentials' });
    });
  });

  describe('a code by mail', () => {
    it('that is redeemed on one is spent on the other', async () => {
      const email = address();
      const code = await codeFor(email);
      const first = await withCode(one, email, code).expect(200);
      expect(sessionOf(await withCode(other, email, code).expect(200))).toBe(sessionOf(first));
      await later(30_001);
      await withCode(other, email, code).expect(400, { code: 'one_time_code_previously_used' });
      expect(await sessionsBegun(first.user.id)).toBe(1);
    });

    it('yields one session, however many ask at once', async () => {
      const email = address();
      const code = await codeFor(email);
      const answers = await byTurns(8, (at) => withCode(at, email, code));
      const sessions = answers.flatMap(({ status, body }) => (status === 200 ? [sessionOf(body)] : []));
      expect(sessions.length).toBeGreaterThan(0);
      expect(new Set(sessions).size).toBe(1);
      expect(await sessionsBegun(answers.find(({ status }) => status === 200)!.body.user.id)).toBe(1);
    });

    it('is void at the other once another was asked for at one', async () => {
      const email = address();
      const [before, after] = [await codeFor(email, one), await codeFor(email, other)];
      if (before !== after) await withCode(other, email, before).expect(400, { code: 'invalid_one_time_code' });
      await withCode(one, email, after).expect(200);
    });

    it('is tried five times at both together', async () => {
      const { id } = await user({ email_verified: false });
      await one.post(`${USERS}/${id}/email_verification/send`).expect(200);
      const [{ data }] = (await suite.records('email_verification.created')).slice(-1) as unknown as [{ data: { id: string } }];
      const { code } = await other.get(`/user_management/email_verification/${data.id}`).expect(200);
      const confirm = (at: Caller, given: string) => at.post(`${USERS}/${id}/email_verification/confirm`, { code: given });
      const wrong = await byTurns(7, (at) => confirm(at, otherThan(code)));
      expect(wrong.map(({ body }) => body.code).sort()).toEqual([
        ...Array<string>(5).fill('email_verification_code_incorrect'),
        ...Array<string>(2).fill('one_time_code_too_many_attempts'),
      ]);
      for (const at of [one, other]) await confirm(at, code).expect(400, { code: 'one_time_code_too_many_attempts' });
    });

    it('is asked for three times a minute at both together', async () => {
      const email = address();
      const asked = await byTurns(5, (at) => at.post(MAGIC, { email }));
      expect(asked.map(({ status }) => status).sort()).toEqual([201, 201, 201, 429, 429]);
    });
  });

  it('sends three texts an hour to a number at both together, and takes the code of the last one, at the other', async () => {
    await one.patch('/admin/environment_settings', { sms: { countries: ['DE'] } }).expect(200);
    const phone_number = '+4915112345678';
    const enrol = (at: Caller) => eventually(() => at.post('/auth/factors/enroll', { type: 'sms', phone_number }).expect(201));
    const factors = [await enrol(one), await enrol(other)];
    const asked = await byTurns(5, (at, turn) => at.post(`/auth/factors/${factors[turn % 2].id}/challenge`));
    expect(asked.map(({ status }) => status).sort()).toEqual([201, 201, 201, 429, 429]);
    const { id, data } = (await suite.records('authentication_factor.challenged')).at(-1)!;
    const { challenge_id } = data as { readonly challenge_id: string };
    const text = await eventually(async () => {
      const found = await Promise.all(suite.urls.map(async (url) => (await (await fetch(`${url}/dev/mailbox/messages`)).json()) as Mailbox));
      return found.flatMap((mailbox) => mailbox.data).find((message) => message.id === `sms_${id}`)?.text ?? Promise.reject(new Error('It did not come.'));
    });
    await other.post(`/auth/challenges/${challenge_id}/verify`, { code: text.slice(0, 6) }).expect(201, { valid: true });
  });

  it('counts tries to sign in, ten a minute for an address at both together', async () => {
    const email = address();
    const tried = await byTurns(13, (at) => withCode(at, email, '000000'));
    expect(tried.map(({ status }) => status).sort()).toEqual([...Array<number>(10).fill(400), 429, 429, 429]);
  });

  it('makes whoever guesses passwords wait at both, after ten failures at both together', async () => {
    const { email } = await user({ password: PASSWORD });
    const guess = (at: Caller) => ask(at, { grant_type: 'password', email, password: `${PASSWORD}-` });
    expect((await byTurns(10, guess)).map(({ status }) => status)).toEqual(Array<number>(10).fill(400));
    await later(MINUTE);
    await guess(one).expect(400, { code: 'invalid_credentials' });
    for (const at of [other, one]) await ask(at, { grant_type: 'password', email, password: PASSWORD }).expect(429);
  });

  describe('a pending authentication', () => {
    it('goes on at the other with what it was chosen at, and begins one session', async () => {
      const { id, email } = await user();
      const acme = await organization();
      await join(acme, id);
      await join(await organization(), id);
      const { body } = await withCode(one, email, await codeFor(email));
      const choose = (at: Caller) =>
        ask(at, { grant_type: urn('organization-selection'), pending_authentication_token: body.pending_authentication_token, organization_id: acme });
      const answers = await byTurns(4, (at) => choose(at));
      const sessions = answers.flatMap(({ status, body: answer }) => (status === 200 ? [sessionOf(answer)] : []));
      expect(sessions.length).toBeGreaterThan(0);
      expect(new Set(sessions).size).toBe(1);
      expect(await sessionsBegun(id)).toBe(1);
      expect(sessionOf(await choose(other).expect(200))).toBe(sessions[0]);
    });

    it('lets in whoever chooses one organization, and nobody who chooses another at the same time elsewhere', async () => {
      const { id, email } = await user();
      const chosen = [await organization(), await organization()] as const;
      for (const each of chosen) await join(each, id);
      const { body } = await withCode(one, email, await codeFor(email));
      const shown = { grant_type: urn('organization-selection'), pending_authentication_token: body.pending_authentication_token };
      const answers = await byTurns(4, (at, turn) => ask(at, { ...shown, organization_id: chosen[turn % 2] }));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 400, 400]);
      const let_in = answers.flatMap(({ status, body: answer }) => (status === 200 ? [answer] : []));
      expect(new Set(let_in.map((answer) => `${sessionOf(answer)} ${answer.organization_id}`)).size).toBe(1);
      expect(await sessionsBegun(id)).toBe(1);
      expect((await refresh(other, let_in[0].refresh_token).expect(200)).organization_id).toBe(let_in[0].organization_id);
    });

    it('goes on at the other with a second factor, of which a code works once for both', async () => {
      const { id, email } = await user();
      const { totp, id: factor } = await one.post(`${FACTORS}/enroll`, { type: 'totp', totp_issuer: 'Acme', totp_user: 'ada', user_id: id }).expect(201);
      const codeNow = (): string => codeOfStep(secretOfBase32(totp.secret)!, stepAt(clock.now()));
      const challenged = async (at: Caller): Promise<string> => (await at.post(`${FACTORS}/${factor}/challenge`).expect(201)).id;
      await other.post(`/auth/challenges/${await challenged(one)}/verify`, { code: codeNow() }).expect(201, { valid: true });
      await later(30_000);
      const { body } = await withCode(one, email, await codeFor(email));
      expect(body.code).toBe('mfa_challenge');
      const challenges = await Promise.all([challenged(one), challenged(other)]);
      const shown = { grant_type: urn('mfa-totp'), pending_authentication_token: body.pending_authentication_token, code: codeNow() };
      const answers = await byTurns(2, (at, turn) => ask(at, { ...shown, authentication_challenge_id: challenges[1 - turn] }));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
      expect(await sessionsBegun(id)).toBe(1);
    });

    it('lets in one of two who enrol the first factor of a user at once, which then counts alone', async () => {
      const { id, email } = await user({ password: PASSWORD });
      const acme = await organization();
      await join(acme, id);
      await one.patch(`/admin/organizations/${acme}/authentication_policy`, { mfa: 'required' }).expect(200);
      const begun = await byTurns(2, async (at) => {
        const { body } = await ask(at, { grant_type: 'password', email, password: PASSWORD });
        const { authentication_factor: factor, authentication_challenge: challenge } = await at
          .post(`${USERS}/${id}/auth_factors`, { type: 'totp' })
          .expect(201);
        return { pending_authentication_token: body.pending_authentication_token, challenge: challenge.id, factor };
      });
      const answers = await byTurns(2, (at, turn) => {
        const { factor, challenge, pending_authentication_token } = begun[turn]!;
        const code = codeOfStep(secretOfBase32(factor.totp.secret)!, stepAt(clock.now()));
        return ask(at, { grant_type: urn('mfa-totp'), pending_authentication_token, code, authentication_challenge_id: challenge });
      });
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
      const { factor: first } = begun[answers.findIndex(({ status }) => status === 200)]!;
      const asked = async (at: Caller) => (await ask(at, { grant_type: 'password', email, password: PASSWORD })).body;
      for (const at of [one, other]) expect(await asked(at)).toMatchObject({ code: 'mfa_challenge', authentication_factors: [{ id: first.id, type: 'totp' }] });
      // Once it is gone, another may be the first at once.
      await one.delete(`${FACTORS}/${first.id}`).expect(204);
      const { pending_authentication_token } = await asked(other);
      const { authentication_factor: next, authentication_challenge: challenge } = await other
        .post(`${USERS}/${id}/auth_factors`, { type: 'totp' })
        .expect(201);
      const code = codeOfStep(secretOfBase32(next.totp.secret)!, stepAt(clock.now()));
      await ask(one, { grant_type: urn('mfa-totp'), pending_authentication_token, code, authentication_challenge_id: challenge.id }).expect(200);
    });

    it('is tried five times with a challenge, at both together', async () => {
      const { id } = await user();
      const { totp, id: factor } = await one.post(`${FACTORS}/enroll`, { type: 'totp', totp_issuer: 'Acme', totp_user: 'ada', user_id: id }).expect(201);
      const right = [-1, 0, 1].map((drift) => codeOfStep(secretOfBase32(totp.secret)!, stepAt(clock.now()) + drift));
      const wrong = Array.from({ length: 4 }, (_, digit) => String(digit).repeat(6)).find((code) => !right.includes(code))!;
      const challenge = await one.post(`${FACTORS}/${factor}/challenge`).expect(201);
      const tried = await byTurns(5, (at) => at.post(`/auth/challenges/${challenge.id}/verify`, { code: wrong }));
      expect(tried.map(({ body }) => body.valid)).toEqual(Array<boolean>(5).fill(false));
      for (const at of [one, other])
        expect((await at.post(`/auth/challenges/${challenge.id}/verify`, { code: right[1] })).body).not.toMatchObject({ valid: true });
    });
  });

  it('accepts an invitation once, whichever it is shown, and none that was revoked through the other', async () => {
    const invited = async () => {
      const [email, organization_id] = [address(), await organization()];
      const { id, token } = await one.post(INVITATIONS, { email, organization_id }).expect(201);
      return { id, organization_id, shown: { grant_type: urn('magic-auth:code'), email, code: await codeFor(email, other), invitation_token: token } };
    };
    const accepted = await invited();
    const answers = await byTurns(4, (at) => ask(at, accepted.shown));
    expect(answers.find(({ status }) => status === 200)?.body).toMatchObject({ organization_id: accepted.organization_id });
    const told = (await suite.records('invitation.accepted')).filter(({ subject }) => (subject as { id: string }).id === accepted.id);
    expect(told).toHaveLength(1);
    const { id, shown } = await invited();
    await one.post(`${INVITATIONS}/${id}/revoke`).expect(200);
    await ask(other, shown).expect(400, { error: 'invitation_invalid' });
  });
});
