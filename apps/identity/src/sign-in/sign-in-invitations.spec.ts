import { randomUUID } from 'node:crypto';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const MEMBERSHIPS = '/user_management/organization_memberships';
const USERS = '/user_management/users';
const INVITATIONS = '/user_management/invitations';
const MAGIC = '/user_management/magic_auth';
const PASSWORD = 'ride-a-giraffe-7';
const urn = (name: string): string => `urn:workos:oauth:grant-type:${name}`;

let suite: GivenSuite;
let clock: SettableClock;
let client_id: string;
beforeAll(async () => {
  clock = new SettableClock(Date.now());
  suite = await givenSuite({ clock });
  client_id = await suite.clientIdOf(suite);
});

const later = async (milliseconds: number): Promise<void> => {
  clock.forward(milliseconds);
  await eventually(() => suite.get('/organizations').expect(200));
};
const address = (): string => `${randomUUID()}@invited.test`;
const ask = (body: object) => suite.post('/user_management/authenticate', { client_id, client_secret: suite.key, ...body });
const organization = async (): Promise<string> => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
const user = async (fields: object = {}) => suite.post(USERS, { email: address(), email_verified: true, ...fields }).expect(201);
const invited = (fields: object) => suite.post(INVITATIONS, fields).expect(201);
const membershipsOf = async (id: string) => (await suite.get(`${MEMBERSHIPS}?user_id=${id}&statuses=active,inactive,pending`).expect(200)).data;
const codeFor = async (email: string, more: object = {}): Promise<string> => (await suite.post(MAGIC, { email, ...more }).expect(201)).code;
const withCode = async (email: string, more: object) => ask({ grant_type: urn('magic-auth:code'), email, code: await codeFor(email), ...more });
const withPassword = (email: string, more: object) => ask({ grant_type: 'password', email, password: PASSWORD, ...more });
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString());
const oauth = (error: string) => ({ error, error_description: expect.any(String), message: expect.any(String) });

describe('a sign-in with an invitation', () => {
  it('accepts it, and begins in its organization, whatever else the user is a member of', async () => {
    const [{ id, email }, organization_id, other] = [await user({ password: PASSWORD }), await organization(), await organization()];
    await suite.post(MEMBERSHIPS, { user_id: id, organization_id: other }).expect(201);
    const { id: invitation, token } = await invited({ email, organization_id, role_slug: 'admin' });
    const { access_token } = await withPassword(email, { invitation_token: token }).expect(200, { organization_id });
    expect(claimsOf(access_token)).toMatchObject({ org_id: organization_id, role: 'admin' });
    await suite.get(`${INVITATIONS}/${invitation}`).expect(200, { state: 'accepted', accepted_user_id: id });
    expect((await membershipsOf(id)).map(({ status }: { status: string }) => status)).toEqual(['active', 'active']);
    const names = (await suite.records())
      .filter(({ subject }) => [id, invitation].includes((subject as { user_id?: string; id?: string })?.user_id ?? (subject as { id?: string })?.id ?? ''))
      .flatMap((record) => record.public.map(({ name }) => name));
    expect(names.slice(-4)).toEqual(['invitation.accepted', 'organization_membership.updated', 'authentication.password_succeeded', 'session.created']);
  });

  it('may be the first of its user, who then need not choose', async () => {
    const [email, organization_id] = [address(), await organization()];
    const { token } = await invited({ email, organization_id });
    const { user: signed } = await (await withCode(email, { invitation_token: token })).body;
    expect(await membershipsOf(signed.id)).toMatchObject([{ organization_id, status: 'active' }]);
  });

  it('keeps it while more is asked for, and verifies the address by mail alone', async () => {
    const [{ id, email }, organization_id] = [await user({ password: PASSWORD, email_verified: false }), await organization()];
    const { id: invitation, token } = await invited({ email, organization_id });
    const { pending_authentication_token, email_verification_id } = await withPassword(email, { invitation_token: token }).expect(403, {
      code: 'email_verification_required',
    });
    await suite.get(`${INVITATIONS}/${invitation}`).expect(200, { state: 'pending' });
    expect(await membershipsOf(id)).toMatchObject([{ status: 'pending' }]);
    const { code } = await suite.get(`/user_management/email_verification/${email_verification_id}`).expect(200);
    await ask({ grant_type: urn('email-verification:code'), code, pending_authentication_token }).expect(200, { organization_id });
    await suite.get(`${INVITATIONS}/${invitation}`).expect(200, { state: 'accepted', accepted_user_id: id });
  });

  it('does not begin once that was revoked while more was asked for', async () => {
    const { email } = await user({ password: PASSWORD, email_verified: false });
    const { id: invitation, token } = await invited({ email, organization_id: await organization() });
    const { pending_authentication_token, email_verification_id } = await withPassword(email, { invitation_token: token }).expect(403);
    await suite.post(`${INVITATIONS}/${invitation}/revoke`).expect(200);
    const { code } = await suite.get(`/user_management/email_verification/${email_verification_id}`).expect(200);
    const answer = await ask({ grant_type: urn('email-verification:code'), code, pending_authentication_token });
    expect([answer.status, answer.body]).toEqual([400, oauth('invitation_invalid')]);
  });

  it('accepts none whose organization asks for more than was shown', async () => {
    const [{ email }, organization_id] = [await user({ password: PASSWORD }), await organization()];
    await suite.patch(`/admin/organizations/${organization_id}/authentication_policy`, { mfa: 'required' }).expect(200);
    const { id, token } = await invited({ email, organization_id });
    await withPassword(email, { invitation_token: token }).expect(403, { code: 'mfa_enrollment' });
    await suite.get(`${INVITATIONS}/${id}`).expect(200, { state: 'pending' });
  });

  it('may be asked for again by a client that heard no answer', async () => {
    const [email, organization_id] = [address(), await organization()];
    const { token: invitation_token } = await invited({ email, organization_id });
    const shown = { grant_type: urn('magic-auth:code'), email, code: await codeFor(email), invitation_token };
    const first = await ask(shown).expect(200);
    const again = await ask(shown).expect(200);
    expect(claimsOf(again.access_token).sid).toBe(claimsOf(first.access_token).sid);
    await later(30_001);
    const { status, body } = await ask(shown);
    expect([status, body]).toEqual([400, oauth('invitation_invalid')]);
  });

  it.each(['password', 'code'])('is refused with a wrong one before anything is compared, and spends nothing: by %s', async (by) => {
    const { id: user_id, email } = await user({ password: PASSWORD });
    const organization_id = await organization();
    const made = await invited({ email, organization_id });
    const { token: theirs } = await invited({ email: address(), organization_id });
    const { token: present } = await suite.post(`${INVITATIONS}/${made.id}/resend`).expect(200);
    const code = by === 'code' ? await codeFor(email) : '';
    const signIn = (invitation_token: string) =>
      by === 'code' ? ask({ grant_type: urn('magic-auth:code'), email, code, invitation_token }) : withPassword(email, { invitation_token });
    for (const [token, error] of [
      [made.token, 'invitation_invalid'],
      ['x', 'invitation_invalid'],
      [theirs, 'invitation_cannot_be_used_for_email'],
    ] as const) {
      const { status, body } = await signIn(token);
      expect([status, body]).toEqual([400, oauth(error)]);
    }
    expect(await membershipsOf(user_id)).toMatchObject([{ status: 'pending' }]);
    await signIn(present).expect(200, { organization_id });
  });

  it('is refused once that has ended', async () => {
    const { email } = await user({ password: PASSWORD });
    const gone = await organization();
    const [over, dead] = [await invited({ email, organization_id: await organization(), expires_in_days: 1 }), await invited({ email, organization_id: gone })];
    await suite.delete(`/organizations/${gone}`).expect(202);
    await later(24 * 60 * 60_000);
    for (const { token } of [over, dead]) {
      const { status, body } = await withPassword(email, { invitation_token: token });
      expect([status, body]).toEqual([400, oauth('invitation_invalid')]);
    }
  });

  it('lets nobody in who is suspended', async () => {
    const [email, organization_id] = [address(), await organization()];
    const { token } = await invited({ email, organization_id });
    const { id } = await user({ email, password: PASSWORD });
    const membership = await suite.post(MEMBERSHIPS, { user_id: id, organization_id }).expect(201);
    await suite.put(`${MEMBERSHIPS}/${membership.id}/deactivate`).expect(200);
    const { status, body } = await withPassword(email, { invitation_token: token });
    expect([status, body]).toEqual([400, oauth('invitation_invalid')]);
    expect(await membershipsOf(id)).toMatchObject([{ status: 'inactive' }]);
  });
});

describe('a code by mail, where nobody may sign up', () => {
  beforeAll(() => suite.patch('/admin/environment_settings', { sign_up: false }).expect(200));
  afterAll(() => suite.patch('/admin/environment_settings', { sign_up: true }).expect(200));

  it('is for whoever was invited', async () => {
    const email = address();
    await suite.post(MAGIC, { email }).expect(400);
    const { token: invitation_token } = await invited({ email });
    const { user_id } = await suite.post(MAGIC, { email, invitation_token }).expect(201);
    await suite.get(`${USERS}/${user_id}`).expect(200, { email, email_verified: false });
  });

  it('is not for others who know the invitation', async () => {
    const { token: invitation_token } = await invited({ email: address() });
    for (const token of [invitation_token, 'x']) {
      const { status, body } = await suite.post(MAGIC, { email: address(), invitation_token: token });
      expect([status, body]).toEqual([400, oauth('invitation_invalid')]);
    }
  });
});
