import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { ChallengeAuthenticationFactor } from '#libs/contracts/src/authentication-factors/operations';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { newCommandId } from '#libs/platform/src/ids';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { WebhookReceiver, type ReceivedWebhook } from '#libs/testing/src/webhook-receiver';

const FACTORS = '/auth/factors';
const CHALLENGES = '/auth/challenges';
const USERS = '/user_management/users';
const SETTINGS = '/admin/environment_settings';
const PASSWORD = 'ride-a-giraffe-7';
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

type Environment = Awaited<ReturnType<GivenSuite['otherEnvironment']>>;
type Body = Readonly<Record<string, unknown>>;
interface Sent {
  readonly id: string;
  readonly event: string;
  readonly data: Readonly<Record<'object' | 'environment_id' | 'phone_number' | 'country' | 'text' | 'code' | 'expires_at', string>>;
}

let suite: GivenSuite;
let clock: SettableClock;
let receiver: WebhookReceiver;
let caller: Environment;
/** Others: without texts, one that may send few, one whose webhook never answers, and one whose is slow. */
let elsewhere: Environment;
let frugal: Environment;
let stuck: Environment;
let sluggish: Environment;
let client_id: string;
const lines: string[] = [];
let lastNumber = 0;
/** Of nobody else here. */
const number = (): string => `+4915112${String(++lastNumber).padStart(6, '0')}`;

beforeAll(async () => {
  clock = new SettableClock(Date.now());
  [suite, receiver] = await Promise.all([givenSuite({ clock, onLogLine: (line) => lines.push(line) }), WebhookReceiver.listen()]);
  [caller, frugal, stuck, sluggish, elsewhere] = await Promise.all([
    withTexts('texts'),
    withTexts('frugal', { daily_budget: 4 }),
    withTexts('stuck'),
    withTexts('sluggish'),
    suite.otherEnvironment(),
  ]);
  client_id = await suite.clientIdOf(caller);
});
afterAll(() => receiver.close());

/** An environment whose texts come here. */
async function withTexts(name: string, sms: Body = {}): Promise<Environment> {
  const environment = await suite.otherEnvironment(name);
  await environment.patch(SETTINGS, { sms: { countries: ['DE'], webhook_url: receiver.url, webhook_secret: SECRET, ...sms } }).expect(200);
  return environment;
}
/** Time goes on, and the gateway hears from the log that its keys are still good. */
const later = async (milliseconds: number): Promise<void> => {
  clock.forward(milliseconds);
  await eventually(() => caller.get('/organizations').expect(200));
};
const nextDay = (): Promise<void> => later(DAY - (clock.now() % DAY) + 1);
const user = async (fields: Body = {}) => caller.post(USERS, { email: `${randomUUID()}@sms.test`, email_verified: true, ...fields }).expect(201);
const enrol = async (phone_number = number(), fields: Body = {}, by: Environment = caller) =>
  by.post(`${FACTORS}/enroll`, { type: 'sms', phone_number, ...fields }).expect(201);
const challenge = async ({ id }: { readonly id: string }, body: Body = {}, by: Environment = caller) => by.post(`${FACTORS}/${id}/challenge`, body).expect(201);
const verify = (id: string, code: string) => caller.post(`${CHALLENGES}/${id}/verify`, { code });
const otherThan = (code: string): string => (code === '000000' ? '000001' : '000000');
const sentTo = (phone: string): readonly (ReceivedWebhook & { readonly sent: Sent })[] =>
  receiver.received.map((webhook) => ({ ...webhook, sent: JSON.parse(webhook.body) as Sent })).filter(({ sent }) => sent.data.phone_number === phone);
/** The `count`-th text to a number, and its code. */
const arrived = (phone: string, count = 1): Promise<Sent['data']> =>
  eventually(async () => (expect(sentTo(phone).length).toBeGreaterThanOrEqual(count), sentTo(phone)[count - 1]!.sent.data));

describe('a telephone', () => {
  it('is enrolled by its number, in whatever spelling', async () => {
    const { id: user_id } = await user();
    const factor = await enrol(' +49 (0)151 999-888 77 ', { user_id });
    expect(factor).toEqual({
      ...{ object: 'authentication_factor', id: expect.stringMatching(/^auth_factor_\w{26}$/), type: 'sms', user_id, sms: { phone_number: '+4915199988877' } },
      ...{ created_at: expect.any(String), updated_at: factor.created_at },
    });
    expect(await caller.get(`${FACTORS}/${factor.id}`).expect(200)).toEqual(factor);
    expect((await caller.get(`${USERS}/${user_id}/auth_factors`).expect(200)).data).toEqual([factor]);
  });

  it.each<[string, Body, string]>([
    ['no number', {}, 'required'],
    ['the number of nobody', { phone_number: '+49151' }, 'invalid'],
    ['a number without its country', { phone_number: '015112345678' }, 'invalid'],
    ['a number that others earn by', { phone_number: '+449012345678' }, 'not_mobile'],
    ['a number of a country that is not named', { phone_number: '+18762101234' }, 'country_not_allowed'],
    ['a number of no country', { phone_number: '+870773111632' }, 'country_not_allowed'],
  ])('is not enrolled with %s', async (_, body, code) => {
    const refused = await caller.post(`${FACTORS}/enroll`, { type: 'sms', ...body }).expect(422, { errors: [{ field: 'phone_number', code }] });
    if (body['phone_number'] !== undefined) expect(JSON.stringify(refused)).not.toContain(body['phone_number']);
  });

  it('is sent a code that works once; it is signed as webhooks are, and shown by nothing else', async () => {
    const phone = number();
    const factor = await enrol(phone);
    const { id, ...shown } = await challenge(factor);
    expect(shown).toEqual({
      ...{
        object: 'authentication_challenge',
        authentication_factor_id: factor.id,
        expires_at: new Date(Date.parse(shown.created_at) + 10 * MINUTE).toISOString(),
      },
      ...{ created_at: expect.any(String), updated_at: shown.created_at },
    });
    const { code, text, ...data } = await arrived(phone);
    const { headers, body, sent } = sentTo(phone)[0]!;
    expect(new Webhook(SECRET).verify(body, headers as Record<string, string>)).toEqual(sent);
    expect(sent).toMatchObject({ id: headers['webhook-id'], event: 'sms.requested' });
    expect(data).toEqual({ object: 'sms', environment_id: caller.id, phone_number: phone, country: 'DE', expires_at: shown.expires_at });
    expect(text).toMatch(new RegExp(`^${code} is your code for texts-`));
    expect(await verify(id, otherThan(code)).expect(201)).toMatchObject({ valid: false });
    const answers = await Promise.all([verify(id, code), verify(id, code)]);
    expect(answers.map(({ status, body: answer }) => answer.valid ?? [status, answer.code])).toEqual(
      expect.arrayContaining([true, [422, 'authentication_challenge_previously_verified']]),
    );
    const records = await suite.records();
    expect(JSON.stringify(records)).not.toContain(`"${code}"`);
    expect(records.flatMap((record) => (record.type.startsWith('authentication_factor') ? record.public : []))).toEqual([]);
    for (const canary of [phone, phone.slice(1), text]) expect(lines.filter((line) => line.includes(canary))).toEqual([]);
  });

  it('is tried five times', async () => {
    const phone = number();
    const { id } = await challenge(await enrol(phone));
    const { code } = await arrived(phone);
    const tried = await Promise.all(Array.from({ length: 6 }, () => verify(id, otherThan(code))));
    expect(tried.filter(({ status }) => status === 400)).toHaveLength(1);
    await verify(id, code).expect(400, { code: 'one_time_code_too_many_attempts' });
  });

  it('has the code that was sent last alone, and for ten minutes', async () => {
    const phone = number();
    const factor = await enrol(phone);
    const [first, one] = [await challenge(factor), (await arrived(phone)).code];
    const [second, two] = [await challenge(factor), (await arrived(phone, 2)).code];
    await verify(first.id, one).expect(422, { code: 'authentication_challenge_expired' });
    expect(await verify(second.id, one).expect(201)).toMatchObject({ valid: false });
    expect(await verify(second.id, two).expect(201)).toMatchObject({ valid: true });
    const [third, three] = [await challenge(factor), (await arrived(phone, 3)).code];
    await later(10 * MINUTE);
    await verify(third.id, three).expect(422, { code: 'authentication_challenge_expired' });
  });

  it('reads what the caller wrote around the code', async () => {
    const phone = number();
    const factor = await enrol(phone);
    for (const sms_template of ['without it', `{{code}}${'x'.repeat(160)}`, '{{code}}\u202e'])
      await caller.post(`${FACTORS}/${factor.id}/challenge`, { sms_template }).expect(422, { errors: [expect.objectContaining({ field: 'sms_template' })] });
    await challenge(factor, { sms_template: 'Acme: {{code}}. Not yours? Call us.' });
    const { text, code } = await arrived(phone);
    expect(text).toBe(`Acme: ${code}. Not yours? Call us.`);
  });

  it('that was deleted takes its challenges along, and another with the same number has none of them', async () => {
    const phone = number();
    const factor = await enrol(phone);
    const { id } = await challenge(factor);
    const { code } = await arrived(phone);
    await caller.delete(`${FACTORS}/${factor.id}`).expect(204);
    await enrol(phone);
    await verify(id, code).expect(404);
  });

  it('of somebody who is erased is unknown, and so is what was written to it', async () => {
    const [{ id }, phone] = [await user(), number()];
    const factor = await enrol(phone, { user_id: id });
    await challenge(factor, { sms_template: 'Dear Ada, {{code}}' });
    await arrived(phone);
    await caller.post(`/admin/users/${id}/erasure`).expect(202);
    await eventually(async () => {
      const records = await suite.records('authentication_factor.enrolled', 'authentication_factor.challenged');
      const own = records.filter(({ data }) => (data as { id: string }).id === factor.id);
      expect(own).toMatchObject([{ data: { phone_number: null } }, { data: { sms_template: null } }]);
    });
  });

  it('that was verified is the only one that its user is sent codes at', async () => {
    const [{ id: user_id }, phone, strangers] = [await user(), number(), number()];
    const [own, early] = [await enrol(phone, { user_id }), await enrol(strangers, { user_id })];
    const [{ id }, { id: stale }] = [await challenge(own), await challenge(early)];
    await verify(id, (await arrived(phone)).code).expect(201, { valid: true });
    // A code that was sent before makes no second number of it.
    await verify(stale, (await arrived(strangers)).code).expect(422, { code: 'verified_phone_number_exists' });
    await caller.post(`${FACTORS}/enroll`, { type: 'sms', phone_number: number(), user_id }).expect(422, { code: 'verified_phone_number_exists' });
    await caller.post(`${FACTORS}/${early.id}/challenge`).expect(422, { code: 'verified_phone_number_exists' });
    await challenge(own);
    await arrived(phone, 2);
    expect(sentTo(strangers)).toHaveLength(1);
    await caller.delete(`${FACTORS}/${own.id}`).expect(204);
    await challenge(early);
    await arrived(strangers, 2);
  });

  it('that was verified first counts alone where two of one user are in the same instant, as the log has them', async () => {
    const users = await Promise.all([0, 1, 2].map(() => user({ password: PASSWORD })));
    const challenged = await Promise.all(
      users.map(({ id: user_id }) =>
        Promise.all(
          [number(), number()].map(async (phone) => {
            const factor = await enrol(phone, { user_id });
            const { id } = await challenge(factor);
            return { factor: factor.id as string, id, code: (await arrived(phone)).code };
          }),
        ),
      ),
    );
    const answers = await Promise.all(challenged.map((both) => Promise.all(both.map(({ id, code }) => verify(id, code)))));
    const verified = (await suite.records('authentication_factor.verified')).map(({ data }) => (data as { id: string }).id);
    for (const [place, { email }] of users.entries()) {
      const [first] = verified.filter((id) => challenged[place]!.some(({ factor }) => factor === id));
      const outcomes = answers[place]!.map(({ status, body }) => (status === 201 ? body.valid : body.code));
      expect(outcomes).toEqual(challenged[place]!.map(({ factor }) => (factor === first ? true : 'verified_phone_number_exists')));
      const client = { client_id, client_secret: caller.key };
      const asked = await caller.post('/user_management/authenticate', { ...client, grant_type: 'password', email, password: PASSWORD }).expect(403);
      expect(asked.authentication_factors).toEqual([{ id: first, type: 'sms' }]);
    }
  });
});

describe('texts', () => {
  it('are off where no country is named, or nobody sends them', async () => {
    const ask = () => elsewhere.post(`${FACTORS}/enroll`, { type: 'sms', phone_number: number() });
    await ask().expect(422, { code: 'sms_not_available', message: expect.stringContaining('sms.countries') });
    await elsewhere.patch(SETTINGS, { sms: { countries: ['DE'], webhook_url: receiver.url } }).expect(200);
    await eventually(() => ask().expect(422, { code: 'sms_not_available', message: expect.stringContaining('sms.webhook_secret') }));
    await elsewhere.patch(SETTINGS, { sms: { webhook_secret: 'a secret as it comes' } }).expect(200);
    const factor = await eventually(() => ask().expect(201));
    await elsewhere.patch(SETTINGS, { sms: { countries: ['FR'] } }).expect(200);
    await eventually(() => elsewhere.post(`${FACTORS}/${factor.id}/challenge`).expect(422, { errors: [{ code: 'country_not_allowed' }] }));
  });

  it('are three an hour for a number, whosever it is said to be', async () => {
    const phone = number();
    const factors = [await enrol(phone, { user_id: (await user()).id }), await enrol(phone, { user_id: (await user()).id })];
    const asked = await Promise.all(Array.from({ length: 5 }, (_, index) => caller.post(`${FACTORS}/${factors[index % 2]!.id}/challenge`)));
    expect(asked.map(({ status, body }) => body.code ?? status).sort()).toEqual([201, 201, 201, 'rate_limit_exceeded', 'rate_limit_exceeded']);
    await later(HOUR);
    await challenge(factors[0]);
  });

  it('are five a day for a user, and for a number of whom nobody knows whose it is', async () => {
    await nextDay();
    const [{ id: user_id }, phone] = [await user(), number()];
    const [one, two] = [await enrol(number(), { user_id }), await enrol(number(), { user_id })];
    const [of, nobody] = [await enrol(phone), await enrol(phone)];
    for (const factor of [one, two, one, two, of, nobody, of]) await challenge(factor);
    await later(HOUR);
    for (const factor of [one, nobody, of]) await challenge(factor);
    for (const { id } of [two, nobody]) await caller.post(`${FACTORS}/${id}/challenge`).expect(429, { code: 'daily_quota_exceeded' });
  });

  it('are as many a day as the environment may spend; whoever is refused spends nothing', async () => {
    const factors = [await enrol(number(), {}, frugal), await enrol(number(), {}, frugal)];
    for (let times = 0; times < 3; times++) await challenge(factors[0], {}, frugal);
    await frugal.post(`${FACTORS}/${factors[0]!.id}/challenge`).expect(429, { code: 'rate_limit_exceeded' });
    await challenge(factors[1], {}, frugal);
    await frugal.post(`${FACTORS}/${factors[1]!.id}/challenge`).expect(429, { code: 'daily_quota_exceeded' });
    expect(await (await fetch(`${suite.url}/metrics`)).text()).toContain('gatehouse_text_limits_reached_total{limit="budget"} 1');
    await challenge(await enrol());
    await nextDay();
    await challenge(factors[1], {}, frugal);
  });

  it('are sent and counted once where the same request comes again', async () => {
    const phone = number();
    const { id } = await enrol(phone);
    const carryOut = () => {
      const context = { environment: caller.id, commandId, deadline: clock.now() + MINUTE, attempt: 2 };
      return suite.call(ChallengeAuthenticationFactor, { id }, context);
    };
    let commandId = newCommandId(clock.now());
    const made = await carryOut();
    for (let times = 0; times < 3; times++) expect(await carryOut()).toEqual(made);
    await arrived(phone);
    for (const count of [2, 3]) {
      commandId = newCommandId(clock.now());
      await carryOut();
      await arrived(phone, count);
    }
    expect(sentTo(phone)).toHaveLength(3);
  });

  it('that a webhook does not take now are sent again, as the same; what it will never take, or answers elsewhere, is not', async () => {
    const [busy, refused, redirected, after] = [number(), number(), number(), number()];
    receiver.answers(503);
    await challenge(await enrol(busy));
    await arrived(busy);
    receiver.answers(200);
    await arrived(busy, 2);
    expect(new Set(sentTo(busy).map(({ headers, sent }) => `${String(headers['webhook-id'])} ${sent.data.code}`)).size).toBe(1);
    receiver.answers(400, 'not this number');
    await challenge(await enrol(refused));
    await arrived(refused);
    receiver.answers(302);
    await challenge(await enrol(redirected));
    await arrived(redirected);
    receiver.answers(200);
    await challenge(await enrol(after));
    await arrived(after);
    expect([sentTo(refused), sentTo(redirected)].map(({ length }) => length)).toEqual([1, 1]);
    expect(lines.filter((line) => line.includes('refused by the webhook')).map((line) => JSON.parse(line).reason)).toEqual(['400', '302']);
  });

  it('that nobody waits for any more are not sent again', async () => {
    const phone = number();
    const factor = await enrol(phone);
    receiver.answers(503);
    await challenge(factor);
    await arrived(phone);
    await caller.delete(`${FACTORS}/${factor.id}`).expect(204);
    await eventually(async () => expect(lines.filter((line) => line.includes('was not sent while its code was of use'))).toHaveLength(1));
    receiver.answers(200);
  });

  it('wait for the webhook of no other environment', async () => {
    const silent: Server = createServer(() => {});
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    try {
      const webhook_url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
      await stuck.patch(SETTINGS, { sms: { webhook_url } }).expect(200);
      const asked = once(silent, 'request');
      for (const factor of [await enrol(number(), {}, stuck), await enrol(number(), {}, stuck)]) await challenge(factor, {}, stuck);
      await asked;
      const phone = number();
      await challenge(await enrol(phone));
      await arrived(phone);
    } finally {
      silent.closeAllConnections();
      silent.close();
    }
  });

  it('wait a second at most for that of another, however many of its texts are slow', async () => {
    const answers: (() => void)[] = [];
    let answered = 0;
    const slow: Server = createServer((_, response) => {
      const answer = (): void => void (response.end(), answered++);
      if (answers.push(answer) > 1) setTimeout(answer, 300);
    });
    await once(slow.listen(0, '127.0.0.1'), 'listening');
    try {
      const webhook_url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/`;
      await sluggish.patch(SETTINGS, { sms: { webhook_url } }).expect(200);
      const [first, ...others] = await Promise.all(Array.from({ length: 6 }, () => enrol(number(), {}, sluggish)));
      await challenge(first, {}, sluggish);
      await eventually(async () => expect(answers).toHaveLength(1));
      // All that is recorded meanwhile is older than that when the first one is through.
      for (const factor of others) await challenge(factor, {}, sluggish);
      const phone = number();
      await challenge(await enrol(phone));
      clock.forward(1_000);
      answers[0]!();
      await arrived(phone);
      expect(answered).toBeLessThan(6);
    } finally {
      slow.closeAllConnections();
      slow.close();
    }
  });
});

it('the receiver in the documents delivers what is signed, once', async () => {
  const [, example] = /```js\n([^]*?)```/.exec(readFileSync('docs/operations.md', 'utf8').split('## Second factors')[1]!)!;
  const folder = await mkdtemp(join(tmpdir(), 'sms-'));
  const file = join(folder, 'receiver.mjs');
  await writeFile(file, example!.replace(/\.listen\(.*\);/, ".listen(0, '127.0.0.1', function () { process.send(this.address().port); });"));
  const program = fork(file, { env: { ...environmentVariables(), SMS_WEBHOOK_SECRET: SECRET }, execArgv: [], silent: true });
  let said = '';
  program.stdout!.on('data', (text: Buffer) => (said += text.toString()));
  try {
    const [port] = (await once(program, 'message')) as [number];
    const phone = number();
    await challenge(await enrol(phone));
    const { text } = await arrived(phone);
    const { headers, body } = sentTo(phone)[0]!;
    const post = async (changed: string, at = String(Math.floor(Date.now() / 1_000))): Promise<number> => {
      const id = headers['webhook-id'] as string;
      const signature = new Webhook(SECRET).sign(id, new Date(Number(at) * 1_000), body);
      const signed = { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature };
      return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: changed, headers: signed })).status;
    };
    expect([await post(body), await post(body), await post(body.replace(phone, number())), await post(body, '1')]).toEqual([204, 204, 401, 401]);
    await eventually(async () => expect(said).toBe(`To ${phone}: ${text}\n`));
  } finally {
    program.kill();
    await rm(folder, { recursive: true });
  }
});

describe('a sign-in', () => {
  it('is finished by a code that is sent to the telephone', async () => {
    const client = { client_id, client_secret: caller.key };
    const ask = (body: Body) => caller.post('/user_management/authenticate', { ...client, ...body });
    const [{ id: user_id, email }, phone] = [await user({ password: PASSWORD }), number()];
    const factor = await enrol(phone, { user_id });
    const enrolment = await challenge(factor);
    await verify(enrolment.id, (await arrived(phone)).code).expect(201, { valid: true });
    await later(1);
    const asked = await ask({ grant_type: 'password', email, password: PASSWORD }).expect(403, { code: 'mfa_challenge' });
    expect(asked.authentication_factors).toEqual([{ id: factor.id, type: 'sms' }]);
    // Nothing is sent that nobody asked for.
    expect(asked).not.toHaveProperty('authentication_challenge');
    const old = await challenge(factor);
    const { code: oldCode } = await arrived(phone, 2);
    const { id } = await challenge(factor);
    const { code } = await arrived(phone, 3);
    const prove = (authentication_challenge_id: string, given: string) =>
      ask({
        grant_type: 'urn:workos:oauth:grant-type:mfa-totp',
        pending_authentication_token: asked.pending_authentication_token,
        ...{ authentication_challenge_id, code: given },
      });
    await prove(old.id, oldCode).expect(400, { code: 'one_time_code_expired' });
    await prove(id, otherThan(code)).expect(400, { code: 'invalid_one_time_code' });
    const { refresh_token } = await prove(id, code).expect(200, { user: { id: user_id }, authentication_method: 'Password' });
    expect((await prove(id, code).expect(200)).refresh_token).toBe(refresh_token);
  });
});

it('in production mode texts are sent by a webhook alone, and posted to no neighbour', async () => {
  const variables = {
    ...{ GATEHOUSE_MODE: 'production', MASTER_KEYS: Buffer.alloc(32, 1).toString('base64'), GATEHOUSE_API_KEY: `sk_${'k'.repeat(40)}` },
    ...{ PUBLIC_URL: 'https://id.acme.test', HOST: '127.0.0.1', OPERATIONS_PORT: '0' },
  };
  const production = await givenSuite({ variables });
  await production.patch(SETTINGS, { sms: { countries: ['DE'] } }).expect(200);
  await eventually(() =>
    production
      .post(`${FACTORS}/enroll`, { type: 'sms', phone_number: number() })
      .expect(422, { code: 'sms_not_available', message: expect.stringContaining('sms.webhook_url') }),
  );
  for (const webhook_url of ['https://10.0.0.1/sms', 'https://localhost/sms', 'http://acme.test/sms'])
    await production.patch(SETTINGS, { sms: { webhook_url } }).expect(422, { errors: [{ field: 'sms.webhook_url', code: 'invalid_url' }] });
});
