import type { Fact } from '#libs/event-sourcing/src/deciding/decider';
import type { SealedPart } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { newUlid } from '#libs/platform/src/ids';
import { PinoLog } from '#libs/platform/src/pino.log';
import { Caller } from '#libs/testing/src/suite';
import { ProductInProcess } from '#libs/testing/src/running-product';
import { eventually } from '#libs/testing/src/until';
import { membershipKey } from './domain/membership.decider.ts';

// What is checked when a command is asked may be gone when it is recorded: here it is recorded as by a command that was slow.
describe('what is recorded under something that was deleted a moment before', () => {
  let product: ProductInProcess;
  let suite: Caller;
  let environment: string;
  let users = 0;
  beforeAll(async () => {
    product = await ProductInProcess.open({ variables: {}, log: new PinoLog({ level: 'silent', readable: false }) });
    suite = new Caller(() => product.url, product.key);
    const { id } = await suite.post('/organizations', { name: 'First' }).expect(201);
    for await (const batch of product.events.subscribe('', new AbortController().signal)) {
      const first = batch.find(({ stream }) => stream.endsWith(id));
      if (first === undefined) continue;
      ({ environment } = first.meta);
      break;
    }
  });
  afterAll(() => product.close());

  const organization = async (): Promise<string> => (await suite.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const user = async (): Promise<string> => (await suite.post('/user_management/users', { email: `ada${users++}@acme.test` }).expect(201)).id;
  const join = async (organization_id: string, fields: object = {}) =>
    suite.post('/user_management/organization_memberships', { organization_id, user_id: await user(), ...fields }).expect(201);
  const fresh = (prefix: string): string => `${prefix}_${newUlid(Date.now())}`;

  async function record(category: string, key: string, organizationId: string, fact: Fact, sealed: readonly SealedPart[] = []): Promise<void> {
    const stream = streamName(category, environment, key);
    const id = newUlid(Date.now());
    const meta = {
      environment,
      organization: organizationId,
      actor: { id: 'system', source: 'system', name: null },
      requestId: id,
      commandId: id,
      at: Date.now(),
    };
    const { length } = await product.events.read(stream);
    await product.events.append(stream, length, [{ id, ...fact, shape: 1, subject: null, public: [], sealed, meta }]);
  }

  /** Waits for what follows in a stream. */
  async function followed(category: string, key: string, fact: Fact): Promise<void> {
    const stream = streamName(category, environment, key);
    await eventually(async () => expect(await product.events.last(stream)).toMatchObject(fact));
  }

  const created = (id: string, organization_id: string, user_id: string): Fact => ({
    type: 'organization_membership.created',
    data: { id, organization_id, user_id, status: 'active', roles: [{ id: fresh('role'), slug: 'any' }], directory_managed: false, custom_attributes: {} },
  });

  it('is deleted, where a membership came into a deleted organization or to a deleted user', async () => {
    const [acme, gone] = [await organization(), await organization()];
    const [ada, eve] = [await user(), await user()];
    await suite.delete(`/organizations/${gone}`).expect(202);
    await suite.delete(`/user_management/users/${eve}`).expect(200);
    for (const [organizationId, userId] of [
      [gone, ada],
      [acme, eve],
    ] as const) {
      const id = fresh('om');
      await record('organization_membership', membershipKey(organizationId, userId), organizationId, created(id, organizationId, userId));
      await suite.get(`/user_management/organization_memberships/${id}`).expect(404);
      await followed('organization_membership', membershipKey(organizationId, userId), { type: 'organization_membership.deleted', data: { id } });
    }
  });

  it('is deleted, where a group came into a deleted organization', async () => {
    const gone = await organization();
    await suite.delete(`/organizations/${gone}`).expect(202);
    const id = fresh('group');
    await record('group', id, gone, { type: 'group.created', data: { id, organization_id: gone, name: 'Late', description: null } });
    await followed('group', id, { type: 'group.deleted', data: { id } });
  });

  it('is deleted, where a factor came to a deleted user', async () => {
    const [acme, user_id] = [await organization(), await user()];
    await suite.delete(`/user_management/users/${user_id}`).expect(200);
    const id = fresh('auth_factor');
    const fields = { type: 'generic_otp', totp_issuer: null, totp_user: null, totp_secret: null, phone_number: null };
    await record('authentication_factor', id, acme, { type: 'authentication_factor.enrolled', data: { id, user_id, ...fields } });
    await suite.get(`/auth/factors/${id}`).expect(404);
    await followed('authentication_factor', id, { type: 'authentication_factor.deleted', data: { id } });
  });

  it('is removed, where a deleted membership came into a group', async () => {
    const acme = await organization();
    const { id } = await join(acme);
    const group = await suite.post(`/organizations/${acme}/groups`, { name: 'Engineering' }).expect(201);
    await suite.delete(`/user_management/organization_memberships/${id}`).expect(200);
    const pair = { group_id: group.id, organization_membership_id: id };
    await record('group', group.id, acme, { type: 'group.member_added', data: pair });
    expect((await suite.get(`/organizations/${acme}/groups/${group.id}/organization-memberships`).expect(200)).data).toEqual([]);
    await followed('group', group.id, { type: 'group.member_removed', data: pair });
  });

  it('is replaced by the default role, where a member was given a deleted role', async () => {
    const acme = await organization();
    const role = await suite.post('/authorization/roles', { slug: 'late', name: 'Late' }).expect(201);
    const { id, user_id } = await join(acme);
    await suite.delete('/admin/roles/late').expect(204);
    const held = [{ id: role.id, slug: 'late' }];
    await record('organization_membership', membershipKey(acme, user_id), acme, { type: 'organization_membership.updated', data: { id, roles: held } });
    await suite.get(`/user_management/organization_memberships/${id}`).expect(200, { roles: [{ slug: 'member' }] });
    const replaced = { data: { id, roles: [{ slug: 'member' }] } };
    await suite.eventually('/events?events=organization_membership.updated&order=desc&limit=1', { data: [replaced] });
    const { data } = (await product.events.last(streamName('organization_membership', environment, membershipKey(acme, user_id))))!;
    expect(data).toMatchObject({ roles: [{ slug: 'member' }] });
  });

  describe('of an invitation', () => {
    const email = 'invited@acme.test';
    const invite = async (organization_id: string, user_id: string | null): Promise<string> => {
      const id = fresh('invitation');
      const expires_at = '2999-01-01T00:00:00.000Z';
      const data = { id, email, organization_id, inviter_user_id: null, user_id, role: null, locale: null, days: 7, expires_at };
      await record('invitation', id, organization_id, { type: 'invitation.created', data }, [{ of: `invitation.${id}`, fields: ['data.email'] }]);
      return id;
    };

    it('is a pending membership, where whoever invited a user died before it', async () => {
      const [acme, ada] = [await organization(), await user()];
      const id = await invite(acme, ada);
      const born = { user_id: ada, organization_id: acme, status: 'pending', invitation_id: id };
      await followed('organization_membership', membershipKey(acme, ada), { type: 'organization_membership.created', data: born });
    });

    it('is the membership of whoever accepted, and the address among what is known of them, where nobody got that far', async () => {
      const [acme, ada] = [await organization(), await user()];
      const id = await invite(acme, null);
      await record('invitation', id, acme, { type: 'invitation.accepted', data: { id, round: 0, accepted_user_id: ada } });
      const born = { user_id: ada, organization_id: acme, status: 'active', invitation_id: id };
      await followed('organization_membership', membershipKey(acme, ada), { type: 'organization_membership.created', data: born });
      await followed('user', ada, { type: 'user.data_linked', data: { holder: `invitation.${id}` } });
    });

    it('is no pending membership, where the invitation had ended before', async () => {
      const [acme, ada, membership] = [await organization(), await user(), fresh('om')];
      const key = membershipKey(acme, ada);
      const id = await invite(acme, ada);
      await followed('organization_membership', key, { type: 'organization_membership.created', data: { invitation_id: id } });
      await record('invitation', id, acme, { type: 'invitation.revoked', data: { id, round: 0 } });
      await followed('organization_membership', key, { type: 'organization_membership.deleted', data: {} });
      const { type, data } = created(membership, acme, ada);
      await record('organization_membership', key, acme, { type, data: { ...(data as object), status: 'pending', invitation_id: id } });
      await followed('organization_membership', key, { type: 'organization_membership.deleted', data: { id: membership } });
    });

    it('is its end, where it came into a deleted organization or to a deleted user', async () => {
      const [acme, gone, ada, eve] = [await organization(), await organization(), await user(), await user()];
      await suite.delete(`/organizations/${gone}`).expect(202);
      await suite.delete(`/user_management/users/${eve}`).expect(200);
      for (const [organizationId, userId] of [
        [gone, ada],
        [acme, eve],
      ] as const) {
        const id = await invite(organizationId, userId);
        await followed('invitation', id, { type: 'invitation.revoked', data: { id, round: 0 } });
      }
    });
  });
});
