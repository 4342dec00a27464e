import { randomUUID } from 'node:crypto';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const USERS = '/user_management/users';
const MAGIC = '/user_management/magic_auth';
const RESET = '/user_management/password_reset';
const PASSWORD = 'ride-a-giraffe-7';

let suite: GivenSuite;
beforeAll(async () => void (suite = await givenSuite({ variables: { APPLICATION_URL: 'https://app.acme.test/' } })));

const address = (): string => `${randomUUID()}@codes.test`;
const user = async (fields: object = {}) => suite.post(USERS, { email: address(), ...fields }).expect(201);
/** What the log has of a user's codes and of the user, as the public events that tell of it. */
const eventsOf = async (userId: string) =>
  (await suite.records())
    .filter(({ stream }) => stream.endsWith(userId))
    .flatMap((record) => record.public.map(({ name }) => [name, record.subject as object] as const));
const other = (code: string): string => String((Number(code) + 1) % 1_000_000).padStart(6, '0');

describe('a magic code', () => {
  it('is created with its user, and is shown again', async () => {
    const email = address();
    const { code, ...made } = await suite.post(MAGIC, { email: ` ${email.toUpperCase()} ` }).expect(201);
    expect(code).toMatch(/^\d{6}$/);
    expect(made).toEqual({
      ...{ object: 'magic_auth', id: expect.stringMatching(/^magic_auth_\w{26}$/), user_id: expect.stringMatching(/^user_/), email },
      ...{ expires_at: expect.any(String), created_at: expect.any(String), updated_at: made.created_at },
    });
    expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(600_000);
    expect(await suite.get(`${MAGIC}/${made.id}`).expect(200)).toEqual({ ...made, code });
    expect(await suite.get(`${USERS}/${made.user_id}`).expect(200)).toMatchObject({ email, email_verified: false });
    expect(await eventsOf(made.user_id)).toEqual([
      ['user.created', expect.objectContaining({ email })],
      ['magic_auth.created', made],
    ]);
    expect(JSON.stringify(await suite.records('magic_auth.created'))).not.toMatch(new RegExp(`"(code|token)"|\\b${code}\\b`));
  });

  it('takes the place of the one before', async () => {
    const email = address();
    const first = await suite.post(MAGIC, { email }).expect(201);
    const second = await suite.post(MAGIC, { email }).expect(201);
    expect(second).toMatchObject({ user_id: first.user_id });
    await suite.get(`${MAGIC}/${first.id}`).expect(404, { entity_id: first.id, message: `Magic auth not found: '${first.id}'.` });
    expect(await suite.get(`${MAGIC}/${second.id}`).expect(200)).toEqual(second);
  });

  it('is the same when its creation comes again, which is not counted', async () => {
    const headers = { 'Idempotency-Key': randomUUID() };
    const email = address();
    const made = await suite.post(MAGIC, { email }, headers).expect(201);
    for (let times = 0; times < 4; times++) expect(await suite.post(MAGIC, { email }, headers).expect(201)).toEqual(made);
  });

  it('is not there in another environment, nor once its user is gone, nor is the row', async () => {
    const made = await suite.post(MAGIC, { email: address() }).expect(201);
    const elsewhere = await suite.otherEnvironment();
    await elsewhere.get(`${MAGIC}/${made.id}`).expect(404);
    expect((await elsewhere.post(MAGIC, { email: made.email }).expect(201)).user_id).not.toBe(made.user_id);
    await suite.delete(`${USERS}/${made.user_id}`).expect(200);
    await suite.get(`${MAGIC}/${made.id}`).expect(404);
    await eventually(async () => expect((await suite.records('magic_auth.removed')).map(({ data }) => data)).toContainEqual({ id: made.id }));
  });

  it('is not given for an address that only looks like that of a user', async () => {
    const local = `stra${String.fromCharCode(0xdf)}e${randomUUID().slice(0, 8)}`;
    await user({ email: `${local}@codes.test` });
    await suite.post(MAGIC, { email: `${local.replace('\u00df', 'ss')}@codes.test` }).expect(400, { error: 'sign_up_not_allowed' });
    await suite.post(RESET, { email: `${local.replace('\u00df', 'ss')}@codes.test` }).expect(404);
  });
});

describe('a code that verifies an address', () => {
  const send = (id: string) => suite.post(`${USERS}/${id}/email_verification/send`);
  const confirm = (id: string, code: string) => suite.post(`${USERS}/${id}/email_verification/confirm`, { code });
  const sent = async (id: string) => {
    const [{ data } = { data: null }] = (await suite.records('email_verification.created')).filter(({ stream }) => stream.endsWith(id)).slice(-1);
    return suite.get(`/user_management/email_verification/${(data as { id: string }).id}`).expect(200);
  };

  it('is sent, shown, and verifies once', async () => {
    const { id, email } = await user();
    expect(await send(id).expect(200)).toMatchObject({ user: { id, email_verified: false } });
    const { code, ...made } = await sent(id);
    expect(made).toMatchObject({ object: 'email_verification', user_id: id, email });
    await confirm(id, other(code)).expect(400, { code: 'email_verification_code_incorrect' });
    expect(await confirm(id, ` ${code} `).expect(200)).toMatchObject({ user: { id, email_verified: true } });
    await confirm(id, code).expect(400, { code: 'email_verification_code_previously_used' });
    await confirm(id, other(code)).expect(400, { code: 'email_previously_verified' });
    await send(id).expect(400, { code: 'email_already_verified' });
    expect(await eventsOf(id)).toEqual([
      ['user.created', expect.anything()],
      ['email_verification.created', made],
      ['user.updated', expect.objectContaining({ email_verified: true })],
    ]);
  });

  it('may be tried five times, whichever gateway is asked, and not once more', async () => {
    const { id } = await user();
    await send(id).expect(200);
    const { code } = await sent(id);
    const wrong = await Promise.all(Array.from({ length: 5 }, () => confirm(id, other(code))));
    expect(wrong.map(({ body }) => body.code)).toEqual(wrong.map(() => 'email_verification_code_incorrect'));
    await confirm(id, code).expect(400, { code: 'one_time_code_too_many_attempts' });
    await send(id).expect(200);
    const { code: next } = await sent(id);
    await confirm(id, next).expect(200);
  });

  it('is void once the address is another one, or another code was sent', async () => {
    const { id } = await user();
    await send(id).expect(200);
    const { code } = await sent(id);
    await suite.put(`${USERS}/${id}`, { email: address() }).expect(200);
    await confirm(id, code).expect(400, { code: 'email_verification_code_incorrect' });
    await send(id).expect(200);
    const { code: second } = await sent(id);
    await send(id).expect(200);
    const { code: third } = await sent(id);
    await confirm(id, second).expect(second === third ? 200 : 400);
  });

  it('is refused where nobody is, or nothing was sent', async () => {
    await send('user_01J0000000000000000000000A').expect(404);
    await confirm('user_01J0000000000000000000000A', '123456').expect(404);
    await confirm((await user()).id, '123456').expect(400, { code: 'email_verification_code_incorrect' });
    await suite.post(`${USERS}/${(await user()).id}/email_verification/confirm`, {}).expect(422);
  });
});

describe('a password reset', () => {
  const reset = async (email: string) => suite.post(RESET, { email }).expect(201);
  const confirm = (token: string, new_password = PASSWORD) => suite.post(`${RESET}/confirm`, { token, new_password });

  it('gives a token and a link, sets the password, verifies the address, and tells', async () => {
    const { id, email } = await user({ password: 'a-password-of-before' });
    const { password_reset_token: token, password_reset_url, ...made } = await reset(email);
    expect(token).toMatch(/^[\dA-Z]{26}[\w-]{43}$/);
    expect(password_reset_url).toBe(`https://app.acme.test/reset-password?token=${token}`);
    expect(made).toEqual({
      ...{ object: 'password_reset', id: `password_reset_${token.slice(0, 26)}`, user_id: id, email },
      ...{ expires_at: expect.any(String), created_at: expect.any(String) },
    });
    expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(3_600_000);
    expect(await suite.get(`${RESET}/${made.id}`).expect(200)).toEqual({ ...made, password_reset_token: token, password_reset_url });
    expect(await confirm(token).expect(200)).toMatchObject({ user: { id, email_verified: true } });
    expect(await eventsOf(id)).toEqual([
      ['user.created', expect.anything()],
      ['password_reset.created', made],
      ['user.updated', expect.objectContaining({ id, email_verified: true })],
      ['password_reset.succeeded', made],
    ]);
    await confirm(token).expect(404, { entity_id: made.id });
    expect(JSON.stringify(await suite.records())).not.toContain(token);
  });

  it('says everything that is wrong with a password, and can be tried again', async () => {
    const { email } = await user();
    const { password_reset_token: token } = await reset(email);
    const errors = [{ code: 'password_too_short', field: 'new_password' }];
    await confirm(token, 'short').expect(400, { code: 'password_reset_error', errors });
    await confirm(token, 'password1234').expect(400, { errors: [{ code: 'password_too_common' }] });
    await confirm(token).expect(200);
  });

  it('lets one of two who ask at once set the password', async () => {
    const { email, id } = await user();
    const { password_reset_token: token } = await reset(email);
    const both = await Promise.all(['one', 'other'].map((which) => confirm(token, `${PASSWORD}-${which}`)));
    expect(both.map(({ status }) => status).sort()).toEqual([200, 404]);
    expect((await eventsOf(id)).filter(([name]) => name === 'password_reset.succeeded')).toHaveLength(1);
  });

  it('voids the tokens and codes before it; so does another address', async () => {
    const { email, id } = await user();
    const first = await reset(email);
    const second = await reset(email);
    await confirm(first.password_reset_token).expect(404);
    await suite.post(`${USERS}/${id}/email_verification/send`).expect(200);
    await confirm(second.password_reset_token).expect(200);
    await suite.post(`${USERS}/${id}/email_verification/confirm`, { code: '000000' }).expect(400, { code: 'email_previously_verified' });

    const moved = await user();
    const { password_reset_token: token } = await reset(moved.email);
    await suite.put(`${USERS}/${moved.id}`, { email: address() }).expect(200);
    await confirm(token).expect(404);
  });

  it('is found by nothing but its token', async () => {
    const { email } = await user();
    const { password_reset_token: token, id } = await reset(email);
    const wrong = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`;
    await confirm(wrong).expect(404, { entity_id: id });
    for (const text of ['x', id, token.slice(0, 26), `${token}A`]) expect((await confirm(text).expect(404)).message).not.toContain(text.slice(30) || '\0');
    await suite.post(RESET, { email: address() }).expect(404);
    const elsewhere = await suite.otherEnvironment();
    await elsewhere.post(`${RESET}/confirm`, { token, new_password: PASSWORD }).expect(404);
    await elsewhere.get(`${RESET}/${id}`).expect(404);
  });
});

describe('the settings of an environment', () => {
  it('say whether codes are used, whether they are read again, and who may sign up', async () => {
    const caller = await suite.otherEnvironment('codes');
    const set = (settings: object) => caller.patch('/admin/environment_settings', settings).expect(200);
    const made = await caller.post(MAGIC, { email: address() }).expect(201);
    const reset = await caller.post(RESET, { email: made.email }).expect(201);
    await caller.post(`${USERS}/${made.user_id}/email_verification/send`).expect(200);
    const [{ data }] = (await suite.records('email_verification.created')).slice(-1) as unknown as [{ data: { id: string } }];
    const paths = [`${MAGIC}/${made.id}`, `${RESET}/${reset.id}`, `/user_management/email_verification/${data.id}`];
    for (const path of paths) await caller.get(path).expect(200);
    await set({ readable_codes: false });
    for (const path of paths) await caller.get(path).expect(403, { code: 'forbidden' });
    await set({ sign_up: false });
    await caller.post(MAGIC, { email: address() }).expect(400, { error: 'sign_up_not_allowed' });
    await caller.post(MAGIC, { email: made.email }).expect(201);
    await set({ sign_in_methods: { magic_auth: false, password: false } });
    await caller.post(MAGIC, { email: made.email }).expect(400, { error: 'authentication_method_not_allowed' });
    await caller.post(RESET, { email: made.email }).expect(403, { code: 'email_password_auth_disabled' });
    const confirmation = { token: reset.password_reset_token, new_password: PASSWORD };
    await caller.post(`${RESET}/confirm`, confirmation).expect(403, { code: 'email_password_auth_disabled' });
  });
});

describe('identities', () => {
  it('are none yet', async () => {
    expect(await suite.get(`${USERS}/${(await user()).id}/identities`).expect(200)).toEqual([]);
    await suite.get(`${USERS}/user_01J0000000000000000000000A/identities`).expect(404);
  });
});
