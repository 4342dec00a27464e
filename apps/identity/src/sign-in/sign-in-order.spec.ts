import { randomUUID } from 'node:crypto';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { GivenApplication } from '#libs/testing/src/given-application';
import type { ProductInProcess } from '#libs/testing/src/running-product';
import { eventually } from '#libs/testing/src/until';
import { DeleteFactorsOfUnprovenAddresses } from '../authentication-factors/factor.reactions.ts';
import { codeOfStep, secretOfBase32, stepAt } from '../authentication-factors/totp.ts';
import { proveFactor, sessionDecider } from '../domain/session.decider.ts';
import { credentialsVersionOf, requireUser, userDecider } from '../domain/user.decider.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { SessionIds } from './session-ids.ts';
import { EndSessionsBeforePasswordResets, EndSessionsOfInactiveMemberships, EndSessionsOfUnprovenAddresses } from './session.reactions.ts';

const USERS = '/user_management/users';
const MEMBERSHIPS = '/user_management/organization_memberships';
const PASSWORD = 'ride-a-giraffe-7';
const MINUTE = 60_000;

type Body = Readonly<Record<string, unknown>>;

let application: GivenApplication;
let product: ProductInProcess;
let environment: string;
beforeAll(async () => {
  application = await GivenApplication.open();
  ({ product, environment } = application);
});
afterAll(() => application.close());

const done = (method: string, path: string, body?: Body) => application.done(method, path, body);
const ask = (body: Body) => application.authenticate(body);
const context = () => application.context();
const refresh = async (refresh_token: string) => (await ask({ grant_type: 'refresh_token', refresh_token })).status;
const codeFor = async (email: string): Promise<string> => (await done('POST', '/user_management/magic_auth', { email })).code;
const withCode = (email: string, code: string) => ask({ grant_type: 'urn:gatehouse:oauth:grant-type:magic-auth:code', email, code });
const signedIn = async (email: string) => {
  const { status, body } = await withCode(email, await codeFor(email));
  expect(status).toBe(200);
  const { sid } = JSON.parse(Buffer.from(body.access_token.split('.')[1], 'base64url').toString());
  return { sid: sid as string, refresh_token: body.refresh_token as string };
};
const user = async (): Promise<{ readonly id: string; readonly email: string }> =>
  done('POST', USERS, { email: `${randomUUID()}@order.test`, email_verified: true });
const sessionsOf = async (id: string): Promise<readonly string[]> => (await done('GET', `${USERS}/${id}/sessions`)).data.map((each: { id: string }) => each.id);
/** As another replica does it, whose clock is wrong by as much. The gateway hears meanwhile that its keys are still good. */
const elsewhere = async <Answer>(skew: number, work: () => Promise<Answer>): Promise<Answer> => {
  await application.later(skew);
  try {
    return await work();
  } finally {
    await application.later(-skew);
  }
};

/** A reaction comes to its events again: hours later, as after an outage, or with all that were ever recorded, as it does under a new name. */
const again = async (
  reaction: abstract new (...args: never[]) => { readonly handles: readonly string[]; react(event: never): Promise<void> },
  stream: string,
): Promise<void> => {
  const following = product.get(reaction);
  const records = (await product.events.read(stream)).filter(({ type }) => following.handles.includes(type));
  expect(records).not.toEqual([]);
  await elsewhere(3 * 60 * MINUTE, async () => {
    for (const record of records) await following.react(record as never);
  });
};
const endOf = async (sid: string): Promise<unknown> =>
  (await product.events.read(`session-${environment}-${sid}`)).find(({ type }) => type === 'session.revoked')?.data;

const reset = async (email: string) => {
  const { password_reset_token: token } = await done('POST', '/user_management/password_reset', { email });
  await done('POST', '/user_management/password_reset/confirm', { token, new_password: PASSWORD });
};

describe.each([
  ['behind', -5 * MINUTE],
  ['ahead', 5 * MINUTE],
])('a fact that a replica records whose clock is %s', (_, skew) => {
  it('a reset, ends the session before it and none after it', async () => {
    const { id, email } = await user();
    const before = await signedIn(email);
    await elsewhere(skew, () => reset(email));
    expect(await refresh(before.refresh_token)).toBe(400);
    const after = await signedIn(email);
    await eventually(async () => expect(await endOf(before.sid)).toMatchObject({ reason: 'password_reset' }));
    await again(EndSessionsBeforePasswordResets, `user-${environment}-${id}`);
    expect(await sessionsOf(id)).toEqual([after.sid]);
    expect(await refresh(after.refresh_token)).toBe(200);
  });

  it('a proof of the address, ends session and factor before it and none after it', async () => {
    const { id } = await user();
    const { email } = await done('GET', `${USERS}/${id}`);
    const enrol = async () => (await done('POST', `${USERS}/${id}/auth_factors`, { type: 'totp' })).authentication_factor.id;
    const factors = async () => (await done('GET', `${USERS}/${id}/auth_factors`)).data.map((each: { id: string }) => each.id);
    const before = await signedIn(email);
    const gone = await enrol();
    expect(await factors()).toEqual([gone]);
    const other = `${randomUUID()}@order.test`;
    await done('PUT', `${USERS}/${id}`, { email: other });
    const proving = await elsewhere(skew, () => signedIn(other));
    expect(await refresh(before.refresh_token)).toBe(400);
    expect(await factors()).toEqual([]);
    const [after, kept] = [await signedIn(other), await enrol()];
    await eventually(async () => expect(await endOf(before.sid)).toMatchObject({ reason: 'credentials_removed' }));
    for (const reaction of [EndSessionsOfUnprovenAddresses, DeleteFactorsOfUnprovenAddresses]) await again(reaction, `user-${environment}-${id}`);
    expect(await factors()).toEqual([kept]);
    expect([...(await sessionsOf(id))].sort()).toEqual([proving.sid, after.sid].sort());
    expect(await Promise.all([proving, after].map(({ refresh_token }) => refresh(refresh_token)))).toEqual([200, 200]);
  });

  it('a reset, voids the code before it and none after it', async () => {
    const { email } = await user();
    const code = await codeFor(email);
    await elsewhere(skew, () => reset(email));
    expect(await withCode(email, code)).toMatchObject({ status: 400, body: { code: 'invalid_one_time_code' } });
    await signedIn(email);
  });

  it('a reset, voids what a browser carries from before it and nothing from after it', async () => {
    const { id, email } = await user();
    const shown = async (): Promise<string> => {
      const session_id = await product.get(SessionIds).ofCommand(context());
      const known = credentialsVersionOf(requireUser(await product.get(Repository).load(userDecider, environment, id), id));
      const about = { id: session_id, user_id: id, email, ip_address: null, user_agent: null, has_secret: true, credentials_version: known };
      await product.get(Repository).transact(sessionDecider, context(), session_id, proveFactor('password', about, null));
      return product.get(AuthorizationCodes).issue(context(), { client_id: application.client_id, session_id, user_id: id, chosen: null }, null);
    };
    const before = await shown();
    await elsewhere(skew, () => reset(email));
    const after = await shown();
    const answers = await Promise.all([before, after].map((code) => ask({ grant_type: 'authorization_code', code })));
    expect(answers).toMatchObject([{ status: 400, body: { error: 'invalid_grant' } }, { status: 200 }]);
  });

  it('that a factor was verified, lets it count for what begins after it, and for nothing that began before', async () => {
    const { id, email } = await user();
    const codeOf = (secret: string): string => codeOfStep(secretOfBase32(secret)!, stepAt(application.clock.now()));
    const verified = () =>
      elsewhere(skew, async () => {
        const { authentication_factor: factor, authentication_challenge: challenge } = await done('POST', `${USERS}/${id}/auth_factors`, { type: 'totp' });
        expect(await done('POST', `/auth/challenges/${challenge.id}/verify`, { code: codeOf(factor.totp.secret) })).toMatchObject({ valid: true });
        return { id: factor.id as string, secret: factor.totp.secret as string };
      });
    const begun = async (code?: string) => {
      const { body } = await withCode(email, code ?? (await codeFor(email)));
      return { token: body.pending_authentication_token, factors: body.authentication_factors.map((each: { id: string }) => each.id) };
    };
    const prove = async (token: string, { id: factor, secret }: { readonly id: string; readonly secret: string }) => {
      const { id: authentication_challenge_id } = await done('POST', `/auth/factors/${factor}/challenge`);
      const shown = { pending_authentication_token: token, authentication_challenge_id, code: codeOf(secret) };
      return ask({ grant_type: 'urn:gatehouse:oauth:grant-type:mfa-totp', ...shown });
    };
    const own = await verified();
    const code = await codeFor(email);
    const before = await begun(code);
    const other = await verified();
    // Who heard no answer goes on as what began.
    const again = await begun(code);
    expect([before.factors, again.factors]).toEqual([[own.id], [own.id]]);
    for (const { token } of [before, again]) expect(await prove(token, other)).toMatchObject({ status: 400, body: { code: 'invalid_one_time_code' } });
    expect(await prove(before.token, own)).toMatchObject({ status: 200 });
    // Nor once the session has begun, while whoever heard no answer may ask again.
    expect(await prove(again.token, other)).toMatchObject({ status: 400, body: { code: 'invalid_one_time_code' } });
    expect((await begun()).factors).toEqual([own.id, other.id]);
  });

  it('that a member is inactive, ends the session before it and none that began since they are active again', async () => {
    const { id, email } = await user();
    const { id: acme } = await done('POST', '/organizations', { name: 'Acme' });
    const { id: membership } = await done('POST', MEMBERSHIPS, { user_id: id, organization_id: acme });
    const [before, unused] = [await signedIn(email), await signedIn(email)];
    await elsewhere(skew, () => done('PUT', `${MEMBERSHIPS}/${membership}/deactivate`));
    await done('PUT', `${MEMBERSHIPS}/${membership}/reactivate`);
    // Whether the reaction was there already or not.
    expect(await refresh(before.refresh_token)).toBe(400);
    const after = await signedIn(email);
    await eventually(async () => expect(await endOf(unused.sid)).toMatchObject({ reason: 'membership_inactive' }));
    await again(EndSessionsOfInactiveMemberships, `organization_membership-${environment}-${acme}.${id}`);
    expect(await sessionsOf(id)).toEqual([after.sid]);
    expect(await refresh(after.refresh_token)).toBe(200);
  });
});
