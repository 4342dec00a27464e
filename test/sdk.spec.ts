import { createHmac } from 'node:crypto';
import { DomainDataState, SignatureVerificationException, WorkOS, type Organization } from '@workos-inc/node';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { WorkOS as WorkOS10 } from 'workos-node-10';
import type { DnsServer } from '#libs/testing/src/dns-server';
import { givenDnsServer } from '#libs/testing/src/given-dns-server';
import { givenWebhookReceiver } from '#libs/testing/src/given-webhook-receiver';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually, until } from '#libs/testing/src/until';
import type { WebhookReceiver } from '#libs/testing/src/webhook-receiver';

/** Where a client of the SDK has to be pointed, and nothing more. */
function addressOf(suite: GivenSuite): { readonly apiHostname: string; readonly port: number; readonly https: false } {
  const { hostname, port } = new URL(suite.url);
  return { apiHostname: hostname, port: Number(port), https: false };
}

const UNKNOWN_ORGANIZATION = 'org_01J00000000000000000000000';

let suite: GivenSuite;
let dns: DnsServer;
let receiver: WebhookReceiver;
let workos: WorkOS;
let workos10: WorkOS10;
let clientId: string;
beforeAll(async () => {
  dns = await givenDnsServer();
  receiver = await givenWebhookReceiver();
  suite = await givenSuite({ variables: { DNS_SERVERS: dns.address } });
  clientId = await suite.clientIdOf(suite);
  workos = new WorkOS(suite.key, { ...addressOf(suite), clientId });
  workos10 = new WorkOS10(suite.key, { ...addressOf(suite), clientId });
});
afterAll(async () => {
  await dns.close();
  await receiver.close();
});

describe('organizations through the SDK', () => {
  it('are created, found by either id, updated and deleted', async () => {
    const created = await workos.organizations.createOrganization({
      name: 'Acme',
      externalId: 'customer-1',
      metadata: { tier: 'gold', seats: '3' },
      domainData: [{ domain: 'acme-sdk.test', state: DomainDataState.Verified }],
    });
    expect(created).toMatchObject({
      object: 'organization',
      name: 'Acme',
      externalId: 'customer-1',
      metadata: { tier: 'gold', seats: '3' },
      domains: [{ domain: 'acme-sdk.test', state: 'verified', organizationId: created.id }],
    });
    expect(await workos.organizations.getOrganization(created.id)).toEqual(created);
    expect(await workos.organizations.getOrganizationByExternalId('customer-1')).toEqual(created);

    const updated = await workos.organizations.updateOrganization({
      organization: created.id,
      name: 'Acme Ltd',
      externalId: 'customer-2',
      metadata: { tier: 'silver' },
    });
    expect(updated).toMatchObject({ id: created.id, name: 'Acme Ltd', externalId: 'customer-2', metadata: { tier: 'silver', seats: '3' } });
    expect(updated.domains).toEqual(created.domains);
    expect(await workos.organizations.getOrganizationByExternalId('customer-2')).toEqual(updated);

    await workos.organizations.deleteOrganization(created.id);
    await expect(workos.organizations.getOrganization(created.id)).rejects.toMatchObject({ name: 'NotFoundException' });
  });

  it('lose their external id when it is set to null', async () => {
    const { id } = await workos.organizations.createOrganization({ name: 'Once known', externalId: 'to-be-cleared' });
    expect(await workos.organizations.updateOrganization({ organization: id, externalId: null })).toMatchObject({ externalId: null });
    await expect(workos.organizations.getOrganizationByExternalId('to-be-cleared')).rejects.toMatchObject({ status: 404 });
  });

  it.each(['with space', 'dots.and..more', 'api_keys', 'a/b', 'percent%20sign?'])('are found by the external id %p', async (externalId) => {
    const { id } = await workos.organizations.createOrganization({ name: 'Anyhow named', externalId });
    // The SDK puts it into the path as it is given, so that what means something in a path is the caller's to escape.
    const given = /[/%?]/.test(externalId) ? encodeURIComponent(externalId) : externalId;
    expect(await workos.organizations.getOrganizationByExternalId(given)).toMatchObject({ id });
  });

  it('are created once for one idempotency key', async () => {
    const create = () => workos.organizations.createOrganization({ name: 'Only once' }, { idempotencyKey: 'sdk-key-1' });
    const [first, twin] = await Promise.all([create(), create()]);
    expect(twin).toEqual(first);
    expect(await create()).toEqual(first);
  });

  it('are listed page by page, and all of them by auto-pagination', async () => {
    const other = await suite.otherEnvironment('paged');
    const lister = new WorkOS(other.key, addressOf(suite));
    const made: Organization[] = [];
    for (let index = 0; index < 103; index++) made.push(await lister.organizations.createOrganization({ name: `Number ${index}` }));
    const ids = made.map(({ id }) => id);

    const all = await lister.organizations.listOrganizations();
    expect((await all.autoPagination()).map(({ id }) => id)).toEqual([...ids].reverse());

    const first = await lister.organizations.listOrganizations({ limit: 2, order: 'asc' });
    expect(first.data).toEqual(made.slice(0, 2));
    expect(first.listMetadata).toEqual({ before: null, after: ids[1] });
    const second = await lister.organizations.listOrganizations({ limit: 2, order: 'asc', after: first.listMetadata.after! });
    expect(second.data).toEqual(made.slice(2, 4));
    const back = await lister.organizations.listOrganizations({ limit: 2, order: 'asc', before: second.listMetadata.before! });
    expect(back.data).toEqual(made.slice(0, 2));
  });

  it('are filtered by their domains', async () => {
    const withDomain = (domain: string) =>
      workos.organizations.createOrganization({ name: `Owner of ${domain}`, domainData: [{ domain, state: DomainDataState.Pending }] });
    const one = await withDomain('filter-one.test');
    const two = await withDomain('filter-two.test');
    await withDomain('filter-three.test');
    const { data } = await workos.organizations.listOrganizations({ domains: ['filter-one.test', 'FILTER-TWO.test'] });
    expect(data).toEqual([two, one]);
    expect((await workos.organizations.listOrganizations({ domains: ['nobodys.test'] })).data).toEqual([]);
  });
});

describe('organization domains through the SDK', () => {
  it('are added, verified over DNS and deleted', async () => {
    const { id: organizationId } = await workos.organizations.createOrganization({ name: 'Has domains' });
    const added = await workos.organizationDomains.create({ domain: 'proven.test', organizationId });
    expect(added).toMatchObject({ object: 'organization_domain', domain: 'proven.test', organizationId, state: 'pending', verificationStrategy: 'dns' });
    expect(await workos.organizationDomains.get(added.id)).toMatchObject({ id: added.id, verificationToken: added.verificationToken });

    // After the look-up that every domain begins with, so that it is this one that finds it.
    await until(() => dns.asked.includes('proven.test'));
    dns.answers('proven.test', `verification_token=${added.verificationToken}`);
    expect(await workos.organizationDomains.verify(added.id)).toMatchObject({ id: added.id, state: 'pending' });
    await suite.eventually(`/organization_domains/${added.id}`, { state: 'verified' });
    expect(await workos.organizationDomains.get(added.id)).toMatchObject({ state: 'verified' });

    await workos.organizationDomains.delete(added.id);
    await expect(workos.organizationDomains.get(added.id)).rejects.toMatchObject({ name: 'NotFoundException' });
  });
});

describe('API keys through the SDK', () => {
  it('are created for an organization, listed, validated and deleted', async () => {
    const { id: organizationId } = await workos.organizations.createOrganization({ name: 'Has keys' });
    const { value, ...made } = await workos.organizations.createOrganizationApiKey({
      organizationId,
      name: 'Build server',
      permissions: ['widgets:sso:manage'],
    });
    expect(made).toMatchObject({
      object: 'api_key',
      owner: { type: 'organization', id: organizationId },
      permissions: ['widgets:sso:manage'],
      lastUsedAt: null,
    });
    const { apiKey } = await workos.apiKeys.validateApiKey({ value });
    expect(apiKey).toEqual({ ...made, lastUsedAt: expect.any(String) });
    const { data } = await workos.organizations.listOrganizationApiKeys({ organizationId });
    expect(data.map(({ id }) => id)).toEqual([made.id]);
    await workos.apiKeys.deleteApiKey(made.id);
    expect(await workos.apiKeys.validateApiKey({ value })).toEqual({ apiKey: null });
    await expect(workos.apiKeys.deleteApiKey(made.id)).rejects.toMatchObject({ name: 'NotFoundException' });
  });

  it('are created for a user who is a member', async () => {
    const { id: organizationId } = await workos.organizations.createOrganization({ name: 'Has members with keys' });
    const { id: userId } = await workos.userManagement.createUser({ email: 'keys@sdk.test' });
    const create = () => workos10.userManagement.createUserApiKey(userId, { name: 'Laptop', organizationId });
    await expect(create()).rejects.toMatchObject({ status: 400 });
    await workos.userManagement.createOrganizationMembership({ userId, organizationId });
    const { value, id } = await create();
    expect((await workos10.userManagement.listUserApiKeys(userId, { organizationId })).data).toMatchObject([{ id, owner: { id: userId, organizationId } }]);
    expect(await workos10.apiKeys.createValidation({ value })).toMatchObject({ apiKey: { id, owner: { type: 'user', id: userId, organizationId } } });
    await workos10.apiKeys.deleteApiKey(id);
    expect(await workos10.apiKeys.createValidation({ value })).toEqual({ apiKey: null });
  });
});

describe('users and memberships through the SDK', () => {
  const um = () => workos.userManagement;

  it('are created, found, updated and deleted', async () => {
    const created = await um().createUser({
      email: 'Ada@sdk.test',
      password: 'ride-a-giraffe-7',
      firstName: 'Ada',
      lastName: 'Lovelace',
      emailVerified: true,
      externalId: 'employee-sdk',
      metadata: { language: 'en' },
    });
    expect(created).toMatchObject({
      object: 'user',
      email: 'ada@sdk.test',
      emailVerified: true,
      firstName: 'Ada',
      lastName: 'Lovelace',
      externalId: 'employee-sdk',
      metadata: { language: 'en' },
      lastSignInAt: null,
    });
    expect(await um().getUser(created.id)).toEqual(created);
    expect(await um().getUserByExternalId('employee-sdk')).toEqual(created);
    expect((await um().listUsers({ email: 'ada@SDK.test' })).data).toEqual([created]);

    const updated = await um().updateUser({ userId: created.id, firstName: 'Augusta', metadata: { team: 'engines' }, locale: 'en-GB' });
    expect(updated).toMatchObject({
      id: created.id,
      firstName: 'Augusta',
      lastName: 'Lovelace',
      locale: 'en-GB',
      metadata: { language: 'en', team: 'engines' },
    });

    await um().deleteUser(created.id);
    await expect(um().getUser(created.id)).rejects.toMatchObject({ name: 'NotFoundException' });
  });

  it('are erased, and events from before and of their end are read all the same', async () => {
    const { id } = await um().createUser({ email: 'erased@sdk.test', firstName: 'Ada', externalId: 'erased-sdk', metadata: { language: 'en' } });
    await suite.post('/user_management/magic_auth', { email: 'erased@sdk.test' }).expect(201);
    // The SDK has no call for it.
    await suite.post(`/admin/users/${id}/erasure`).expect(202);
    const events = await eventually(async () => {
      const { data } = await workos.events.listEvents({ events: ['user.created', 'magic_auth.created', 'user.deleted'], limit: 100 });
      const found = data.filter(({ data: of }) => ('userId' in of ? of.userId : 'id' in of && of.id) === id);
      expect(found.map((event) => [event.event, 'email' in event.data && event.data.email])).toEqual([
        ['user.created', ''],
        ['magic_auth.created', ''],
        ['user.deleted', ''],
      ]);
      return found;
    });
    const nothing = { email: '', firstName: null, lastName: null, externalId: null, metadata: {}, profilePictureUrl: null };
    for (const { data } of [events[0]!, events[2]!]) expect(data).toMatchObject({ object: 'user', id, ...nothing });
    const { id: other } = await um().createUser({ email: 'erased@sdk.test', externalId: 'erased-sdk' });
    expect(other).not.toBe(id);
  });

  it('are invited, by mail, to an organization', async () => {
    const { id: organizationId } = await workos.organizations.createOrganization({ name: 'Invites' });
    const invitation = await um().sendInvitation({ email: 'invited@sdk.test', organizationId, roleSlug: 'admin', expiresInDays: 3, locale: 'de' });
    expect(invitation).toMatchObject({ object: 'invitation', email: 'invited@sdk.test', organizationId, state: 'pending', acceptedUserId: null });
    expect(await um().findInvitationByToken(invitation.token)).toEqual(invitation);
    const again = await um().resendInvitation(invitation.id, { locale: 'en' });
    await expect(um().findInvitationByToken(invitation.token)).rejects.toMatchObject({ name: 'NotFoundException' });
    expect((await um().listInvitations({ organizationId })).data).toEqual([again]);
    const { id: userId } = await um().createUser({ email: 'invited@sdk.test' });
    expect(await um().acceptInvitation(invitation.id)).toMatchObject({ state: 'accepted', acceptedUserId: userId });
    const { data } = await um().listOrganizationMemberships({ userId });
    expect(data).toMatchObject([{ organizationId, status: 'active', role: { slug: 'admin' } }]);
    const { id } = await um().sendInvitation({ email: 'other@sdk.test' });
    expect(await um().revokeInvitation(id)).toMatchObject({ state: 'revoked', organizationId: null });
    await eventually(async () => {
      const names = ['invitation.created', 'invitation.resent', 'invitation.accepted', 'invitation.revoked'] as const;
      const events = (await workos.events.listEvents({ events: [...names], limit: 100 })).data;
      expect(events.map(({ event }) => event)).toEqual([
        'invitation.created',
        'invitation.resent',
        'invitation.accepted',
        'invitation.created',
        'invitation.revoked',
      ]);
    });
  });

  it('meet in an organization, with roles', async () => {
    const { id: organizationId, name } = await workos.organizations.createOrganization({ name: 'Has members' });
    const { id: userId } = await um().createUser({ email: 'member@sdk.test' });
    const membership = await um().createOrganizationMembership({ organizationId, userId, roleSlug: 'admin' });
    expect(membership).toMatchObject({ organizationId, userId, organizationName: name, status: 'active', role: { slug: 'admin' }, directoryManaged: false });
    expect(await um().getOrganizationMembership(membership.id)).toEqual(membership);
    expect((await um().listOrganizationMemberships({ organizationId, statuses: ['active', 'inactive'] })).data).toEqual([membership]);
    expect((await um().listUsers({ organizationId })).data).toMatchObject([{ id: userId }]);
    await expect(um().createOrganizationMembership({ organizationId, userId })).rejects.toMatchObject({ status: 400 });

    expect(await um().updateOrganizationMembership(membership.id, { roleSlug: 'member' })).toMatchObject({ id: membership.id, role: { slug: 'member' } });
    expect(await um().deactivateOrganizationMembership(membership.id)).toMatchObject({ status: 'inactive' });
    expect((await um().listOrganizationMemberships({ userId })).data).toEqual([]);
    expect(await um().reactivateOrganizationMembership(membership.id)).toMatchObject({ status: 'active' });
    await um().deleteOrganizationMembership(membership.id);
    await expect(um().getOrganizationMembership(membership.id)).rejects.toMatchObject({ name: 'NotFoundException' });
  });

  it('are listed page by page, and all of them by auto-pagination', async () => {
    const lister = new WorkOS((await suite.otherEnvironment('users')).key, addressOf(suite)).userManagement;
    const ids: string[] = [];
    for (let index = 0; index < 101; index++) ids.push((await lister.createUser({ email: `user-${index}@sdk.test` })).id);
    expect((await (await lister.listUsers({ order: 'asc' })).autoPagination()).map(({ id }) => id)).toEqual(ids);
  });
});

describe('an audit trail through the SDK', () => {
  it('takes events, each once', async () => {
    const { id } = await workos.organizations.createOrganization({ name: 'Has a trail' });
    const event = {
      action: 'document.shared',
      occurredAt: new Date(),
      actor: { id: 'user_1', type: 'user', name: 'Ada', metadata: { role: 'owner' } },
      targets: [{ id: 'document_1', type: 'document' }],
      context: { location: '192.0.2.1', userAgent: 'node' },
      metadata: { pages: 12, draft: false },
    };
    for (const client of [workos, workos10]) {
      await client.auditLogs.createEvent(id, event, { idempotencyKey: 'sdk-key' });
      await client.auditLogs.createEvent(id, event, { idempotencyKey: 'sdk-key' });
    }
    const { data } = await suite.get(`/audit_logs/events?organization_id=${id}`).expect(200);
    expect(data).toMatchObject([
      { action: 'document.shared', occurred_at: event.occurredAt.toISOString(), actor: event.actor, context: { user_agent: 'node' } },
    ]);
    await expect(workos.auditLogs.createEvent(id, { ...event, action: '' })).rejects.toMatchObject({ name: 'UnprocessableEntityException' });
    await expect(workos.auditLogs.createEvent(UNKNOWN_ORGANIZATION, event)).rejects.toMatchObject({ name: 'NotFoundException' });
  });

  it('is exported', async () => {
    const { id: organizationId } = await workos.organizations.createOrganization({ name: 'Exports its trail' });
    const options = { organizationId, rangeStart: new Date(Date.now() - 86_400_000), rangeEnd: new Date() };
    for (const client of [workos, workos10]) {
      const { id } = await client.auditLogs.createExport({ ...options, actions: ['document.shared'], actorNames: ['Ada'], targets: ['document'] });
      await eventually(async () => expect(await client.auditLogs.getExport(id)).toMatchObject({ id, state: 'ready', url: expect.stringContaining(id) }));
    }
    const reversed = { ...options, rangeStart: options.rangeEnd, rangeEnd: options.rangeStart };
    await expect(workos.auditLogs.createExport(reversed)).rejects.toMatchObject({ status: 400 });
    await expect(workos.auditLogs.getExport('audit_log_export_01J00000000000000000000000')).rejects.toMatchObject({ name: 'NotFoundException' });
  });
});

/** Of an authenticator app, as its user types it, and the bytes that this stands for. */
const SECRET = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
const SECRET_BYTES = Buffer.from('48656c6c6f21deadbeef'.repeat(2), 'hex');

/** What the app shows, or will show next. */
function totpCode(drift = 0): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + drift));
  const digest = createHmac('sha1', SECRET_BYTES).update(counter).digest();
  return String((digest.readUInt32BE(digest[19]! & 15) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

/** What a client is told that has to do something else first. */
interface Needed {
  readonly code?: string;
  readonly pending_authentication_token: string;
  readonly email_verification_id: string;
  readonly radar_challenge_id: string;
  readonly organizations: readonly { readonly id: string }[];
  readonly authentication_factors: readonly { readonly id: string }[];
}

async function neededBy(step: Promise<unknown>): Promise<Needed> {
  const refusal = await step.then(
    () => null,
    (error: { readonly status: number; readonly rawData: Needed }) => error,
  );
  expect(refusal).toMatchObject({ status: 403 });
  return refusal!.rawData;
}

// Their methods of sign-in have the same names and forms; what was renamed is asked of each.
describe.each([
  ['8.13', () => workos],
  ['10.14', () => workos10 as unknown as WorkOS],
])('signing in through SDK %s', (version, client) => {
  const PASSWORD = 'ride-a-giraffe-7';
  const SEAL = { sealSession: true, cookiePassword: 'a-password-of-a-cookie-with-32-characters' };
  const BYE = 'https://sdk.test/bye';
  const um = () => client().userManagement;
  const address = (name: string): string => `${name}-${version}@sign-in.sdk.test`;
  const person = async (name: string) => (await um().createUser({ email: address(name), password: PASSWORD, emailVerified: true })).id;
  const withPassword = (name: string, more: object = {}) => um().authenticateWithPassword({ clientId, email: address(name), password: PASSWORD, ...more });
  const claimsOf = async (token: string) => (await jwtVerify(token, createRemoteJWKSet(new URL(um().getJwksUrl(clientId))), { audience: clientId })).payload;
  const sessionOf = async ({ accessToken }: { readonly accessToken: string }) => (await claimsOf(accessToken))['sid'] as string;
  const ended = { name: 'OauthException', error: 'invalid_grant' };
  beforeAll(() => suite.patch('/admin/environment_settings', { sign_out_uris: [BYE], risk: { bot_detection: 'challenge' } }).expect(200));

  it('takes a magic code, which is shown once more', async () => {
    const { id, code, userId } = await um().createMagicAuth({ email: address('magic') });
    expect(await um().getMagicAuth(id)).toMatchObject({ id, code, userId });
    const signed = await um().authenticateWithMagicAuth({ clientId, code, email: address('magic'), ipAddress: '192.0.2.7', userAgent: 'Firefox' });
    expect(signed).toMatchObject({ user: { id: userId, emailVerified: true }, authenticationMethod: 'MagicAuth' });
    expect(await claimsOf(signed.accessToken)).toMatchObject({ sub: userId, client_id: clientId });
    expect(await um().getUserIdentities(userId)).toEqual([]);
    // Stored a moment later, as the sign-in told it.
    const { lastSignInAt } = signed.user;
    await eventually(async () => expect(await um().getUser(userId)).toMatchObject({ lastSignInAt }));
  });

  it('takes a password, once its address is verified, and another one after a reset', async () => {
    const { id } = await um().createUser({ email: address('unproven'), password: PASSWORD });
    const { pending_authentication_token: pendingAuthenticationToken, email_verification_id } = await neededBy(withPassword('unproven'));
    const { code } = await um().getEmailVerification(email_verification_id);
    const signed = await um().authenticateWithEmailVerification({ clientId, code, pendingAuthenticationToken });
    expect(signed).toMatchObject({ user: { id, emailVerified: true }, authenticationMethod: 'Password' });
    const wrong = um().authenticateWithPassword({ clientId, email: address('unproven'), password: 'ride-an-ostrich-8' });
    await expect(wrong).rejects.toMatchObject({ status: 400, rawData: { code: 'invalid_credentials' } });

    const reset = await um().createPasswordReset({ email: address('unproven') });
    expect(await um().getPasswordReset(reset.id)).toMatchObject({ passwordResetToken: reset.passwordResetToken });
    expect(await um().resetPassword({ token: reset.passwordResetToken, newPassword: 'ride-an-ostrich-8' })).toMatchObject({ user: { id } });
    expect(await um().authenticateWithPassword({ clientId, email: address('unproven'), password: 'ride-an-ostrich-8' })).toMatchObject({ user: { id } });
    await expect(um().authenticateWithRefreshToken({ clientId, refreshToken: signed.refreshToken })).rejects.toMatchObject(ended);
  });

  it('verifies an address', async () => {
    const { id: userId } = await um().createUser({ email: address('confirmed') });
    expect(await um().sendVerificationEmail({ userId })).toMatchObject({ user: { id: userId } });
    const sent = await eventually(async () => {
      const { data } = await client().events.listEvents({ events: ['email_verification.created'], limit: 100 });
      const found = data.find((event) => event.event === 'email_verification.created' && event.data.userId === userId);
      expect(found).toBeDefined();
      return (found!.data as { readonly id: string }).id;
    });
    const { code } = await um().getEmailVerification(sent);
    expect(await um().verifyEmail({ userId, code })).toMatchObject({ user: { id: userId, emailVerified: true } });
  });

  it('goes on in the organization that is chosen, and in another one by a refresh, until it is revoked', async () => {
    const userId = await person('selects');
    const made = [await client().organizations.createOrganization({ name: 'First' }), await client().organizations.createOrganization({ name: 'Second' })];
    for (const { id: organizationId } of made) await um().createOrganizationMembership({ organizationId, userId });
    const needed = await neededBy(withPassword('selects'));
    expect(needed.organizations.map(({ id }) => id).toSorted()).toEqual(made.map(({ id }) => id).toSorted());
    const [first, second] = made.map(({ id }) => id);
    const pendingAuthenticationToken = needed.pending_authentication_token;
    const signed = await um().authenticateWithOrganizationSelection({ clientId, pendingAuthenticationToken, organizationId: first! });
    expect(signed).toMatchObject({ organizationId: first });
    const switched = await um().authenticateWithRefreshToken({ clientId, refreshToken: signed.refreshToken, organizationId: second! });
    const sessionId = await sessionOf(signed);
    expect(await claimsOf(switched.accessToken)).toMatchObject({ org_id: second, role: 'member', sid: sessionId });
    expect((await um().listSessions(userId)).data).toMatchObject([{ id: sessionId, status: 'active', authMethod: 'password' }]);
    await um().revokeSession({ sessionId });
    await expect(um().authenticateWithRefreshToken({ clientId, refreshToken: switched.refreshToken })).rejects.toMatchObject(ended);
  });

  it('keeps a session in a sealed cookie, until its user signs out', async () => {
    const userId = await person('sealed');
    const { id: organizationId } = await client().organizations.createOrganization({ name: 'Seals' });
    await um().createOrganizationMembership({ organizationId, userId, roleSlug: 'admin' });
    const { sealedSession: sessionData, ...signed } = await withPassword('sealed', { session: SEAL });
    const { cookiePassword } = SEAL;
    const seen = { authenticated: true, sessionId: await sessionOf(signed), organizationId, role: 'admin', roles: ['admin'] };
    expect(await um().authenticateWithSessionCookie({ sessionData: sessionData!, cookiePassword })).toMatchObject({ ...seen, user: { id: userId } });
    expect(await um().getSessionFromCookie({ sessionData: sessionData!, cookiePassword })).toMatchObject({ user: { id: userId } });
    const session = um().loadSealedSession({ sessionData: sessionData!, cookiePassword });
    const refreshed = await session.refresh();
    expect(refreshed).toMatchObject({ ...seen, sealedSession: expect.any(String) });
    expect(await session.authenticate()).toMatchObject({ ...seen, user: { id: userId } });
    // What was sealed first is still good, and so is a refresh by a tab that knows nothing of the other.
    expect(await um().loadSealedSession({ sessionData: sessionData!, cookiePassword }).refresh({ organizationId })).toMatchObject(seen);

    const answer = await fetch(await session.getLogoutUrl({ returnTo: BYE }), { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, BYE]);
    expect(await session.refresh()).toMatchObject({ authenticated: false, reason: 'invalid_grant' });
    expect(um().getLogoutUrl({ sessionId: seen.sessionId })).toMatch(/\/user_management\/sessions\/logout\?session_id=session_\w{26}$/);
  });

  it('asks for the second factor of whoever has one', async () => {
    const userId = await person('factors');
    const [factors, of10] = [version === '8.13' ? workos.mfa : workos10.multiFactorAuth, workos10.multiFactorAuth];
    const options = { userId, type: 'totp', totpIssuer: 'Acme', totpUser: 'ada', totpSecret: SECRET } as const;
    const enrolled = version === '8.13' ? await workos.userManagement.enrollAuthFactor(options) : await of10.createUserAuthFactor(options);
    const { id: authenticationFactorId } = enrolled.authenticationFactor;
    expect(enrolled.authenticationFactor).toMatchObject({ totp: { secret: SECRET, qrCode: expect.stringMatching(/^data:image\/png;base64,/) } });
    const shown = { authenticationChallengeId: enrolled.authenticationChallenge.id, code: totpCode() };
    expect(await factors.verifyChallenge(shown)).toMatchObject({ valid: true, challenge: { authenticationFactorId } });
    const needed = await neededBy(withPassword('factors'));
    expect(needed.authentication_factors).toMatchObject([{ id: authenticationFactorId }]);
    const { id: authenticationChallengeId } = await factors.challengeFactor({ authenticationFactorId });
    // A code works once, and the next one is taken up to half a minute early.
    const proof = { clientId, code: totpCode(1), pendingAuthenticationToken: needed.pending_authentication_token, authenticationChallengeId };
    expect(await um().authenticateWithTotp(proof)).toMatchObject({ user: { id: userId }, authenticationMethod: 'Password' });
    const listed = version === '8.13' ? await workos.userManagement.listAuthFactors({ userId }) : await of10.listUserAuthFactors({ userId });
    expect(listed.data).toMatchObject([{ id: authenticationFactorId }]);
    expect(await factors.getFactor(authenticationFactorId)).toMatchObject({ id: authenticationFactorId, type: 'totp' });
    await factors.deleteFactor(authenticationFactorId);
    expect(await withPassword('factors')).toMatchObject({ user: { id: userId } });

    const own = await factors.enrollFactor({ type: 'generic_otp' });
    const asked = await factors.challengeFactor({ authenticationFactorId: own.id });
    expect(await factors.verifyChallenge({ authenticationChallengeId: asked.id, code: asked.code! })).toMatchObject({ valid: true });
  });

  it('sends a text to the number of whoever has one', async () => {
    const sms = { countries: ['DE'], webhook_url: receiver.url, webhook_secret: `whsec_${Buffer.alloc(32, 3).toString('base64')}` };
    await suite.patch('/admin/environment_settings', { sms }).expect(200);
    const factors = version === '8.13' ? workos.mfa : workos10.multiFactorAuth;
    const phoneNumber = version === '8.13' ? '+4915111111111' : '+4915122222222';
    const factor = await eventually(() => factors.enrollFactor({ type: 'sms', phoneNumber }));
    expect(factor).toMatchObject({ type: 'sms', sms: { phoneNumber } });
    const { id: authenticationChallengeId } = await factors.challengeFactor({ authenticationFactorId: factor.id, smsTemplate: 'Acme: {{code}}' });
    const { body } = await receiver.receives(({ event, data }) => event === 'sms.requested' && data.phone_number === phoneNumber);
    const { text, code } = JSON.parse(body).data as { readonly text: string; readonly code: string };
    expect(text).toBe(`Acme: ${code}`);
    expect(await factors.verifyChallenge({ authenticationChallengeId, code })).toMatchObject({ valid: true });
  });

  it('accepts an invitation', async () => {
    const { id: organizationId } = await client().organizations.createOrganization({ name: 'Invites' });
    const { id, token: invitationToken } = await um().sendInvitation({ email: address('invited'), organizationId, roleSlug: 'admin' });
    const { code } = await um().createMagicAuth({ email: address('invited'), invitationToken });
    const signed = await um().authenticateWithMagicAuth({ clientId, code, email: address('invited'), invitationToken });
    expect(signed).toMatchObject({ organizationId });
    expect(await um().getInvitation(id)).toMatchObject({ state: 'accepted', acceptedUserId: signed.user.id });
  });

  it('is told of a program that signs in for somebody, and of a code that nobody issued', async () => {
    await person('challenged');
    expect(await neededBy(withPassword('challenged', { userAgent: 'curl/8.5.0' }))).toMatchObject({
      code: 'radar_challenge',
      radar_challenge_id: expect.stringMatching(/^radar_challenge_/),
    });
    await expect(um().authenticateWithCode({ clientId, code: 'nobodys' })).rejects.toMatchObject(ended);
    await expect(um().authenticateWithCodeAndVerifier({ clientId, code: 'nobodys', codeVerifier: 'v'.repeat(43) })).rejects.toMatchObject(ended);
  });

  it('has tokens for widgets', async () => {
    const userId = await person('widgets');
    const { id: organizationId } = await client().organizations.createOrganization({ name: 'Widgets' });
    await um().createOrganizationMembership({ organizationId, userId, roleSlug: 'admin' });
    const asked = { organizationId, userId, scopes: ['widgets:users-table:manage' as const] };
    const token = version === '8.13' ? await workos.widgets.getToken(asked) : (await workos10.widgets.createToken(asked)).token;
    const { payload } = await jwtVerify(token, createRemoteJWKSet(new URL(um().getJwksUrl(clientId))), { audience: 'urn:gatehouse:widgets' });
    expect(payload).toMatchObject({ sub: userId, org_id: organizationId, scopes: asked.scopes });
  });
});

describe('risk through the SDK', () => {
  it('is assessed, by lists as well', async () => {
    const { radar } = workos10;
    const entry = { type: 'email', action: 'block', entry: 'risk@sdk.test' } as const;
    const assess = () =>
      radar.createAttempt({ ipAddress: '198.51.100.9', userAgent: 'Mozilla/5.0', email: 'risk@sdk.test', authMethod: 'Password', action: 'sign-in' });
    const { attemptId, ...attempt } = await assess();
    expect(attempt).toMatchObject({ verdict: 'allow' });
    await radar.updateAttempt({ id: attemptId, challengeStatus: 'success', attemptStatus: 'success' });
    for (let round = 0; round < 2; round++) expect(await radar.addListEntry(entry)).toMatchObject({ message: expect.any(String) });
    await eventually(async () => expect(await assess()).toMatchObject({ verdict: 'block', control: 'restriction', blocklistType: 'email' }));
    await radar.removeListEntry(entry);
    await eventually(async () => expect(await assess()).toMatchObject({ verdict: 'allow' }));
  });
});

describe('groups through the SDK', () => {
  it('are created, filled, listed, updated and deleted', async () => {
    const { groups } = workos10;
    const { id: organizationId } = await workos.organizations.createOrganization({ name: 'Has groups' });
    const { id: userId } = await workos.userManagement.createUser({ email: 'grouped@sdk.test' });
    const { id: organizationMembershipId } = await workos.userManagement.createOrganizationMembership({ organizationId, userId });
    const group = await groups.createGroup({ organizationId, name: 'Engineering', description: 'Builds' });
    expect(group).toMatchObject({ object: 'group', organizationId, name: 'Engineering', description: 'Builds' });
    expect(group.createdAt).toBeInstanceOf(Date);
    const { id: groupId } = group;
    expect(await groups.getGroup({ organizationId, groupId })).toEqual(group);
    expect((await groups.listGroups({ organizationId })).data).toEqual([group]);
    expect(await groups.updateGroup({ organizationId, groupId, description: null })).toMatchObject({ name: 'Engineering', description: null });

    expect(await groups.addOrganizationMembership({ organizationId, groupId, organizationMembershipId })).toMatchObject({ id: groupId });
    expect((await groups.listOrganizationMemberships({ organizationId, groupId })).data).toMatchObject([
      { id: organizationMembershipId, userId, organizationId },
    ]);
    await groups.removeOrganizationMembership({ organizationId, groupId, organizationMembershipId });
    expect((await groups.listOrganizationMemberships({ organizationId, groupId })).data).toEqual([]);

    await groups.deleteGroup({ organizationId, groupId });
    await expect(groups.getGroup({ organizationId, groupId })).rejects.toMatchObject({ name: 'NotFoundException' });
  });
});

describe('authorization through the SDK', () => {
  const az = () => workos.authorization;
  let organizationId: string;
  let organizationMembershipId: string;
  beforeAll(async () => {
    ({ id: organizationId } = await workos.organizations.createOrganization({ name: 'Modelled' }));
    const { id: userId } = await workos.userManagement.createUser({ email: 'modelled@sdk.test' });
    ({ id: organizationMembershipId } = await workos.userManagement.createOrganizationMembership({ organizationId, userId }));
    // The SDK has no call for types.
    await suite.post('/admin/resource_types', { slug: 'sdk_workspace', name: 'Workspace', parent_type_slugs: ['organization'] }).expect(201);
    await suite.post('/admin/resource_types', { slug: 'sdk_project', name: 'Project', parent_type_slugs: ['sdk_workspace'] }).expect(201);
  });

  it('has permissions', async () => {
    const created = await az().createPermission({ slug: 'sdk:read', name: 'Read', description: 'Look', resourceTypeSlug: 'sdk_project' });
    expect(created).toMatchObject({
      object: 'permission',
      slug: 'sdk:read',
      name: 'Read',
      description: 'Look',
      resourceTypeSlug: 'sdk_project',
      system: false,
    });
    expect(await az().getPermission('sdk:read')).toEqual(created);
    expect((await az().listPermissions({ limit: 100 })).data).toContainEqual(created);
    expect(await az().updatePermission('sdk:read', { name: 'Read all' })).toMatchObject({ id: created.id, name: 'Read all' });
    await az().createPermission({ slug: 'sdk:gone', name: 'Gone' });
    await az().deletePermission('sdk:gone');
    await expect(az().getPermission('sdk:gone')).rejects.toMatchObject({ name: 'NotFoundException' });
    await expect(az().createPermission({ slug: 'sdk:read', name: 'Twin' })).rejects.toMatchObject({ name: 'ConflictException' });
  });

  it('has roles of the environment', async () => {
    const created = await az().createEnvironmentRole({ slug: 'sdk-editor', name: 'Editor', resourceTypeSlug: 'sdk_project' });
    expect(created).toMatchObject({ object: 'role', slug: 'sdk-editor', type: 'EnvironmentRole', permissions: [], resourceTypeSlug: 'sdk_project' });
    expect(await az().getEnvironmentRole('sdk-editor')).toEqual(created);
    expect((await az().listEnvironmentRoles()).data.map(({ slug }) => slug)).toEqual(expect.arrayContaining(['member', 'admin', 'sdk-editor']));
    expect(await az().updateEnvironmentRole('sdk-editor', { description: 'Writes' })).toMatchObject({ name: 'Editor', description: 'Writes' });
    await az().createPermission({ slug: 'sdk:write', name: 'Write', resourceTypeSlug: 'sdk_project' });
    expect(await az().setEnvironmentRolePermissions('sdk-editor', { permissions: ['sdk:read'] })).toMatchObject({ permissions: ['sdk:read'] });
    const { permissions } = await az().addEnvironmentRolePermission('sdk-editor', { permissionSlug: 'sdk:write' });
    expect(permissions.toSorted()).toEqual(['sdk:read', 'sdk:write']);
  });

  it('has roles of an organization', async () => {
    const created = await az().createOrganizationRole(organizationId, { slug: 'org-sdk', name: 'Ours' });
    expect(created).toMatchObject({ slug: 'org-sdk', type: 'OrganizationRole', permissions: [] });
    expect(await az().getOrganizationRole(organizationId, 'org-sdk')).toEqual(created);
    expect((await az().listOrganizationRoles(organizationId)).data).toContainEqual(created);
    await az().createPermission({ slug: 'sdk:bill', name: 'Bill' });
    expect(await az().updateOrganizationRole(organizationId, 'org-sdk', { name: 'Still ours' })).toMatchObject({ name: 'Still ours' });
    expect(await az().setOrganizationRolePermissions(organizationId, 'org-sdk', { permissions: [] })).toMatchObject({ permissions: [] });
    expect(await az().addOrganizationRolePermission(organizationId, 'org-sdk', { permissionSlug: 'sdk:bill' })).toMatchObject({ permissions: ['sdk:bill'] });
    await az().removeOrganizationRolePermission(organizationId, 'org-sdk', { permissionSlug: 'sdk:bill' });
    expect(await az().getOrganizationRole(organizationId, 'org-sdk')).toMatchObject({ permissions: [] });
    await az().deleteOrganizationRole(organizationId, 'org-sdk');
    await expect(az().getOrganizationRole(organizationId, 'org-sdk')).rejects.toMatchObject({ name: 'NotFoundException' });
  });

  it('has resources, roles on them, checks, and says who reaches what', async () => {
    const workspace = await az().createResource({ organizationId, resourceTypeSlug: 'sdk_workspace', externalId: 'w-1', name: 'Workspace' });
    expect(workspace).toMatchObject({ object: 'authorization_resource', externalId: 'w-1', organizationId, resourceTypeSlug: 'sdk_workspace' });
    const project = await az().createResource({
      organizationId,
      resourceTypeSlug: 'sdk_project',
      externalId: 'p-1',
      name: 'Project',
      parentResourceId: workspace.id,
    });
    const other = await az().createResource({
      organizationId,
      resourceTypeSlug: 'sdk_project',
      externalId: 'p-2',
      name: 'Other',
      parentResourceExternalId: 'w-1',
      parentResourceTypeSlug: 'sdk_workspace',
    });
    expect([project.parentResourceId, other.parentResourceId]).toEqual([workspace.id, workspace.id]);
    const byExternalId = { organizationId, resourceTypeSlug: 'sdk_project', externalId: 'p-1' };
    expect(await az().getResource(project.id)).toEqual(project);
    expect(await az().getResourceByExternalId(byExternalId)).toEqual(project);
    expect((await az().listResources({ organizationId, resourceTypeSlug: 'sdk_project', order: 'asc' })).data).toEqual([project, other]);
    expect((await az().listResources({ organizationId, parentResourceId: workspace.id, limit: 1, order: 'asc' })).data).toEqual([project]);
    expect(await az().updateResource({ resourceId: project.id, description: 'One' })).toMatchObject({ description: 'One', name: 'Project' });
    expect(await az().updateResourceByExternalId({ ...byExternalId, name: 'First' })).toMatchObject({ description: 'One', name: 'First' });

    const question = { organizationMembershipId, permissionSlug: 'sdk:read' };
    expect(await az().check({ ...question, resourceId: project.id })).toEqual({ authorized: false });
    const assigned = await az().assignRole({ organizationMembershipId, roleSlug: 'sdk-editor', resourceId: project.id });
    expect(assigned).toMatchObject({ object: 'role_assignment', role: { slug: 'sdk-editor' }, resource: { id: project.id, externalId: 'p-1' } });
    expect(await az().check({ ...question, resourceId: project.id })).toEqual({ authorized: true });
    expect(await az().check({ ...question, resourceExternalId: 'p-1', resourceTypeSlug: 'sdk_project' })).toEqual({ authorized: true });
    expect(await az().check({ ...question, resourceId: other.id })).toEqual({ authorized: false });
    expect((await az().listRoleAssignments({ organizationMembershipId })).data).toEqual([assigned]);

    const reached = await az().listResourcesForMembership({ ...question, parentResourceId: workspace.id });
    expect(reached.data.map(({ id }) => id)).toEqual([project.id]);
    const resource = { permissionSlug: 'sdk:read', resourceId: project.id };
    expect((await az().listMembershipsForResource(resource)).data.map(({ id }) => id)).toEqual([organizationMembershipId]);
    const reaching = await az().listMembershipsForResourceByExternalId({ ...byExternalId, permissionSlug: 'sdk:read', assignment: 'direct' });
    expect(reaching.data.map(({ id }) => id)).toEqual([organizationMembershipId]);

    await az().removeRoleAssignment({ organizationMembershipId, roleAssignmentId: assigned.id });
    expect(await az().check({ ...question, resourceId: project.id })).toEqual({ authorized: false });
    const external = { organizationMembershipId, roleSlug: 'sdk-editor', resourceExternalId: 'p-2', resourceTypeSlug: 'sdk_project' };
    await az().assignRole(external);
    expect(await az().check({ ...question, resourceId: other.id })).toEqual({ authorized: true });
    await az().removeRole(external);
    expect(await az().check({ ...question, resourceId: other.id })).toEqual({ authorized: false });

    await expect(az().deleteResource({ resourceId: workspace.id })).rejects.toMatchObject({ name: 'ConflictException' });
    await az().deleteResourceByExternalId({ organizationId, resourceTypeSlug: 'sdk_project', externalId: 'p-2' });
    await az().deleteResource({ resourceId: workspace.id, cascadeDelete: true });
    await expect(az().getResource(project.id)).rejects.toMatchObject({ name: 'NotFoundException' });
  });
});

describe('the events feed through the SDK', () => {
  it('is read by name, organization, range and cursor', async () => {
    const before = new Date().toISOString();
    const organization = await workos.organizations.createOrganization({ name: 'Eventful' });
    await workos.organizations.updateOrganization({ organization: organization.id, name: 'More eventful' });
    await workos.organizations.createOrganization({ name: 'Another' });
    const events = ['organization.created', 'organization.updated'] as const;
    const query = { events: [...events], organizationId: organization.id, rangeStart: before, rangeEnd: new Date(Date.now() + 60_000).toISOString() };
    await suite.eventually(`/events?organization_id=${organization.id}&events=organization.updated`, { data: [{ event: 'organization.updated' }] });

    const { data } = await workos.events.listEvents(query);
    expect(data.map(({ event }) => event)).toEqual(events);
    expect(data[0]).toMatchObject({ data: { object: 'organization', id: organization.id, name: 'Eventful' } });
    expect(data[1]).toMatchObject({ data: { name: 'More eventful' } });

    const first = await workos.events.listEvents({ ...query, limit: 1 });
    expect(first.data).toEqual([data[0]]);
    const { rangeStart: _, ...afterwards } = query;
    const next = await workos.events.listEvents({ ...afterwards, after: first.listMetadata.after! });
    expect(next.data).toEqual([data[1]]);
    expect((await workos.events.listEvents({ ...query, order: 'desc' })).data).toEqual([...data].reverse());
  });
});

describe('webhook endpoints through the SDK', () => {
  it('are created, listed with their secrets, updated and deleted', async () => {
    const { webhooks } = workos10;
    const created = await webhooks.createWebhookEndpoint({ endpointUrl: 'https://127.0.0.1:9/sdk', events: ['organization.created'] });
    expect(created).toMatchObject({ object: 'webhook_endpoint', endpointUrl: 'https://127.0.0.1:9/sdk', status: 'enabled', events: ['organization.created'] });
    expect(created.secret).toMatch(/^whsec_/);
    expect((await webhooks.listWebhookEndpoints()).data).toContainEqual(created);

    const updated = await webhooks.updateWebhookEndpoint({ id: created.id, status: 'disabled', events: ['organization.updated'] });
    expect(updated).toMatchObject({ id: created.id, status: 'disabled', events: ['organization.updated'], secret: created.secret });

    await webhooks.deleteWebhookEndpoint({ id: created.id });
    expect((await webhooks.listWebhookEndpoints()).data.map(({ id }) => id)).not.toContain(created.id);
    await expect(webhooks.deleteWebhookEndpoint({ id: created.id })).rejects.toMatchObject({ name: 'NotFoundException', status: 404 });
  });

  it('meet the error classes of the SDK', async () => {
    const { webhooks } = workos10;
    const url = 'https://127.0.0.1:9/twin';
    await webhooks.createWebhookEndpoint({ endpointUrl: url, events: [] });
    await expect(webhooks.createWebhookEndpoint({ endpointUrl: url, events: [] })).rejects.toMatchObject({ name: 'ConflictException', status: 409 });
    await expect(webhooks.createWebhookEndpoint({ endpointUrl: 'nowhere', events: [] })).rejects.toMatchObject({
      name: 'UnprocessableEntityException',
      code: 'invalid_url',
    });
    await expect(webhooks.createWebhookEndpoint({ endpointUrl: `${url}/2`, events: ['no.such_event' as never] })).rejects.toMatchObject({
      name: 'UnprocessableEntityException',
      code: 'invalid_request_parameters',
    });
  });
});

describe('a delivered webhook', () => {
  let secret: string;
  let sigHeader: string;
  let payload: Record<string, unknown>;
  let text: string;
  beforeAll(async () => {
    const endpoint = await workos10.webhooks.createWebhookEndpoint({ endpointUrl: receiver.url, events: ['organization.created'] });
    secret = endpoint.secret;
    const { id } = await workos.organizations.createOrganization({ name: 'Délivered “out”', metadata: { note: 'a "quoted" text' } });
    const webhook = await receiver.receives(({ data }) => data.id === id);
    sigHeader = webhook.headers['workos-signature'] as string;
    text = webhook.body;
    payload = JSON.parse(text) as Record<string, unknown>;
  });

  it('is what the feed has', async () => {
    const { data } = await workos.events.listEvents({ events: ['organization.created'], organizationId: (payload['data'] as { id: string }).id });
    expect(await workos.webhooks.constructEvent({ payload, sigHeader, secret })).toEqual(data[0]);
  });

  it.each(['8.13', '10.14'])('passes the signature check of SDK %s', async (version) => {
    const { webhooks } = version === '8.13' ? workos : workos10;
    await expect(webhooks.verifyHeader({ payload, sigHeader, secret })).resolves.toBe(true);
  });

  it('passes it also as the text that arrived', async () => {
    expect(await workos10.webhooks.constructEvent({ payload: text, sigHeader, secret })).toMatchObject({ event: 'organization.created' });
  });

  it.each<[string, () => { payload: Record<string, unknown>; sigHeader: string; secret: string; tolerance?: number }]>([
    ['another secret', () => ({ payload, sigHeader, secret: `${secret}x` })],
    ['another body', () => ({ payload: { ...payload, id: 'event_forged' }, sigHeader, secret })],
    ['an old signature', () => ({ payload, sigHeader: sigHeader.replace(/t=\d+/, 't=1'), secret })],
  ])('fails the check with %s', async (_, forged) => {
    const checked = workos.webhooks.constructEvent(forged());
    await expect(checked).rejects.toBeInstanceOf(SignatureVerificationException);
  });
});

describe('the error classes of the SDK', () => {
  it.each<[string, () => Promise<unknown>, object]>([
    ['401', () => new WorkOS('sk_wrong', addressOf(suite)).organizations.listOrganizations(), { name: 'UnauthorizedException', status: 401 }],
    ['404', () => workos.organizations.getOrganization(UNKNOWN_ORGANIZATION), { name: 'NotFoundException', status: 404, code: 'entity_not_found' }],
    ['409', () => twin('taken-sdk.test'), { name: 'ConflictException', status: 409 }],
    [
      '422',
      () => workos.organizations.createOrganization({ name: '' }),
      { name: 'UnprocessableEntityException', status: 422, code: 'invalid_request_parameters' },
    ],
    [
      '422 with a code of its own',
      () => workos.organizations.createOrganization({ name: 'Mail', domainData: [{ domain: 'gmail.com', state: DomainDataState.Pending }] }),
      { name: 'UnprocessableEntityException', code: 'domain_not_allowed' },
    ],
    ['400', () => workos.organizations.createOrganization({ name: 'x', metadata: { key: 'ü' } }), { status: 400 }],
  ])('are met by a %s', async (_, call, expected) => {
    await expect(call()).rejects.toMatchObject(expected);
  });

  /** The same domain in the same organization twice. */
  async function twin(domain: string): Promise<unknown> {
    const { id: organizationId } = await workos.organizations.createOrganization({ name: 'Twins' });
    await workos.organizationDomains.create({ domain, organizationId });
    return workos.organizationDomains.create({ domain, organizationId });
  }
});
