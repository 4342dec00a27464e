import { randomUUID } from 'node:crypto';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const ATTEMPTS = '/radar/attempts';
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0';
const MINUTE = 60_000;

type Body = Readonly<Record<string, unknown>>;

let suite: GivenSuite;
let clock: SettableClock;
let elsewhere: Awaited<ReturnType<GivenSuite['otherEnvironment']>>;
beforeAll(async () => {
  clock = new SettableClock(Date.now());
  suite = await givenSuite({ clock });
  elsewhere = await suite.otherEnvironment();
});

const email = (domain = 'risk.test'): string => `${randomUUID()}@${domain}`;
let addresses = 0;
/** Of documentation, each a network of its own. */
const ipAddress = (): string => `2001:db8:0:${(++addresses).toString(16)}::1`;
const attempt = (fields: Body = {}) =>
  suite.post(ATTEMPTS, { ip_address: ipAddress(), user_agent: BROWSER, email: email(), auth_method: 'Password', action: 'sign-in', ...fields });
const verdict = (fields: Body = {}): Promise<Body> => attempt(fields).expect(200);
const list = (type: string, action: string, entry: string) => suite.post(`/radar/lists/${type}/${action}`, { entry });
const measures = (risk: Body) => suite.patch('/admin/environment_settings', { risk }).expect(200);
const succeed = async (answer: Body) => suite.put(`${ATTEMPTS}/${String(answer['attempt_id'])}`, { attempt_status: 'success' }).expect(204);
/** So many attempts that fail, each as soon as it may be. */
const fail = async (times: number, fields: Body): Promise<void> => {
  for (let index = 0; index < times; index++) await verdict(fields);
};
const allowed = { verdict: 'allow', reason: 'Nothing speaks against this attempt.', attempt_id: expect.stringMatching(/^radar_att_[0-9A-HJKMNP-TV-Z]{26}$/) };
const blockedBy = (control: string, more: Body = {}) => ({ verdict: 'block', reason: expect.any(String), attempt_id: expect.any(String), control, ...more });
const later = async (milliseconds: number): Promise<void> => {
  clock.forward(milliseconds);
  await eventually(() => suite.get('/organizations').expect(200));
};

describe('an attempt', () => {
  it('that nothing speaks against is allowed, in whichever words it is told', async () => {
    for (const action of ['sign-in', 'sign-up', 'login', 'signup']) expect(await verdict({ action, signals_id: null })).toEqual(allowed);
  });
  it.each([
    ['action', 'sign-out'],
    ['auth_method', 'password'],
    ['email', 'nobody'],
    ['ip_address', ''],
  ])('is refused with a wrong %s', (field, wrong) => attempt({ [field]: wrong }).expect(422, { errors: [{ field }] }));
  it('is not assessed where every control is off', async () => {
    const { risk } = await suite.get('/admin/environment_settings').expect(200);
    await measures({ bot_detection: 'off', brute_force_attack: 'off', credential_stuffing: 'off', restriction: 'off' });
    await attempt().expect(400, { code: 'radar_not_enabled' });
    await measures(risk);
  });
  it.each(['Mozilla/5.0', 'AcmeApp/2.1 (iPhone; iOS 17)', 'AcmeApp', ''])('of an app that names itself is one of a person: %s', async (user_agent) => {
    await measures({ bot_detection: 'block' });
    expect(await verdict({ user_agent })).toEqual(allowed);
    await measures({ bot_detection: 'log' });
  });
  it('of a program is what the settings make of it', async () => {
    const program = { user_agent: 'curl/8.5.0' };
    expect(await verdict(program)).toEqual(allowed);
    await measures({ bot_detection: 'block' });
    expect(await verdict(program)).toEqual(blockedBy('bot_detection'));
    await measures({ bot_detection: 'challenge' });
    expect(await verdict(program)).toMatchObject({ verdict: 'challenge', control: 'bot_detection' });
    await measures({ bot_detection: 'log' });
  });
  it('is known for ten minutes, in its own environment', async () => {
    const { attempt_id } = await verdict();
    const path = `${ATTEMPTS}/${String(attempt_id)}`;
    await suite.put(path, { challenge_status: 'success' }).expect(204);
    await suite.put(path, {}).expect(204);
    await suite.put(path, { attempt_status: 'failed' }).expect(422);
    await elsewhere.put(path, { attempt_status: 'success' }).expect(404);
    await later(10 * MINUTE);
    await suite.put(path, { attempt_status: 'success' }).expect(404, { code: 'entity_not_found' });
  });
});

describe('a list', () => {
  it.each([
    ['ip_address', (): Body => ({ ip_address: ipAddress() }), ({ ip_address }: Body) => String(ip_address)],
    ['email', (): Body => ({ email: email() }), ({ email: listed }: Body) => String(listed).toUpperCase()],
    ['domain', (): Body => ({ email: email(`${randomUUID()}.test`) }), ({ email: listed }: Body) => String(listed).split('@')[1]!],
    ['user_agent', (): Body => ({ user_agent: `${BROWSER} ${randomUUID()}` }), ({ user_agent }: Body) => String(user_agent)],
  ] as const)('of the kind %s keeps out what it blocks, until it is taken away', async (type, fieldsOf, entryOf) => {
    const fields = fieldsOf();
    const entry = entryOf(fields);
    expect(await verdict(fields)).toEqual(allowed);
    for (const message of [expect.any(String), expect.any(String)]) await list(type, 'block', entry).expect(200, { message });
    expect(await verdict(fields)).toEqual(blockedBy('restriction', { blocklist_type: type }));
    await suite.delete(`/radar/lists/${type}/block?entry=${encodeURIComponent(entry)}`).expect(204);
    expect(await verdict(fields)).toEqual(allowed);
    await suite.delete(`/radar/lists/${type}/block`, { entry }).expect(404, { code: 'entity_not_found', entity_id: entry });
  });
  it.each(['device', 'device_fingerprint'])('of the kind %s takes entries', async (type) => {
    await list(type, 'block', 'DE').expect(200);
    await suite.delete(`/radar/lists/${type}/block`, { entry: 'DE' }).expect(204);
  });
  it.each(['allow', 'block'])('of countries is refused, since it would match nothing: %s', async (action) => {
    await list('country', action, 'DE').expect(400, { code: 'invalid_radar_list_entry', message: expect.stringContaining('country') });
    await suite.delete(`/radar/lists/country/${action}`, { entry: 'DE' }).expect(404, { code: 'entity_not_found' });
  });
  it('is one of those that there are, and holds what it is for', async () => {
    await list('planet', 'block', 'mars').expect(422);
    await list('ip_address', 'forget', '192.0.2.1').expect(422);
    await list('ip_address', 'block', 'mars').expect(400, { code: 'invalid_radar_list_entry' });
  });
  it('is of its environment alone, and holds nothing that could be read', async () => {
    const entry = email();
    await list('email', 'block', entry).expect(200);
    const body = { ip_address: ipAddress(), user_agent: BROWSER, email: entry, auth_method: 'Other', action: 'sign-in' };
    expect(await elsewhere.post(ATTEMPTS, body).expect(200)).toEqual(allowed);
    const [added] = (await suite.records('risk_list.entry_added')).slice(-1);
    expect(JSON.stringify(added)).not.toContain(entry.split('@')[0]);
  });
  it('that allows lifts block lists and what is guessed, never the count of an account', async () => {
    const ip_address = ipAddress();
    const fields = { email: email(), ip_address, user_agent: 'curl/8.5.0' };
    await measures({ bot_detection: 'block' });
    await list('ip_address', 'block', ip_address).expect(200);
    await list('email', 'allow', fields.email).expect(200);
    await fail(10, fields);
    expect(await verdict(fields)).toEqual(blockedBy('brute_force_attack'));
    await measures({ bot_detection: 'log' });
  });
});

describe('failures', () => {
  it('of an account make everybody wait longer and longer, wherever they are', async () => {
    const account = { email: email() };
    await fail(10, account);
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      expect(await verdict(account)).toEqual(blockedBy('brute_force_attack'));
      await later(seconds * 1_000 - 1);
      expect(await verdict(account)).toEqual(blockedBy('brute_force_attack'));
      await later(1);
      expect(await verdict(account)).toEqual(allowed);
    }
  });
  it('of an account end with a success', async () => {
    const account = { email: email() };
    await fail(9, account);
    await succeed(await verdict(account));
    await fail(10, account);
    expect(await verdict(account)).toEqual(blockedBy('brute_force_attack'));
  });
  it('of strangers are not those of a device that signed in before', async () => {
    const home = { email: email(), ip_address: ipAddress() };
    await succeed(await verdict(home));
    await fail(10, { email: home.email });
    expect(await verdict({ email: home.email })).toEqual(blockedBy('brute_force_attack'));
    expect(await verdict(home)).toEqual(allowed);
    await fail(9, home);
    expect(await verdict(home)).toEqual(blockedBy('brute_force_attack'));
    expect(await verdict({ ...home, ip_address: home.ip_address.replace(/1$/, 'ffff') })).toEqual(blockedBy('brute_force_attack'));
  });
  it('of many at once are as many', async () => {
    const account = { email: email() };
    const answers = await Promise.all(Array.from({ length: 30 }, () => verdict(account)));
    expect(answers.filter((answer) => answer['verdict'] === 'allow')).toHaveLength(10);
  });
  it('of many accounts from one network are an attack on all of them', async () => {
    const network = ipAddress();
    const from = (index: number) => network.replace(/1$/, index.toString(16));
    for (let index = 1; index <= 20; index++) expect(await verdict({ ip_address: from(index) })).toEqual(allowed);
    expect(await verdict({ ip_address: from(21) })).toMatchObject({ verdict: 'challenge', control: 'brute_force_attack' });
    await later(10 * MINUTE);
    expect(await verdict({ ip_address: network })).toEqual(allowed);
  });
  it('that were none do not count against a network', async () => {
    const ip_address = ipAddress();
    for (let index = 0; index < 25; index++) await succeed(await verdict({ ip_address }));
    expect(await verdict({ ip_address })).toEqual(allowed);
  });
  it('from one network are stopped after a hundred in ten minutes', async () => {
    await measures({ credential_stuffing: 'off' });
    const ip_address = ipAddress();
    await Promise.all(Array.from({ length: 100 }, () => verdict({ ip_address })));
    expect(await verdict({ ip_address })).toEqual(blockedBy('brute_force_attack'));
    await measures({ credential_stuffing: 'challenge' });
  });
  it.each([
    ['off', 'allow'],
    ['log', 'allow'],
    ['challenge', 'challenge'],
  ])('are what the settings make of them: %s', async (measure, expected) => {
    await measures({ brute_force_attack: measure });
    const account = { email: email() };
    await fail(11, account);
    expect(await verdict(account)).toMatchObject({ verdict: expected });
    await measures({ brute_force_attack: 'block' });
  });
});
