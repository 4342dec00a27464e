import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { openApiDocument } from '#libs/contracts/src/openapi';
import { DirectoryGroup } from '#libs/contracts/src/directories/directory-group';
import { Directory } from '#libs/contracts/src/directories/directory';
import { Group } from '#libs/contracts/src/groups/group';
import { operations, takesKey, type Class, type RegisteredOperation } from '#libs/contracts/src/operation';
import { AuditLogEvent } from '#libs/contracts/src/audit-logs/audit-log-event';
import { OrganizationMembership } from '#libs/contracts/src/organization-memberships/organization-membership';
import { Organization, OrganizationDomain } from '#libs/contracts/src/organizations/organization';
import { User } from '#libs/contracts/src/users/user';
import type { Position } from '#libs/event-sourcing/src/log/event-store';
import { exchange, holdToDocument, type Exchange } from '#libs/testing/src/exchange';
import { givenWebhookReceiver } from '#libs/testing/src/given-webhook-receiver';
import { validRequest, type GeneratedRequest } from '#libs/testing/src/requests';
import { seedOf } from '#libs/testing/src/seed';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import type { WebhookReceiver } from '#libs/testing/src/webhook-receiver';
import { inhabitants, toReceiver, type Inhabitants } from './inhabitants.ts';

/** Of so many generated requests one is carried out: most name something that is there. */
const TRIES = 300;
const seed = seedOf('operations');
/** The cluster is in production mode. */
const IN_DEVELOPMENT_ONLY = 'DecideOrganizationDomain';
/** What they tell of depends on a DNS server. */
const TOLD_LATER = new Set(['CheckOrganizationDomain', 'VerifyOrganizationDomain']);

/** Each answer holds a token of its own, or tells how far something is by then. */
const ANSWERED_ANEW = new Set(['CreateWidgetToken', 'GetDirectoryRun', 'GetAuditLogExport']);

const document = openApiDocument('0.1.0');
const published = operations().filter(({ name, route }) => route !== null && name !== IN_DEVELOPMENT_ONLY);
const reads = published.filter(({ route, kind }) => route!.method === 'get' && kind === 'query');

/** An environment in which something of every kind lies. */
interface World extends Inhabitants {
  readonly caller: Caller;
}

let suite: GivenSuite;
let receiver: WebhookReceiver;
let world: World | null = null;
beforeAll(async () => {
  suite = await givenSuite();
  receiver = await givenWebhookReceiver();
});
afterAll(() => receiver.close());

async function newWorld(): Promise<World> {
  const caller = await suite.otherEnvironment('operations');
  return { caller, ...(await inhabitants(caller, receiver.url, await suite.clientIdOf(caller))) };
}

const INVITATIONS = '/user_management/invitations';
const PROJECT = { resource_type_slug: 'project', resource_external_id: 'project-42' };
const QUESTION = { permission_slug: 'documents:read', ...PROJECT };
const editorOf = (project: string): object => ({ role_slug: 'editor', ...PROJECT, resource_external_id: project });
const rightsOf = (ids: World['ids']): string => `/authorization/organization_memberships/${ids.get(OrganizationMembership)}`;

/** Three texts an hour go to each of them. */
let telephones = 0;

/** What of a request chance does not find, or not before hundreds of tries: something new, something unused, an id of the customer's own, a role on a resource. */
const prepared: Readonly<Record<string, (at: World) => Promise<{ readonly path?: string; readonly body?: object }>>> = {
  GetOrganizationByExternalId: async ({ externalId }) => ({ path: `/organizations/external_id/${externalId}` }),
  GetUserByExternalId: async ({ externalId }) => ({ path: `/user_management/users/external_id/${externalId}` }),
  // With a password it would be another hash each time.
  UpdateUser: async ({ ids }) => ({ path: `/user_management/users/${ids.get(User)}`, body: { first_name: named('Ada') } }),
  CreateOrganizationMembership: async (at) => ({ body: { user_id: await newUser(at), organization_id: at.ids.get(Organization) } }),
  AddGroupMember: async (at) => ({
    path: `/organizations/${at.ids.get(Organization)}/groups/${at.ids.get(Group)}/organization-memberships`,
    body: { organization_membership_id: await newMembership(at) },
  }),
  UpdateGroupMembers: async (at) => ({
    path: `/organizations/${at.ids.get(Organization)}/groups/${at.ids.get(Group)}/organization-memberships`,
    body: { add: [await newMembership(at)] },
  }),
  // What is asked has to be about something that is there.
  CheckAccess: async ({ ids }) => ({ path: `${rightsOf(ids)}/check`, body: QUESTION }),
  ExplainAccess: async ({ ids }) => ({ path: `${rightsOf(ids)}/check/explain`, body: QUESTION }),
  CheckAccessBatch: async ({ ids }) => ({ path: `${rightsOf(ids)}/check_batch`, body: { checks: [QUESTION] } }),
  GetJwtTemplate: async ({ caller }) => {
    await caller.put('/user_management/jwt_template', { content: '{}' }).expect(200);
    return {};
  },
  GetTokenKeySet: async ({ caller }) => ({ path: `/sso/jwks/${await suite.clientIdOf(caller)}` }),
  GetAuditLogKeys: async ({ caller }) => ({ path: `/audit_logs/keys?client_id=${await suite.clientIdOf(caller)}` }),
  SendEmailVerification: async (at) => ({ path: `/user_management/users/${await newUser(at)}/email_verification/send` }),
  ConfirmEmailVerification: async (at) => {
    const path = `/user_management/users/${await newUser(at)}/email_verification`;
    const { user } = await at.caller.post(`${path}/send`).expect(200);
    const sent = await at.caller.eventually('/events?events=email_verification.created&order=desc&limit=1', { data: [{ data: { user_id: user.id } }] });
    const { code } = await at.caller.get(`/user_management/email_verification/${sent.data[0].data.id}`).expect(200);
    return { path: `${path}/confirm`, body: { code } };
  },
  ConfirmPasswordReset: async ({ caller }) => {
    const email = `${randomUUID()}@acme.test`;
    await caller.post('/user_management/users', { email }).expect(201);
    const { password_reset_token: token } = await caller.post('/user_management/password_reset', { email }).expect(201);
    return { body: { token, new_password: 'ride-a-giraffe-7' } };
  },
  SendInvitation: async ({ ids }) => ({ body: { email: `${randomUUID()}@acme.test`, organization_id: ids.get(Organization), role_slug: 'admin' } }),
  FindInvitationByToken: async (at) => ({ path: `${INVITATIONS}/by_token/${(await newInvitation(at)).token}` }),
  AcceptInvitation: async (at) => ({ path: `${INVITATIONS}/${(await newInvitation(at)).id}/accept` }),
  ResendInvitation: async (at) => ({ path: `${INVITATIONS}/${(await newInvitation(at)).id}/resend` }),
  RevokeInvitation: async (at) => ({ path: `${INVITATIONS}/${(await newInvitation(at)).id}/revoke` }),
  Authenticate: async ({ caller }) => {
    const email = `${randomUUID()}@acme.test`;
    const { code } = await caller.post('/user_management/magic_auth', { email }).expect(201);
    const client = { client_id: await suite.clientIdOf(caller), client_secret: caller.key };
    return { body: { ...client, grant_type: 'urn:workos:oauth:grant-type:magic-auth:code', email, code } };
  },
  AddRadarListEntry: async () => ({ path: '/radar/lists/email/block', body: { entry: `${named('listed')}@acme.test` } }),
  RemoveRadarListEntry: async ({ caller }) => {
    const entry = `${named('listed')}@acme.test`;
    await caller.post('/radar/lists/email/block', { entry }).expect(200);
    return { path: '/radar/lists/email/block', body: { entry } };
  },
  LogOut: async ({ caller }) => {
    await caller.patch('/admin/environment_settings', { sign_out_uris: ['https://acme.test/bye'] }).expect(200);
    const email = `${randomUUID()}@acme.test`;
    const { code } = await caller.post('/user_management/magic_auth', { email }).expect(201);
    const client = { client_id: await suite.clientIdOf(caller), client_secret: caller.key };
    const { user } = await caller
      .post('/user_management/authenticate', { ...client, grant_type: 'urn:workos:oauth:grant-type:magic-auth:code', email, code })
      .expect(200);
    const { data } = await caller.eventually(`/user_management/users/${user.id}/sessions`, { data: [{ user_id: user.id }] });
    return { path: `/user_management/sessions/logout?session_id=${data[0].id}` };
  },
  CreateAuditLogEvent: async ({ ids }) => ({
    body: {
      organization_id: ids.get(Organization),
      event: { action: named('action'), occurred_at: new Date().toISOString(), actor: { id: 'a', type: 'user' }, targets: [], context: { location: '' } },
    },
  }),
  CreateAuditLogExport: async ({ ids }) => ({
    body: { organization_id: ids.get(Organization), range_start: new Date(Date.now() - 60_000).toISOString(), range_end: new Date().toISOString() },
  }),
  ListAuditLogEvents: async ({ ids }) => ({ path: `/audit_logs/events?organization_id=${ids.get(Organization)}` }),
  GetAuditLogCheckpoint: async (at) => ({ path: `${await signedTrail(at)}/checkpoint` }),
  ProveAuditLogInclusion: async (at) => ({ path: `${await signedTrail(at)}/inclusion?event_id=${at.ids.get(AuditLogEvent)}` }),
  ProveAuditLogConsistency: async (at) => ({ path: `${await signedTrail(at)}/consistency?from=1` }),
  ConfigureAuditLogStream: async (at) => ({ path: streamOf(at), body: { type: 'GenericHttps', url: `${receiver.url}/${randomUUID()}`, secret: randomUUID() } }),
  GetAuditLogStream: async (at) => ({ path: await configuredStream(at) }),
  DeleteAuditLogStream: async (at) => ({ path: await configuredStream(at) }),
  PauseAuditLogStream: async (at) => ({ path: `${await configuredStream(at)}/pause` }),
  ResumeAuditLogStream: async (at) => ({ path: `${await configuredStream(at)}/resume` }),
  ListAuditLogStreamDeliveries: async (at) => ({ path: `${await configuredStream(at)}/deliveries` }),
  EnrollAuthenticationFactor: async () => ({ body: { type: 'totp', totp_issuer: 'Acme', totp_user: 'ada@acme.test' } }),
  ChallengeAuthenticationFactor: async ({ caller }) => {
    // In production mode texts go to a webhook, or nowhere.
    const sms = { countries: ['DE'], webhook_url: receiver.url, webhook_secret: 'whsec_operations' };
    await caller.patch('/admin/environment_settings', { sms }).expect(200);
    const phone_number = `+4915112${String(++telephones).padStart(6, '0')}`;
    // Where the settings were not heard of yet, nobody is sent a text.
    const { id } = await eventually(() => caller.post('/auth/factors/enroll', { type: 'sms', phone_number }).expect(201));
    return { path: `/auth/factors/${id}/challenge`, body: { sms_template: 'Acme: {{code}}' } };
  },
  EnrollUserAuthenticationFactor: async ({ ids }) => ({ path: `/user_management/users/${ids.get(User)}/auth_factors`, body: { type: 'totp' } }),
  VerifyAuthenticationChallenge: async ({ caller }) => {
    const factor = await caller.post('/auth/factors/enroll', { type: 'generic_otp' }).expect(201);
    const { id, code } = await caller.post(`/auth/factors/${factor.id}/challenge`).expect(201);
    return { path: `/auth/challenges/${id}/verify`, body: { code } };
  },
  CreateResourceType: async () => ({ body: { slug: named('type'), name: 'Type', parent_type_slugs: ['organization'] } }),
  DeleteResourceType: async ({ caller }) => ({
    path: `/admin/resource_types/${await slugOf(caller, '/admin/resource_types', { parent_type_slugs: ['organization'] })}`,
  }),
  CreateRoleAssignment: async ({ ids }) => ({ path: `${rightsOf(ids)}/role_assignments`, body: editorOf('project-7') }),
  DeleteRoleAssignment: async ({ ids }) => ({ path: `${rightsOf(ids)}/role_assignments`, body: editorOf('project-42') }),
  CreateGroupRoleAssignment: async ({ ids }) => ({ path: `/authorization/groups/${ids.get(Group)}/role_assignments`, body: editorOf('project-7') }),
  DeleteGroupRoleAssignment: async ({ ids }) => ({ path: `/authorization/groups/${ids.get(Group)}/role_assignments`, body: editorOf('project-42') }),
  AddRolePermission: async ({ caller }) => ({
    path: '/authorization/roles/editor/permissions',
    body: { slug: await slugOf(caller, '/authorization/permissions', { resource_type_slug: 'project' }) },
  }),
  SetRolePriority: async ({ caller }) => ({ body: { role_slugs: [await slugOf(caller, '/authorization/roles'), 'editor'] } }),
  SetRoleMappings: async ({ ids }) => ({
    path: `/admin/directories/${ids.get(Directory)}/role_mappings`,
    body: { role_mappings: [{ group_id: ids.get(DirectoryGroup), role_slug: 'member' }] },
  }),
  SetOrganizationRolePermissions: async (at) => ({
    path: `/authorization/organizations/${at.ids.get(Organization)}/roles/org-auditor/permissions`,
    body: { permissions: [await slugOf(at.caller, '/authorization/permissions')] },
  }),
  RemoveOrganizationRolePermission: async ({ caller, ids }) => {
    const path = `/authorization/organizations/${ids.get(Organization)}/roles/org-auditor/permissions`;
    const slug = await slugOf(caller, '/authorization/permissions');
    await caller.put(path, { permissions: [slug] }).expect(200);
    return { path: `${path}/${slug}` };
  },
};

let names = 0;

function named(kind: string): string {
  return `${kind}-${++names}`;
}

async function slugOf(caller: Caller, path: string, fields: object = {}): Promise<string> {
  return (await caller.post(path, { slug: named('slug'), name: 'New', ...fields }).expect(201)).slug as string;
}

async function newUser({ caller }: World): Promise<string> {
  return (await caller.post('/user_management/users', { email: `${randomUUID()}@acme.test` }).expect(201)).id as string;
}

function streamOf({ ids }: World): string {
  return `/admin/organizations/${ids.get(Organization)}/audit_log_stream`;
}

async function configuredStream(at: World): Promise<string> {
  await at.caller.put(streamOf(at), { type: 'GenericHttps', url: `${receiver.url}/${randomUUID()}`, secret: randomUUID() }).expect(200);
  return streamOf(at);
}

/** Of somebody who is a user, so that it can be accepted. */
/** Below which the proofs of a trail are, once it has a checkpoint. */
async function signedTrail({ caller, ids }: World): Promise<string> {
  const trail = `/audit_logs/organizations/${ids.get(Organization)}`;
  await caller.eventually(`${trail}/checkpoint`, {});
  return trail;
}

async function newInvitation({ caller, ids }: World): Promise<{ readonly id: string; readonly token: string }> {
  const { email } = await caller.post('/user_management/users', { email: `${randomUUID()}@acme.test` }).expect(201);
  return caller.post(INVITATIONS, { email, organization_id: ids.get(Organization) }).expect(201);
}

async function newMembership(at: World): Promise<string> {
  const body = { user_id: await newUser(at), organization_id: at.ids.get(Organization) };
  return (await at.caller.post('/user_management/organization_memberships', body).expect(201)).id as string;
}

async function requestsFor({ name, route, ...rest }: RegisteredOperation, at: World): Promise<readonly GeneratedRequest[]> {
  if (name in prepared) return [{ method: route!.method, path: route!.path, body: undefined, ...(await prepared[name]!(at)) }];
  const known = (type: Class): readonly string[] => [at.ids.get(type) ?? []].flat();
  return fc.sample(validRequest({ name, route, ...rest }, known), { numRuns: TRIES, seed }).map((request) => toReceiver(request, receiver.url));
}

/** A request that was carried out. */
interface Done {
  readonly world: World;
  readonly request: GeneratedRequest;
  readonly key: string | null;
  readonly answer: Exchange;
  /** Of the log, before it. */
  readonly before: Position;
  /** Public events that were recorded with it, by id. */
  readonly told: ReadonlyMap<string, string>;
}

/** The first gateway is asked, and then the other. */
async function ask(at: World, place: 0 | -1, request: GeneratedRequest, headers: Readonly<Record<string, string>> = {}): Promise<Exchange> {
  const answer = await exchange({ url: suite.urls.at(place)!, key: at.caller.key }, request, headers);
  holdToDocument(document, request, answer);
  return answer;
}

async function toldAfter(position: Position, requestId: string): Promise<ReadonlyMap<string, string>> {
  const records = (await suite.recordsAfter(position)).filter(({ meta }) => meta.requestId === requestId);
  return new Map(records.flatMap((record) => record.public.map(({ id, name }) => [id, name] as const)));
}

/** What was taken away by those before it is there again in a new environment. */
async function carriedOut(operation: RegisteredOperation): Promise<Done> {
  const statuses = new Map<string, number>();
  for (const isNew of [world === null, true]) {
    const at = (world = isNew ? await newWorld() : world!);
    for (const request of await requestsFor(operation, at)) {
      const [requestId, key] = [randomUUID(), takesKey(operation) ? randomUUID() : null];
      const before = await suite.head();
      const answer = await ask(at, 0, request, { 'X-Request-ID': requestId, ...(key !== null && { 'Idempotency-Key': key }) });
      const told = answer.status < 400 && operation.kind === 'command' ? await toldAfter(before, requestId) : new Map<string, string>();
      if (answer.status < 400 && (told.size > 0 || !tells(operation))) return { world: at, request, key, answer, before, told };
      const outcome = answer.status < 400 ? `${answer.status} without an event` : `${answer.status} ${answer.body.code}`;
      statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1);
    }
  }
  throw new Error(`No request was carried out: ${JSON.stringify([...statuses])}. Give its fields examples, let there be what it needs, or prepare it.`);
}

function tells({ name, options: { emits = [] } }: RegisteredOperation): boolean {
  return emits.length > 0 && !TOLD_LATER.has(name);
}

/** Where what a command answered, or changed, can be read. */
function readingsOf({ route }: RegisteredOperation, { request, answer }: Done): readonly string[] {
  const [path] = request.path.split('?') as [string];
  // A list of everything may want a filter.
  const isRead =
    route!.parameters.length > 0 && reads.some((read) => read.route!.path.replaceAll(/\{\w+\}/g, '{}') === route!.path.replaceAll(/\{\w+\}/g, '{}'));
  const last = reads.find((read) => read.route!.path.replace(/\/\{\w+\}$/, '/') === `${route!.path}/`)?.route!.parameters.at(-1);
  const value: unknown = last === undefined ? undefined : (answer.body?.[last] ?? answer.body?.id);
  return [...(isRead ? [path] : []), ...(typeof value === 'string' && route!.method === 'post' ? [`${path}/${encodeURIComponent(value)}`] : [])];
}

/** What was taken away is not found again, nor is a session that has ended; and what takes a while is not begun twice. */
function isOver({ name, route }: RegisteredOperation, { status, body }: Exchange): boolean {
  const isRefused =
    (name === 'LogOut' && body?.code === 'session_not_found') || (name === 'SendDirectoryListing' && body?.code === 'directory_run_in_progress');
  return (route!.method === 'delete' && status === 404) || isRefused;
}

const byMethod = ['get', 'post', 'put', 'patch', 'delete'];
/** What takes away comes last, and the whole after its parts. */
const ordered = [...published].sort(
  ({ route: one }, { route: other }) =>
    byMethod.indexOf(one!.method) - byMethod.indexOf(other!.method) || (one!.method === 'delete' ? other!.path.length - one!.path.length : 0),
);
const cases = (kind: 'command' | 'query') => ordered.filter((operation) => operation.kind === kind).map((operation) => [operation.name, operation] as const);

describe('what one gateway is asked', () => {
  it.each(cases('query'))('the other answers as it does: %s', async (_, operation) => {
    const { world, request, answer } = await carriedOut(operation);
    const { status, body } = await ask(world, -1, request);
    expect(status).toBe(answer.status);
    if (!ANSWERED_ANEW.has(operation.name)) expect(body).toEqual(answer.body);
  });
});

describe('what one gateway is told', () => {
  it.each(cases('command'))('the other knows, is told once, and shows in the feed: %s', async (_, operation) => {
    const done = await carriedOut(operation);
    const { world, request, key, answer, told } = done;
    const { method } = operation.route!;

    for (const path of readingsOf(operation, done)) {
      const read = await ask(world, -1, { method: 'get', path, body: undefined });
      if (method === 'delete' && read.body?.object !== 'list') expect(read.status).toBe(404);
      else expect(read.status).toBe(200);
      if (method !== 'delete' && read.body.object === answer.body?.object && read.body.id === answer.body?.id) expect(answer.body).toMatchObject(read.body);
    }

    const [again, requestId] = [await suite.head(), randomUUID()];
    const repeated = await ask(world, -1, request, { 'X-Request-ID': requestId, ...(key !== null && { 'Idempotency-Key': key }) });
    if (key !== null) expect([repeated.status, repeated.body, repeated.headers['idempotent-replayed']]).toEqual([answer.status, answer.body, 'true']);
    else expect(repeated.status).toBe(isOver(operation, repeated) ? repeated.status : answer.status);
    expect([...(await toldAfter(again, requestId))]).toEqual([]);

    const names = new Set(told.values());
    expect(operation.options.emits ?? []).toEqual(expect.arrayContaining([...names]));
    if (told.size === 0) return;
    await eventually(async () => {
      const feed = await ask(world, -1, { method: 'get', path: `/events?limit=100&order=desc&events=${[...names].join()}`, body: undefined });
      expect(feed.body.data.map(({ id }: { readonly id: string }) => id)).toEqual(expect.arrayContaining([...told.keys()]));
    });
  });
});

it('neither of them does what is for development', async () => {
  const at = (world = await newWorld());
  const { method, path } = operations().find(({ name }) => name === IN_DEVELOPMENT_ONLY)!.route!;
  const request = { method, path: path.replace('{id}', at.ids.get(OrganizationDomain)!), body: { state: 'verified' } };
  for (const place of [0, -1] as const) {
    const { status, body } = await ask(at, place, request);
    expect([status, body.code]).toEqual([403, 'forbidden']);
  }
});
