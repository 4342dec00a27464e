import { randomUUID } from 'node:crypto';
import { LEAST_HASH_COST } from '#libs/testing/src/least-hash-cost';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const AUTHENTICATE = '/user_management/authenticate';
const PASSWORD = 'ride-a-giraffe-7';
const WRONG = 'ride-an-ostrich-8';
const MINUTE = 60_000;
const HOME = { ip_address: '192.0.2.1', user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0' };
const PROGRAM = { user_agent: 'curl/8.5.0' };
const urn = (name: string): string => `urn:workos:oauth:grant-type:${name}`;

type Body = Readonly<Record<string, unknown>>;

let suite: GivenSuite;
let clock: SettableClock;
let client_id: string;
beforeAll(async () => {
  clock = new SettableClock(Date.now());
  suite = await givenSuite({ clock, variables: { PASSWORD_HASH_COST: LEAST_HASH_COST.development } });
  client_id = await suite.clientIdOf(suite);
});

const later = async (milliseconds: number): Promise<void> => {
  clock.forward(milliseconds);
  await eventually(() => suite.get('/organizations').expect(200));
};
const measures = (risk: Body) => suite.patch('/admin/environment_settings', { risk }).expect(200);
const user = async (): Promise<{ readonly id: string; readonly email: string }> =>
  suite.post('/user_management/users', { email: `${randomUUID()}@risk.test`, email_verified: true, password: PASSWORD }).expect(201);
const ask = (body: Body) => suite.post(AUTHENTICATE, { client_id, client_secret: suite.key, ...body });
const withPassword = (email: string, password: string, more: Body = {}) => ask({ grant_type: 'password', email, password, ...more });
/** As many as may be tried in a minute. */
const failTen = async (email: string, more: Body = {}): Promise<void> => {
  for (let index = 0; index < 10; index++) await withPassword(email, WRONG, more).expect(400, { code: 'invalid_credentials' });
  await later(MINUTE);
};
const eventsOf = async (id: string) => (await suite.records()).filter(({ data }) => (data as { user_id?: string } | null)?.user_id === id);
const codeSentTo = (email: string): Promise<string> =>
  eventually(async () => {
    const { data } = (await (await fetch(`${suite.url}/dev/mailbox/messages`)).json()) as { data: { to: string; text: string }[] };
    const found = data.find(({ to, text }) => to === email && text.includes('unusual'));
    return /\b\d{6}\b/.exec(found!.text)![0];
  });

describe('failures in a row', () => {
  it('make whoever comes from elsewhere wait, also with the right password, and nobody from a device that signed in before', async () => {
    const { email, id } = await user();
    await withPassword(email, PASSWORD, HOME).expect(200);
    await withPassword(email, PASSWORD, { device_id: 'phone' }).expect(200);
    await later(MINUTE);
    await failTen(email);
    await withPassword(email, WRONG).expect(400);
    const held = await withPassword(email, PASSWORD);
    expect([held.status, held.body.error, held.headers['retry-after']]).toEqual([429, 'too_many_requests', '2']);
    await withPassword(email, PASSWORD, { ...HOME, user_agent: 'Safari' }).expect(429);
    await withPassword(email, PASSWORD, HOME).expect(200);
    await withPassword(email, PASSWORD, { device_id: 'phone' }).expect(200);
    await later(2_000);
    await withPassword(email, PASSWORD).expect(200);
    await withPassword(email, WRONG).expect(400);
    const [detected] = (await eventsOf(id)).filter(({ type }) => type === 'authentication.radar_risk_detected');
    expect(detected!.public.map(({ name }) => name)).toEqual(['authentication.radar_risk_detected']);
    expect(detected!.subject).toEqual({
      ...{ auth_method: 'Password', action: 'login', control: 'brute_force_attack', blocklist_type: null },
      ...{ ip_address: null, user_agent: null, user_id: id, email },
    });
  });

  it('are the same for an address that nobody has', async () => {
    const email = `${randomUUID()}@risk.test`;
    await failTen(email);
    await withPassword(email, WRONG).expect(400, { code: 'invalid_credentials' });
    await withPassword(email, WRONG).expect(429, { error: 'too_many_requests' });
  });

  it('of a hundred take the password out of use, but for a device that signed in before, until there is another one', async () => {
    await measures({ brute_force_attack: 'challenge' });
    const { email } = await user();
    await withPassword(email, PASSWORD, HOME).expect(200);
    await later(MINUTE);
    for (let index = 0; index < 10; index++) await failTen(email);
    await measures({ brute_force_attack: 'block' });
    await withPassword(email, PASSWORD).expect(403, { code: 'password_reset_required' });
    await withPassword(email, PASSWORD, HOME).expect(200);
    const { code } = await suite.post('/user_management/magic_auth', { email }).expect(201);
    await ask({ grant_type: urn('magic-auth:code'), email, code }).expect(200);
    await withPassword(email, PASSWORD).expect(403, { code: 'password_reset_required' });
    const { password_reset_token: token } = await suite.post('/user_management/password_reset', { email }).expect(201);
    await suite.post('/user_management/password_reset/confirm', { token, new_password: `${PASSWORD}-7` }).expect(200);
    await withPassword(email, `${PASSWORD}-7`).expect(200);
  });
});

describe('what is on a list', () => {
  it('keeps somebody out before anything is compared, whatever they show, and lets them in again', async () => {
    const { email, id } = await user();
    await suite.post('/radar/lists/email/block', { entry: email }).expect(200);
    const refused = { code: 'sign_in_blocked' };
    await withPassword(email, PASSWORD, HOME).expect(403, refused);
    const { code } = await suite.post('/user_management/magic_auth', { email }).expect(201);
    await ask({ grant_type: urn('magic-auth:code'), email, code }).expect(403, refused);
    const events = (await eventsOf(id)).map(({ type }) => type);
    expect(events).toEqual(['authentication.radar_risk_detected', 'magic_auth.created', 'authentication.radar_risk_detected']);
    expect((await eventsOf(id))[0]!.subject).toMatchObject({ control: 'restriction', blocklist_type: 'email', ...HOME, email });
    await suite.delete('/radar/lists/email/block', { entry: email }).expect(204);
    await ask({ grant_type: urn('magic-auth:code'), email, code }).expect(200);
  });
  it('of addresses is a network where they are of version 6, in whichever words it is written', async () => {
    const { email } = await user();
    const from = (ip_address: string) => withPassword(email, PASSWORD, { ip_address });
    for (const entry of ['2001:DB8:1:2:0:0:0:7', '192.0.2.99']) await suite.post('/radar/lists/ip_address/block', { entry }).expect(200);
    for (const address of ['2001:db8:1:2:ffff::9', '2001:0db8:0001:0002::', '192.0.2.99', '::ffff:192.0.2.99'])
      await from(address).expect(403, { code: 'sign_in_blocked' });
    for (const address of ['2001:db8:1:3::7', '192.0.2.98']) await from(address).expect(200);
  });
  it('of devices is compared with what the application calls them', async () => {
    const { email } = await user();
    for (const type of ['device', 'device_fingerprint']) {
      const device_id = randomUUID();
      await suite.post(`/radar/lists/${type}/block`, { entry: device_id }).expect(200);
      await withPassword(email, PASSWORD, { device_id }).expect(403, { code: 'sign_in_blocked' });
    }
  });
});

it('many accounts that are tried from one network of version 6 are tried by one, whichever of its addresses say so', async () => {
  await measures({ credential_stuffing: 'block' });
  const { email } = await user();
  const tried = Array.from({ length: 20 }, (_, place) =>
    withPassword(`${randomUUID()}@risk.test`, WRONG, { ip_address: `2001:db8:9:9:${place.toString(16)}::1` }).expect(400),
  );
  await Promise.all(tried);
  await withPassword(email, PASSWORD, { ip_address: '2001:db8:9:9:ffff::1' }).expect(403, { code: 'sign_in_blocked' });
  await withPassword(email, PASSWORD, { ip_address: '2001:db8:9:a::1' }).expect(200);
  await measures({ credential_stuffing: 'challenge' });
});

describe('a challenge', () => {
  beforeAll(async () => void (await measures({ bot_detection: 'challenge' })));
  afterAll(async () => void (await measures({ bot_detection: 'log' })));

  it('asks for a code by mail beside the right password, and for nothing beside a wrong one', async () => {
    const { email, id } = await user();
    await withPassword(email, WRONG, PROGRAM).expect(400, { code: 'invalid_credentials' });
    const challenged = await withPassword(email, PASSWORD, PROGRAM).expect(403);
    expect(challenged).toEqual({
      ...{ code: 'radar_challenge', error: 'radar_email_challenge', message: expect.any(String), error_description: expect.any(String) },
      ...{ pending_authentication_token: expect.any(String), user: expect.objectContaining({ id }) },
      radar_challenge_id: expect.stringMatching(/^radar_challenge_[0-9A-HJKMNP-TV-Z]{26}$/),
    });
    const { pending_authentication_token, radar_challenge_id } = challenged;
    const code = await codeSentTo(email);
    const path = `/user_management/radar_challenges/${radar_challenge_id}`;
    const shown = await suite.get(path).expect(200, { object: 'radar_challenge', id: radar_challenge_id, type: 'email', user_id: id, email, code });
    expect(Date.parse(shown.expires_at) - Date.parse(shown.created_at)).toBe(10 * 60_000);
    await suite.patch('/admin/environment_settings', { readable_codes: false }).expect(200);
    await suite.get(path).expect(403, { code: 'forbidden' });
    await suite.patch('/admin/environment_settings', { readable_codes: true }).expect(200);
    await suite.get(`/user_management/radar_challenges/radar_challenge_${'0'.repeat(26)}`).expect(404, { code: 'entity_not_found' });
    const show = (more: Body = {}) => ask({ grant_type: urn('radar-email-challenge:code'), pending_authentication_token, radar_challenge_id, code, ...more });
    await show({ code: code === '000000' ? '000001' : '000000' }).expect(400, { code: 'invalid_one_time_code' });
    await show({ radar_challenge_id: `radar_challenge_${'0'.repeat(26)}` }).expect(400, { code: 'invalid_one_time_code' });
    await show({ radar_challenge_id: undefined }).expect(400, { error: 'invalid_request' });
    const signed = await show().expect(200);
    expect(signed).toMatchObject({ user: { id }, authentication_method: 'Password' });
    expect((await eventsOf(id)).flatMap((record) => record.public.map(({ name }) => name))).toEqual([
      ...['authentication.radar_risk_detected', 'authentication.password_failed'],
      ...['authentication.radar_risk_detected', 'authentication.password_succeeded', 'radar.challenge_created', 'session.created'],
    ]);
    const created = (await suite.records('radar.challenge_created')).find(({ data }) => (data as { id: string }).id === radar_challenge_id);
    expect(created!.subject).toEqual({ type: 'email', radar_challenge_id, user_id: id, email });
    // What was shown for one sign-in is of no use to another.
    const next = await withPassword(email, PASSWORD, PROGRAM).expect(403);
    await show({ pending_authentication_token: next.pending_authentication_token }).expect(400);
  });

  it('is not passed by whatever else is asked for', async () => {
    const { id, email } = await suite
      .post('/user_management/users', { email: `${randomUUID()}@risk.test`, email_verified: true, password: PASSWORD })
      .expect(201);
    const organizations = await Promise.all(['One', 'Two'].map((name) => suite.post('/organizations', { name }).expect(201)));
    for (const organization of organizations)
      await suite.post('/user_management/organization_memberships', { user_id: id, organization_id: organization.id }).expect(201);
    const { pending_authentication_token } = await withPassword(email, PASSWORD, PROGRAM).expect(403, { code: 'radar_challenge' });
    const chosen = { grant_type: urn('organization-selection'), organization_id: organizations[0]!.id, pending_authentication_token };
    await ask(chosen).expect(403, { code: 'radar_challenge' });
    const { radar_challenge_id } = await ask(chosen).expect(403);
    const code = await codeSentTo(email);
    const shown = { grant_type: urn('radar-email-challenge:code'), pending_authentication_token, radar_challenge_id, code };
    await ask(shown).expect(200, { organization_id: organizations[0]!.id });
  });

  it('proves the address as well', async () => {
    const { id, email } = await suite.post('/user_management/users', { email: `${randomUUID()}@risk.test`, password: PASSWORD }).expect(201);
    const { pending_authentication_token, radar_challenge_id } = await withPassword(email, PASSWORD, PROGRAM).expect(403, { code: 'radar_challenge' });
    const code = await codeSentTo(email);
    const signed = await ask({ grant_type: urn('radar-email-challenge:code'), pending_authentication_token, radar_challenge_id, code }).expect(200);
    expect(signed.user).toMatchObject({ id, email_verified: true });
    await withPassword(email, PASSWORD).expect(200);
  });
});

describe('an attempt that the application had assessed', () => {
  const assessed = async (email: string, more: Body = {}): Promise<Body> =>
    suite.post('/radar/attempts', { ...HOME, email, auth_method: 'Password', action: 'sign-in', ...more }).expect(200);

  it('counts once, for its own address, within ten minutes', async () => {
    await measures({ bot_detection: 'block' });
    const { email } = await user();
    const other = await user();
    const attempt = async (): Promise<Body> => ({ radar_auth_attempt_id: (await assessed(email, PROGRAM))['attempt_id'] });
    const first = await attempt();
    await withPassword(other.email, PASSWORD, first).expect(200);
    await withPassword(email, PASSWORD, first).expect(403, { code: 'sign_in_blocked' });
    await withPassword(email, PASSWORD, first).expect(200);
    const late = await attempt();
    await later(10 * MINUTE);
    await withPassword(email, PASSWORD, late).expect(200);
    await measures({ bot_detection: 'log' });
  });
  it('of another environment is none', async () => {
    const { email } = await user();
    await suite.post('/radar/lists/email/block', { entry: email }).expect(200);
    const { attempt_id } = await assessed(email);
    await suite.delete('/radar/lists/email/block', { entry: email }).expect(204);
    await withPassword(email, PASSWORD, { radar_auth_attempt_id: String(attempt_id).replace(/.$/, '7') }).expect(200);
    await withPassword(email, PASSWORD, { radar_auth_attempt_id: attempt_id }).expect(403);
  });
  it('whose challenge the application saw passed asks for none', async () => {
    await measures({ bot_detection: 'challenge' });
    const { email } = await user();
    const { attempt_id: radar_auth_attempt_id } = await assessed(email, PROGRAM);
    await suite.put(`/radar/attempts/${String(radar_auth_attempt_id)}`, { challenge_status: 'success' }).expect(204);
    await withPassword(email, PASSWORD, { ...PROGRAM, radar_auth_attempt_id }).expect(200);
    await withPassword(email, PASSWORD, { ...PROGRAM, radar_auth_attempt_id }).expect(403, { code: 'radar_challenge' });
    await measures({ bot_detection: 'log' });
  });
  it('is counted once, and ends the failures in a row where it succeeds', async () => {
    const { email } = await user();
    for (let index = 0; index < 9; index++) await assessed(email);
    const { attempt_id: radar_auth_attempt_id } = await assessed(email);
    await withPassword(email, PASSWORD, { radar_auth_attempt_id }).expect(200);
    expect(await assessed(email, { ip_address: '198.51.100.1' })).toMatchObject({ verdict: 'allow' });
  });
});

describe('an attempt in which a code is asked for', () => {
  const codeFor = async (email: string, more: Body = HOME) => suite.post('/user_management/magic_auth', { email, ...more }).expect(201);
  const withCode = (email: string, code: string, more: Body = {}) => ask({ grant_type: urn('magic-auth:code'), email, code, ...more });
  const attemptOf = async (email: string, more: Body = {}): Promise<string> =>
    (await suite.post('/radar/attempts', { ...HOME, email, auth_method: 'Email_OTP', action: 'sign-in', ...more }).expect(200)).attempt_id;

  it('is told of with the code, where anybody knows where the person is, and its verdict counts for the sign-in', async () => {
    await measures({ bot_detection: 'block' });
    const { email } = await user();
    expect(await codeFor(email, {})).not.toHaveProperty('radar_auth_attempt_id');
    const { code, radar_auth_attempt_id } = await codeFor(email, { ...HOME, ...PROGRAM });
    expect(radar_auth_attempt_id).toMatch(/^radar_att_/);
    await withCode(email, code, { radar_auth_attempt_id }).expect(403, { code: 'sign_in_blocked' });
    await withCode(email, code).expect(200);
    await measures({ bot_detection: 'log' });
  });
  it('is the one that the application had assessed for the same address, as long as no sign-in went by it', async () => {
    const { email } = await user();
    const own = await attemptOf(email);
    expect(await codeFor(email, { radar_auth_attempt_id: own })).toMatchObject({ radar_auth_attempt_id: own });
    const { code, ...other } = await codeFor(email, { ...HOME, radar_auth_attempt_id: await attemptOf((await user()).email) });
    expect(other.radar_auth_attempt_id).not.toBe(own);
    await withCode(email, code, { radar_auth_attempt_id: own }).expect(200);
    await later(MINUTE);
    expect(await codeFor(email, { radar_auth_attempt_id: own })).not.toHaveProperty('radar_auth_attempt_id');
  });
  it('is no failure of a network from which people sign in, however often, told or not', async () => {
    const ip_address = '198.51.100.77';
    for (let index = 0; index < 28; index++) {
      const { email } = await user();
      const { code, radar_auth_attempt_id } = await codeFor(email, { ...HOME, ip_address });
      const more = { ...HOME, ip_address, ...(index % 4 === 0 && { radar_auth_attempt_id }) };
      await withCode(email, code, more).expect(200);
      if (index % 4 === 0) await suite.put(`/radar/attempts/${String(radar_auth_attempt_id)}`, { attempt_status: 'success' }).expect(204);
    }
    // So many accounts may fail, and one more: nothing was given back twice, either.
    const failed = async (): Promise<void> => void (await attemptOf(`${randomUUID()}@risk.test`, { ip_address }));
    for (let index = 0; index < 20; index++) await failed();
    const { email } = await user();
    await withPassword(email, PASSWORD, { ...HOME, ip_address }).expect(403, { code: 'radar_challenge' });
  });
});
