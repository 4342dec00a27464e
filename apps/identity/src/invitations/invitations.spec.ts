import { randomUUID } from 'node:crypto';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const INVITATIONS = '/user_management/invitations';
const MEMBERSHIPS = '/user_management/organization_memberships';
const USERS = '/user_management/users';
const DAY = 24 * 60 * 60_000;

let suite: GivenSuite;
let clock: SettableClock;
/** Another environment. */
let elsewhere: Awaited<ReturnType<GivenSuite['otherEnvironment']>>;
beforeAll(async () => {
  clock = new SettableClock(Date.now());
  suite = await givenSuite({ clock, variables: { APPLICATION_URL: 'https://app.acme.test' } });
  elsewhere = await suite.otherEnvironment();
});

/** Time goes on, and the gateway hears from the log that its keys are still good. */
const later = async (milliseconds: number): Promise<void> => {
  clock.forward(milliseconds);
  await eventually(() => suite.get('/organizations').expect(200));
};
const address = (): string => `${randomUUID()}@invited.test`;
const organization = async (): Promise<string> => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
const user = async (fields: object = {}) => suite.post(USERS, { email: address(), ...fields }).expect(201);
const invite = (fields: object = {}) => suite.post(INVITATIONS, { email: address(), ...fields });
const invited = (fields: object = {}) => invite(fields).expect(201);
const accept = (id: string) => suite.post(`${INVITATIONS}/${id}/accept`);
const revoke = (id: string) => suite.post(`${INVITATIONS}/${id}/revoke`);
const resend = (id: string, body?: object) => suite.post(`${INVITATIONS}/${id}/resend`, body);
const membershipsOf = async (user_id: string) => (await suite.get(`${MEMBERSHIPS}?user_id=${user_id}&statuses=active,inactive,pending`).expect(200)).data;
const eventsAbout = async (...ids: readonly string[]) =>
  (await suite.records()).filter(({ data }) => ids.includes((data as { id?: string }).id ?? '')).flatMap((record) => record.public.map(({ name }) => name));
const withoutToken = ({ token: _, accept_invitation_url: _url, ...shown }: Record<string, unknown>) => shown;

describe('an invitation', () => {
  it('is sent to an address, with a link that comes from the settings', async () => {
    const inviter = await user();
    const email = address();
    const made = await suite.post(INVITATIONS, { email: email.toUpperCase(), inviter_user_id: inviter.id }, { Host: 'evil.test' }).expect(201);
    expect(made).toEqual({
      ...{ object: 'invitation', id: expect.stringMatching(/^invitation_/), email, state: 'pending', accepted_at: null, revoked_at: null },
      ...{ organization_id: null, inviter_user_id: inviter.id, accepted_user_id: null, role_slug: null },
      ...{ token: expect.any(String), accept_invitation_url: `https://app.acme.test/invite?invitation_token=${made.token}` },
      ...{ created_at: expect.any(String), updated_at: made.created_at, expires_at: new Date(Date.parse(made.created_at) + 7 * DAY).toISOString() },
    });
    expect((await suite.records('invitation.created')).at(-1)!.subject).toEqual(withoutToken(made));
    expect(await suite.get(`${INVITATIONS}/${made.id}`).expect(200)).toEqual(made);
    expect(await suite.get(`${INVITATIONS}/by_token/${made.token}`).expect(200)).toEqual(made);
  });

  it.each([
    [{ expires_in_days: 0 }, 400, 'expires_in_days_too_short'],
    [{ expires_in_days: 31 }, 400, 'expires_in_days_too_long'],
    [{ expires_in_days: 1.5 }, 422, 'invalid_request_parameters'],
    [{ role_slug: 'admin' }, 422, 'invalid_request_parameters'],
    [{ email: 'nobody' }, 422, 'invalid_request_parameters'],
    [{ locale: 'tlh' }, 422, 'invalid_request_parameters'],
    [{ organization_id: 'org_01HZZZZZZZZZZZZZZZZZZZZZZ1' }, 404, 'entity_not_found'],
    [{ inviter_user_id: 'user_01HZZZZZZZZZZZZZZZZZZZZZZ1' }, 404, 'entity_not_found'],
  ])('with %j is answered %s %s', async (fields, status, code) => {
    await invite(fields).expect(status, { code });
  });

  it('names a role that the organization has for its members', async () => {
    const organization_id = await organization();
    const made = await invited({ organization_id, role_slug: 'admin', expires_in_days: 30, locale: 'de' });
    expect(made).toMatchObject({ organization_id, role_slug: 'admin', expires_at: new Date(Date.parse(made.created_at) + 30 * DAY).toISOString() });
    await invite({ organization_id, role_slug: 'nobody' }).expect(400, { code: 'invalid_role', role_slug: 'nobody' });
  });

  it('is neither sent nor sent again for an organization that may not invite, and what is out goes on working', async () => {
    const organization_id = await organization();
    const [out, other] = [await invited({ organization_id }), await organization()];
    const policyOf = (invitations: string) => suite.patch(`/admin/organizations/${organization_id}/authentication_policy`, { invitations }).expect(200);
    await policyOf('blocked');
    const refused = { code: 'organization_blocked_from_sending_invites' };
    await invite({ organization_id }).expect(400, refused);
    await resend(out.id).expect(400, refused);
    for (const elsewhere_id of [other, undefined]) await invited({ organization_id: elsewhere_id });
    await user({ email: out.email });
    await accept(out.id).expect(200, { state: 'accepted' });
    await policyOf('allowed');
    await invited({ organization_id });
  });

  it('is open once for an address in an organization, however it is spelled, and once beside that', async () => {
    const [email, organization_id, other] = [address(), await organization(), await organization()];
    const first = await invited({ email, organization_id });
    await invite({ email: email.toUpperCase(), organization_id }).expect(400, { code: 'email_already_invited_to_organization' });
    await invited({ email, organization_id: other });
    await invited({ email });
    await later(60_000);
    await invite({ email }).expect(400, { code: 'email_already_invited' });
    await revoke(first.id).expect(200);
    await invited({ email, organization_id });
  });

  it('is one of all that are sent at once', async () => {
    const [email, organization_id] = [address(), await organization()];
    const answers = await Promise.all([1, 2, 3].map(() => invite({ email, organization_id })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 400, 400]);
  });

  it('is not sent to somebody who is there already', async () => {
    const [{ id: user_id, email }, organization_id] = [await user(), await organization()];
    await invite({ email }).expect(400, { code: 'user_already_exists' });
    const { id } = await suite.post(MEMBERSHIPS, { organization_id, user_id }).expect(201);
    await invite({ email, organization_id }).expect(400, { code: 'user_already_organization_member' });
    await suite.put(`${MEMBERSHIPS}/${id}/deactivate`).expect(200);
    await invite({ email, organization_id }).expect(400, { code: 'user_already_organization_member' });
  });

  it('is sent three times in a minute to one address', async () => {
    const email = address();
    const { id } = await invited({ email });
    await resend(id).expect(200);
    await resend(id).expect(200);
    await resend(id).expect(429, { code: 'rate_limit_exceeded' });
    await later(60_000);
    await resend(id).expect(200);
  });

  it('is found in lists, by organization, by address, by both', async () => {
    const [email, organization_id] = [address(), await organization()];
    const one = await invited({ email, organization_id });
    const two = await invited({ organization_id });
    const three = await invited({ email });
    const ids = async (query: string) => (await suite.get(`${INVITATIONS}?${query}`).expect(200)).data.map(({ id }: { id: string }) => id);
    expect(await ids(`organization_id=${organization_id}`)).toEqual([two.id, one.id]);
    expect(await ids(`organization_id=${organization_id}&order=asc&limit=1`)).toEqual([one.id]);
    expect(await ids(`organization_id=${organization_id}&order=asc&limit=1&after=${one.id}`)).toEqual([two.id]);
    expect(await ids(`email=${encodeURIComponent(email.toUpperCase())}`)).toEqual([three.id, one.id]);
    expect(await ids(`email=${encodeURIComponent(email)}&organization_id=${organization_id}`)).toEqual([one.id]);
    expect(await ids('limit=1')).toEqual([three.id]);
    const { data } = await suite.get(`${INVITATIONS}?organization_id=${organization_id}&limit=1`).expect(200);
    expect(data).toEqual([two]);
    await suite.get(`${INVITATIONS}?after=user_01HZZZZZZZZZZZZZZZZZZZZZZ1`).expect(422);
  });

  it('is not there for another environment, nor by another token', async () => {
    const { id, token } = await invited();
    await elsewhere.get(`${INVITATIONS}/${id}`).expect(404);
    for (const wrong of [`${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`, 'x', token.toLowerCase()]) {
      const { status, text } = await suite.get(`${INVITATIONS}/by_token/${wrong}`);
      expect([status, text.includes(wrong) && wrong.length > 1]).toEqual([404, false]);
    }
    await elsewhere.get(`${INVITATIONS}/by_token/${token}`).expect(404);
    for (const verb of ['accept', 'resend', 'revoke']) await elsewhere.post(`${INVITATIONS}/${id}/${verb}`).expect(404);
  });
});

describe('an invitation that is sent again', () => {
  it('has another token, and works as long as at first', async () => {
    const made = await invited();
    await later(DAY);
    const again = await resend(made.id, { locale: 'de' }).expect(200);
    expect(again).toMatchObject({ id: made.id, state: 'pending', created_at: made.created_at });
    expect(Date.parse(again.expires_at) - Date.parse(made.expires_at)).toBeGreaterThanOrEqual(DAY);
    expect(again.token).not.toBe(made.token);
    await suite.get(`${INVITATIONS}/by_token/${made.token}`).expect(404);
    await suite.get(`${INVITATIONS}/by_token/${again.token}`).expect(200, { id: made.id });
    expect(await eventsAbout(made.id)).toEqual(['invitation.created', 'invitation.resent']);
  });

  it('is refused once it has ended', async () => {
    const [revoked, over, { email }] = [await invited(), await invited({ expires_in_days: 1 }), await user()];
    await revoke(revoked.id).expect(200, { state: 'revoked', revoked_at: expect.any(String) });
    const accepted = await invited({ email, organization_id: await organization() });
    await accept(accepted.id).expect(200);
    await later(DAY);
    await resend(revoked.id).expect(400, { code: 'invite_revoked' });
    await resend(over.id).expect(400, { code: 'invite_expired' });
    await resend(accepted.id).expect(400, { code: 'invite_accepted' });
    for (const { id } of [revoked, over, accepted]) await revoke(id).expect(400, { code: 'invite_not_pending' });
    await accept(over.id).expect(400, { code: 'invite_not_pending' });
  });
});

describe('an invitation that is accepted', () => {
  it('makes a member of whoever has the address, with its role, and verifies nothing', async () => {
    const [email, organization_id] = [address(), await organization()];
    const made = await invited({ email, organization_id, role_slug: 'admin' });
    await accept(made.id).expect(400, { code: 'invalid_invite' });
    const { id: user_id } = await user({ email });
    const answer = await accept(made.id).expect(200);
    expect(answer).toEqual({ ...made, state: 'accepted', accepted_user_id: user_id, accepted_at: expect.any(String), updated_at: answer.accepted_at });
    const [membership] = await membershipsOf(user_id);
    expect(membership).toMatchObject({ organization_id, status: 'active', role: { slug: 'admin' } });
    expect(await suite.get(`${USERS}/${user_id}`).expect(200)).toMatchObject({ email_verified: false });
    await accept(made.id).expect(400, { code: 'invite_has_accepted_user_id' });
    expect(await eventsAbout(made.id, membership.id)).toEqual(['invitation.created', 'invitation.accepted', 'organization_membership.created']);
    expect(await suite.get(`${INVITATIONS}/by_token/${made.token}`).expect(200)).toMatchObject({ state: 'accepted' });
  });

  it('to no organization makes no member', async () => {
    const email = address();
    const made = await invited({ email });
    const { id } = await user({ email });
    await accept(made.id).expect(200, { state: 'accepted', accepted_user_id: id });
    expect(await membershipsOf(id)).toEqual([]);
  });

  it('was that of a pending member, who is an active one from then on', async () => {
    const [{ id: user_id, email }, organization_id] = [await user(), await organization()];
    const made = await invited({ email, organization_id, role_slug: 'admin' });
    const [pending] = await membershipsOf(user_id);
    expect(pending).toMatchObject({ organization_id, status: 'pending', role: { slug: 'admin' } });
    await suite.put(`${MEMBERSHIPS}/${pending.id}/deactivate`).expect(400, { code: 'cannot_deactivate_pending_organization_membership' });
    await suite.put(`${MEMBERSHIPS}/${pending.id}/reactivate`).expect(400, { code: 'cannot_reactivate_pending_organization_membership' });
    await suite.post(MEMBERSHIPS, { user_id, organization_id }).expect(400, { code: 'cannot_reactivate_pending_organization_membership' });
    expect((await suite.get(`${MEMBERSHIPS}?user_id=${user_id}`).expect(200)).data).toEqual([]);
    expect((await suite.get(`${USERS}?organization_id=${organization_id}`).expect(200)).data).toEqual([]);
    await accept(made.id).expect(200);
    expect(await membershipsOf(user_id)).toMatchObject([{ id: pending.id, status: 'active' }]);
    expect(await eventsAbout(made.id, pending.id)).toEqual([
      ...['invitation.created', 'organization_membership.created', 'invitation.accepted', 'organization_membership.updated'],
    ]);
  });

  it('reactivates nobody who is suspended', async () => {
    const [email, organization_id] = [address(), await organization()];
    const made = await invited({ email, organization_id });
    const { id: user_id } = await user({ email });
    const { id } = await suite.post(MEMBERSHIPS, { organization_id, user_id }).expect(201);
    await suite.put(`${MEMBERSHIPS}/${id}/deactivate`).expect(200);
    await accept(made.id).expect(400, { code: 'invalid_invite' });
    expect(await membershipsOf(user_id)).toMatchObject([{ id, status: 'inactive' }]);
  });

  it('is accepted once, by all that ask at once', async () => {
    const [{ id: user_id, email }, organization_id] = [await user(), await organization()];
    const { id } = await invited({ email, organization_id });
    const answers = await Promise.all([1, 2, 3].map(() => accept(id)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400]);
    expect(await membershipsOf(user_id)).toHaveLength(1);
  });

  it('leaves the membership to whoever deletes it afterwards', async () => {
    const [{ id: user_id, email }, organization_id] = [await user(), await organization()];
    const { id } = await invited({ email, organization_id });
    await accept(id).expect(200);
    const [membership] = await membershipsOf(user_id);
    await suite.delete(`${MEMBERSHIPS}/${membership.id}`).expect(200);
    await suite.restart();
    expect(await membershipsOf(user_id)).toEqual([]);
    await suite.get(`${INVITATIONS}/${id}`).expect(200, { state: 'accepted' });
  });
});

describe('a pending membership', () => {
  const pendingOne = async (fields: object = {}) => {
    const [{ id: user_id, email }, organization_id] = [await user(), await organization()];
    const invitation = await invited({ email, organization_id, ...fields });
    const [membership] = await membershipsOf(user_id);
    return { user_id, email, organization_id, invitation, membership };
  };

  it('ends with the invitation that is revoked', async () => {
    const { user_id, invitation, membership } = await pendingOne();
    await revoke(invitation.id).expect(200);
    expect(await membershipsOf(user_id)).toEqual([]);
    expect(await eventsAbout(invitation.id, membership.id)).toEqual([
      ...['invitation.created', 'organization_membership.created', 'invitation.revoked', 'organization_membership.deleted'],
    ]);
  });

  it('ends with the invitation whose time is over', async () => {
    const { user_id, email, organization_id, invitation } = await pendingOne({ expires_in_days: 1 });
    await later(DAY);
    await suite.get(`${INVITATIONS}/${invitation.id}`).expect(200, { state: 'expired' });
    await suite.get(`${INVITATIONS}/by_token/${invitation.token}`).expect(200, { state: 'expired' });
    // What is due is looked for as soon as it runs.
    await suite.restart();
    await eventually(async () => expect(await membershipsOf(user_id)).toEqual([]));
    expect(await eventsAbout(invitation.id)).toEqual(['invitation.created']);
    await invited({ email, organization_id });
    expect(await membershipsOf(user_id)).toMatchObject([{ status: 'pending' }]);
  });

  it('takes its invitation along when it is deleted', async () => {
    const { invitation, membership } = await pendingOne();
    await suite.delete(`${MEMBERSHIPS}/${membership.id}`).expect(200);
    await suite.eventually(`${INVITATIONS}/${invitation.id}`, { state: 'revoked' });
  });

  it('ends with its user, and the invitation with it', async () => {
    const { user_id, email, organization_id, invitation } = await pendingOne();
    await suite.delete(`${USERS}/${user_id}`).expect(200);
    await suite.eventually(`${INVITATIONS}/${invitation.id}`, { state: 'revoked', email });
    await invited({ email, organization_id });
  });

  it('ends with its organization, of which no invitation is left', async () => {
    const { organization_id, invitation, membership } = await pendingOne();
    const { id } = await invited({ organization_id });
    await suite.delete(`/organizations/${organization_id}`).expect(202);
    await suite.get(`${INVITATIONS}/${invitation.id}`).expect(404);
    await suite.get(`${INVITATIONS}/by_token/${invitation.token}`).expect(404);
    for (const verb of ['accept', 'resend', 'revoke']) await suite.post(`${INVITATIONS}/${id}/${verb}`).expect(404);
    expect((await suite.get(`${INVITATIONS}?organization_id=${organization_id}`).expect(200)).data).toEqual([]);
    await eventually(async () =>
      expect(await eventsAbout(invitation.id, id, membership.id)).toEqual(expect.arrayContaining(['organization_membership.deleted'])),
    );
    await eventually(async () => expect((await eventsAbout(invitation.id, id)).filter((name) => name === 'invitation.revoked')).toHaveLength(2));
  });
});

describe('the address of an invitation', () => {
  it('is sealed for whoever has it, and in clear nowhere in the log', async () => {
    const { email } = await user();
    const [known, unknown] = [await invited({ email, organization_id: await organization() }), await invited()];
    const sealed = (await suite.records('invitation.created')).filter(({ data }) => [known.id, unknown.id].includes((data as { id: string }).id));
    expect(sealed.map((record) => record.sealed!.map(({ of }) => of.slice(0, 11)))).toEqual([['user.user_0'], ['invitation.']]);
  });

  it('is gone with the user who is erased, whether they accepted it or not', async () => {
    const email = address();
    const [accepted, open] = [await invited({ email, organization_id: await organization() }), await invited({ email, organization_id: await organization() })];
    const { id } = await user({ email });
    await accept(accepted.id).expect(200);
    await suite.post(`/admin/users/${id}/erasure`).expect(202);
    await suite.eventually(`${INVITATIONS}/${accepted.id}`, { email: '', state: 'accepted' });
    await suite.eventually(`${INVITATIONS}/${open.id}`, { email: '', state: 'revoked' });
    expect((await suite.get(`${INVITATIONS}?email=${encodeURIComponent(email)}`).expect(200)).data).toEqual([]);
    await eventually(async () => {
      const facts = (await suite.records('invitation.created')).filter(({ data }) => [accepted.id, open.id].includes((data as { id: string }).id));
      expect(facts.map(({ data, subject }) => [(data as { email: unknown }).email, (subject as { email: unknown }).email])).toEqual([
        [null, null],
        [null, null],
      ]);
    });
    await invited({ email });
  });

  it('stays that of somebody else who has it by now', async () => {
    const [email, other] = [address(), address()];
    const open = await invited({ email });
    const { id } = await user({ email });
    await suite.put(`${USERS}/${id}`, { email: other }).expect(200);
    await user({ email });
    await suite.post(`/admin/users/${id}/erasure`).expect(202);
    await suite.get(`${INVITATIONS}/${open.id}`).expect(200, { email, state: 'pending' });
  });
});
