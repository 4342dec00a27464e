import { createHash, randomUUID } from 'node:crypto';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { GivenApplication } from '#libs/testing/src/given-application';
import type { ProductInProcess } from '#libs/testing/src/running-product';
import { proveFactor, sessionDecider } from '../domain/session.decider.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { DeviceCodes } from './device-codes.ts';
import { SessionIds } from './session-ids.ts';

const VERIFIER = 'a-verifier-of-forty-three-characters-or-more-1';
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url');
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';

type Body = Readonly<Record<string, unknown>>;

let application: GivenApplication;
let product: ProductInProcess;
let client_id: string;
beforeAll(async () => {
  application = await GivenApplication.open({ variables: { TRUSTED_PROXIES: '127.0.0.1/32' } });
  ({ product, client_id } = application);
});
afterAll(() => application.close());

const ask = (body: Body) => application.authenticate(body);
const askOpenly = (body: Body, headers?: Readonly<Record<string, string>>) =>
  application.send('POST', '/user_management/authenticate', { client_id, ...body }, { Authorization: 'none', ...headers });
const send = (method: string, path: string, body?: Body) => application.send(method, path, body);
const context = () => application.context();
const later = (milliseconds: number) => application.later(milliseconds);
const oauth = (error: string) => ({ status: 400, body: { error, error_description: expect.any(String), message: expect.any(String) } });

/** Somebody who has shown a password on a page: what the code stands for. */
async function authorized(fields: Body = {}) {
  const email = `${randomUUID()}@codes.test`;
  const { body: user } = await send('POST', '/user_management/users', { email, email_verified: true, ...fields });
  const session_id = await product.get(SessionIds).ofCommand(context());
  const about = { id: session_id, user_id: user.id, email, ip_address: '192.0.2.1', user_agent: 'Firefox', has_secret: false, credentials_version: 0 };
  await product.get(Repository).transact(sessionDecider, context(), session_id, proveFactor('password', about, null));
  return { client_id, session_id, user_id: user.id as string, chosen: null };
}

async function codeWith(challenge: string | null, fields?: Body) {
  const authorization = await authorized(fields);
  return { ...authorization, code: await product.get(AuthorizationCodes).issue(context(), authorization, challenge) };
}

describe('an authorization code', () => {
  const grant_type = 'authorization_code';

  it('is spent on the session that it names, which its client may ask for again for 30 seconds', async () => {
    const { code, session_id, user_id } = await codeWith(CHALLENGE);
    const first = await askOpenly({ grant_type, code, code_verifier: VERIFIER });
    expect(first).toMatchObject({ status: 200, body: { user: { id: user_id }, authentication_method: 'Password' } });
    const { sid } = JSON.parse(Buffer.from(first.body.access_token.split('.')[1], 'base64url').toString());
    expect(sid).toBe(session_id);
    expect((await askOpenly({ grant_type, code, code_verifier: VERIFIER })).body.refresh_token).toBe(first.body.refresh_token);
    // It began without a secret, and needs none.
    expect(await askOpenly({ grant_type: 'refresh_token', refresh_token: first.body.refresh_token })).toMatchObject({ status: 200 });
    await later(30_001);
    expect(await askOpenly({ grant_type, code, code_verifier: VERIFIER })).toEqual(oauth('invalid_grant'));
  });

  it('remembers the device by the network that trusted proxies tell of, not by what the client says: who fails elsewhere keeps nobody out there', async () => {
    const [email, password, user_agent] = [`${randomUUID()}@codes.test`, 'ride-a-giraffe-7', 'Mozilla/5.0 Firefox/130.0'];
    const { code } = await codeWith(CHALLENGE, { email, password });
    const connection = { 'X-Forwarded-For': '198.51.100.7, 2001:db8:1:2::7', 'User-Agent': user_agent };
    expect(await askOpenly({ grant_type, code, code_verifier: VERIFIER }, connection)).toMatchObject({ status: 200 });
    const withPassword = async (fields: Body) => (await ask({ grant_type: 'password', email, password, ...fields })).status;
    for (let failures = 0; failures < 10; failures++) expect(await withPassword({ password: 'ride-an-ostrich-8' })).toBe(400);
    await later(60_000);
    expect(await withPassword({ password: 'ride-an-ostrich-8' })).toBe(400);
    expect(await withPassword({ user_agent, ip_address: '198.51.100.7' })).toBe(429);
    expect(await withPassword({ user_agent, ip_address: '2001:db8:1:3::7' })).toBe(429);
    expect(await withPassword({ user_agent, ip_address: '2001:db8:1:2:ffff::1' })).toBe(200);
  });

  it('asks for what is still missing, as any other grant', async () => {
    const { code, user_id } = await codeWith(null);
    for (const name of ['One', 'Two']) {
      const { body } = await send('POST', '/organizations', { name });
      await send('POST', '/user_management/organization_memberships', { user_id, organization_id: body.id });
    }
    const more = await ask({ grant_type, code });
    expect(more).toMatchObject({ status: 403, body: { code: 'organization_selection_required', pending_authentication_token: expect.any(String) } });
  });

  it.each<[string, string | null, Body, object]>([
    ['is another', CHALLENGE, { code: 'x', code_verifier: VERIFIER }, oauth('invalid_grant')],
    ['has another verifier', CHALLENGE, { code_verifier: `${VERIFIER}x` }, oauth('invalid_grant')],
    ['has the challenge for a verifier', CHALLENGE, { code_verifier: CHALLENGE }, oauth('invalid_grant')],
    ['has no verifier', CHALLENGE, {}, oauth('invalid_request')],
    [
      'has a verifier without a challenge',
      null,
      { code_verifier: VERIFIER },
      { status: 400, body: { code: 'code_challenge_not_found', message: expect.any(String) } },
    ],
    ['is missing', CHALLENGE, { code: undefined }, oauth('invalid_request')],
    ['comes with a wrong secret', CHALLENGE, { code_verifier: VERIFIER, client_secret: 'sk_of_somebody_else_0123456789' }, oauth('invalid_client')],
  ])('is refused where it %s, and is good afterwards', async (_, challenge, wrong, refused) => {
    const { code } = await codeWith(challenge);
    expect(await ask({ grant_type, code, ...wrong })).toEqual(refused);
    expect(await ask({ grant_type, code, ...(challenge !== null && { code_verifier: VERIFIER }) })).toMatchObject({ status: 200 });
  });

  it('needs a verifier or a secret', async () => {
    const { code } = await codeWith(null);
    expect(await askOpenly({ grant_type, code })).toEqual(oauth('invalid_request'));
    const issued = { ...(await authorized()), client_id: 'client_of_another_application' };
    const foreign = await product.get(AuthorizationCodes).issue(context(), issued, CHALLENGE);
    expect(await ask({ grant_type, code: foreign, code_verifier: VERIFIER })).toEqual(oauth('invalid_grant'));
  });

  it('is worth nothing once the password was reset that it was shown for', async () => {
    const { code, user_id } = await codeWith(CHALLENGE);
    await later(1);
    const { body: user } = await send('GET', `/user_management/users/${user_id}`);
    const { body: reset } = await send('POST', '/user_management/password_reset', { email: user.email });
    const confirmed = { token: reset.password_reset_token, new_password: 'ride-a-giraffe-8' };
    expect(await send('POST', '/user_management/password_reset/confirm', confirmed)).toMatchObject({ status: 200 });
    await later(1);
    expect(await ask({ grant_type, code, code_verifier: VERIFIER })).toEqual(oauth('invalid_grant'));
  });

  it('gives its session to nobody again who is no active member any more', async () => {
    const { code, user_id } = await codeWith(CHALLENGE);
    const { body: acme } = await send('POST', '/organizations', { name: 'Acme' });
    const { body: membership } = await send('POST', '/user_management/organization_memberships', { user_id, organization_id: acme.id });
    const shown = { grant_type, code, code_verifier: VERIFIER };
    expect(await ask(shown)).toMatchObject({ status: 200, body: { organization_id: acme.id } });
    await send('PUT', `/user_management/organization_memberships/${membership.id}/deactivate`);
    expect(await ask(shown)).toEqual(oauth('invalid_grant'));
  });

  it('is worth nothing after ten minutes, and without its user', async () => {
    const [old, { code, user_id }] = [await codeWith(CHALLENGE), await codeWith(CHALLENGE)];
    await fetch(`${product.url}/user_management/users/${user_id}`, { method: 'DELETE', headers: { Authorization: `Bearer ${product.key}` } });
    expect(await ask({ grant_type, code, code_verifier: VERIFIER })).toEqual(oauth('invalid_grant'));
    await later(600_001);
    expect(await ask({ grant_type, code: old.code, code_verifier: VERIFIER })).toEqual(oauth('invalid_grant'));
  });
});

describe('a device code', () => {
  const poll = (device_code: string) => askOpenly({ grant_type: DEVICE, device_code });
  const issued = () => product.get(DeviceCodes).issue(context(), client_id);

  it('waits for its user, and is spent on the session that was begun elsewhere', async () => {
    const { deviceCode, userCode } = await issued();
    expect(userCode).toMatch(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/);
    expect(await poll(deviceCode)).toEqual(oauth('authorization_pending'));
    expect(await poll(deviceCode)).toEqual(oauth('slow_down'));
    await later(5_001);
    expect(await poll(deviceCode)).toEqual(oauth('authorization_pending'));
    const { client_id: _, ...authorization } = await authorized();
    const typed = userCode.toLowerCase().replace('-', ' ');
    expect(await product.get(DeviceCodes).decide(context(), typed, authorization)).toBe(true);
    expect(await product.get(DeviceCodes).decide(context(), typed, 'denied')).toBe(false);
    expect(await poll(deviceCode)).toMatchObject({ status: 200, body: { user: { id: authorization.user_id } } });
    await later(30_001);
    expect(await poll(deviceCode)).toEqual(oauth('invalid_grant'));
  });

  it('is refused where the user does not let it in, it is too late, or there is none', async () => {
    const [denied, late] = [await issued(), await issued()];
    expect(await product.get(DeviceCodes).decide(context(), denied.userCode, 'denied')).toBe(true);
    expect(await poll(denied.deviceCode)).toEqual(oauth('access_denied'));
    expect(await poll('x')).toEqual(oauth('invalid_grant'));
    expect(await askOpenly({ grant_type: DEVICE })).toEqual(oauth('invalid_request'));
    await later(300_001);
    expect(await poll(late.deviceCode)).toEqual(oauth('expired_token'));
    expect(await product.get(DeviceCodes).decide(context(), late.userCode, 'denied')).toBe(false);
  });
});
