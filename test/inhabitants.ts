import { randomUUID } from 'node:crypto';
import '#libs/contracts/src/all';
import { ApiKey } from '#libs/contracts/src/api-keys/api-key';
import { AuditLogExport } from '#libs/contracts/src/audit-log-exports/audit-log-export';
import { AuditLogAction, AuditLogSchema } from '#libs/contracts/src/audit-log-schemas/audit-log-schema';
import { AuditLogEvent } from '#libs/contracts/src/audit-logs/audit-log-event';
import { AuthenticationChallenge, AuthenticationFactor } from '#libs/contracts/src/authentication-factors/authentication-factor';
import { AuthorizationResource } from '#libs/contracts/src/authorization-resources/authorization-resource';
import { CorsOrigin, RedirectUri } from '#libs/contracts/src/browser-addresses/browser-addresses';
import { DirectoryGroup } from '#libs/contracts/src/directories/directory-group';
import { DirectoryRun } from '#libs/contracts/src/directories/directory-run';
import { DirectoryUser } from '#libs/contracts/src/directories/directory-user';
import { ConfiguredDirectory, Directory, DirectoryRequest, DirectoryToken, DirectoryTokenWithValue } from '#libs/contracts/src/directories/directory';
import { EmailVerification } from '#libs/contracts/src/email-verification/email-verification';
import { Event } from '#libs/contracts/src/feed/event';
import { Group } from '#libs/contracts/src/groups/group';
import { Invitation, InvitationWithToken } from '#libs/contracts/src/invitations/invitation';
import { MagicAuth } from '#libs/contracts/src/magic-auth/magic-auth';
import { operations, type Class, type RegisteredOperation } from '#libs/contracts/src/operation';
import { fieldsOf, mayBeAbsent, type Field } from '#libs/contracts/src/field';
import { placesOf } from '#libs/contracts/src/json-schema';
import {
  FullOrganizationMembership,
  OrganizationMembership,
  OrganizationMembershipWithUser,
} from '#libs/contracts/src/organization-memberships/organization-membership';
import { Organization, OrganizationDomain } from '#libs/contracts/src/organizations/organization';
import { PasswordReset } from '#libs/contracts/src/password-reset/password-reset';
import { Permission } from '#libs/contracts/src/permissions/permission';
import { RadarAttempt, RadarChallenge } from '#libs/contracts/src/radar/radar';
import { ResourceType } from '#libs/contracts/src/resource-types/resource-type';
import { GroupRoleAssignment, RoleAssignment } from '#libs/contracts/src/role-assignments/role-assignment';
import { Role } from '#libs/contracts/src/roles/role';
import { Session } from '#libs/contracts/src/sessions/session';
import { User } from '#libs/contracts/src/users/user';
import { WebhookDelivery, WebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import type { GeneratedRequest } from '#libs/testing/src/requests';
import type { Caller } from '#libs/testing/src/suite';

/** One object of each kind, by class; those of one organization all belong to the same one. */
export interface Inhabitants {
  readonly ids: ReadonlyMap<Class, string>;
  readonly externalId: string;
  readonly domain: string;
  /** By operation, what is in a list that does not hold the object of its class. */
  readonly listed: Readonly<Record<string, string>>;
}

/** What the examples in the contracts name, so that generated requests find it: types, a permission and a role. Where a request took one away, it is there again. */
async function model(caller: Caller): Promise<ReadonlyMap<Class, string>> {
  const ensured = async <Named extends { readonly slug: string }>(path: string, body: Named): Promise<string> => {
    const { status, text, body: made } = await caller.post(path, body);
    if (status === 201) return made.id;
    if (status !== 409) throw new Error(`${path} was answered ${status}: ${text}`);
    return (await caller.get(`${path}/${encodeURIComponent(body.slug)}`).expect(200)).id;
  };
  const workspace = { slug: 'workspace', name: 'Workspace', parent_type_slugs: ['organization'] };
  const project = { slug: 'project', name: 'Project', parent_type_slugs: ['organization', 'workspace'] };
  await ensured('/admin/resource_types', workspace);
  const type = await ensured('/admin/resource_types', project);
  await caller.patch('/admin/resource_types/project', { parent_type_slugs: project.parent_type_slugs }).expect(200);
  const permission = await ensured('/authorization/permissions', { slug: 'documents:read', name: 'Read documents', resource_type_slug: 'project' });
  const role = await ensured('/authorization/roles', { slug: 'editor', name: 'Editor', resource_type_slug: 'project' });
  await caller.put('/authorization/roles/editor/permissions', { permissions: ['documents:read'] }).expect(200);
  return new Map<Class, string>([
    [ResourceType, type],
    [Permission, permission],
    [Role, role],
  ]);
}

/** An organization with people, groups, resources and roles on them. */
export async function organization(caller: Caller, clientId: string, externalId: string = randomUUID()): Promise<Inhabitants> {
  const domain = `${randomUUID()}.test`;
  const created = async (path: string, body: object): Promise<string> => (await caller.post(path, body).expect(201)).id as string;

  const id = await created('/organizations', { name: `Called ${externalId}`, external_id: externalId });
  const added = await created('/organization_domains', { domain, organization_id: id });
  const member = await created('/user_management/users', { email: `${externalId}@acme.test`, external_id: externalId });
  const membership = await created('/user_management/organization_memberships', { user_id: member, organization_id: id });
  const group = await created(`/organizations/${id}/groups`, { name: 'Editors' });
  await caller.post(`/organizations/${id}/groups/${group}/organization-memberships`, { organization_membership_id: membership }).expect(200);
  await created(`/authorization/organizations/${id}/roles`, { slug: 'org-auditor', name: 'Auditor' });
  const workspace = { resource_type_slug: 'workspace', external_id: 'workspace-7', name: 'Workspace 7', organization_id: id };
  const parent = await created('/authorization/resources', workspace);
  const project = (external_id: string): Promise<string> =>
    created('/authorization/resources', { organization_id: id, resource_type_slug: 'project', external_id, name: external_id, parent_resource_id: parent });
  await project('project-7');
  const resource = await project('project-42');
  const role = { role_slug: 'editor', resource_id: resource };
  const key = await created(`/organizations/${id}/api_keys`, { name: 'Build server' });
  const keyOfUser = await created(`/user_management/users/${member}/api_keys`, { name: 'Laptop', organization_id: id });
  const email = `${externalId}@acme.test`;
  await caller.post(`/user_management/users/${member}/email_verification/send`).expect(200);
  const sent = await caller.eventually(`/events?events=email_verification.created&order=desc&limit=1`, { data: [{ data: { user_id: member } }] });
  const invitation = await created('/user_management/invitations', { email: `invited-${externalId}@acme.test`, organization_id: id });
  const magicAuth = await caller.post('/user_management/magic_auth', { email }).expect(201);
  const shown = { client_id: clientId, client_secret: caller.key, grant_type: 'urn:workos:oauth:grant-type:magic-auth:code', email, code: magicAuth.code };
  await caller.post('/user_management/authenticate', shown).expect(200);
  const sessions = await caller.get(`/user_management/users/${member}/sessions`).expect(200);
  // Never verified: nobody is asked for it.
  const factor = await created('/auth/factors/enroll', { type: 'generic_otp', user_id: member });
  const directory = await created('/admin/directories', { organization_id: id, type: 'okta scim v2.0', name: 'People' });
  const token = await caller.post(`/admin/directories/${directory}/tokens`).expect(201);
  const scim = async (path: string, body: object): Promise<string> => (await caller.scim('POST', directory, path, token.token, { body })).body.id;
  const person = await scim('/Users', { userName: email, externalId: externalId, emails: [{ value: email, primary: true }] });
  const team = await scim('/Groups', { displayName: 'Engineering', members: [{ value: person }] });
  await caller.put(`/admin/directories/${directory}/role_mappings`, { role_mappings: [{ group_id: team, role_slug: 'admin' }] }).expect(200);
  const listing = await caller.put(`/admin/directories/${directory}/snapshot?dry_run=true`, 'id\n1\n', { 'Content-Type': 'text/csv' }).expect(202);
  const requests = await caller.eventually(`/admin/directories/${directory}/requests?limit=1`, { data: [{ status: 201 }] });
  const happened = {
    action: 'document.shared',
    occurred_at: new Date().toISOString(),
    actor: { id: member, type: 'user' },
    targets: [],
    context: { location: '' },
  };
  await caller.post('/audit_logs/events', { organization_id: id, event: happened }).expect(200);
  const trail = await caller.get(`/audit_logs/events?organization_id=${id}`).expect(200);
  const asked = { organization_id: id, range_start: happened.occurred_at, range_end: happened.occurred_at, actor_names: [externalId] };
  const exported = await created('/audit_logs/exports', asked);
  // They have no ids: cursors name them.
  const schemas = (action: string): string => `/audit_logs/actions/${action}/schemas`;
  for (const action of ['document.shared', 'document.shared', externalId]) await caller.post(schemas(action), { targets: [{ type: externalId }] }).expect(201);
  const cursorOf = async (path: string): Promise<string> => (await caller.get(`${path}?limit=1`).expect(200)).list_metadata.after;
  const ids = new Map<Class, string>([
    [AuditLogEvent, trail.data[0].id],
    [AuditLogExport, exported],
    [AuditLogAction, await cursorOf('/audit_logs/actions')],
    [AuditLogSchema, await cursorOf(schemas('document.shared'))],
    [Directory, directory],
    [ConfiguredDirectory, directory],
    [DirectoryToken, token.id],
    [DirectoryTokenWithValue, token.id],
    [DirectoryUser, person],
    [DirectoryGroup, team],
    [DirectoryRequest, requests.data[0].id],
    [DirectoryRun, listing.id],
    [AuthenticationFactor, factor],
    [AuthenticationChallenge, await created(`/auth/factors/${factor}/challenge`, {})],
    [Session, sessions.data[0].id],
    [Invitation, invitation],
    [InvitationWithToken, invitation],
    [MagicAuth, magicAuth.id],
    [EmailVerification, sent.data[0].data.id],
    [PasswordReset, await created('/user_management/password_reset', { email })],
    [ApiKey, key],
    [Organization, id],
    [OrganizationDomain, added],
    [User, member],
    [OrganizationMembership, membership],
    [FullOrganizationMembership, membership],
    [OrganizationMembershipWithUser, membership],
    [Group, group],
    [AuthorizationResource, resource],
    [RoleAssignment, await created(`/authorization/organization_memberships/${membership}/role_assignments`, role)],
    [GroupRoleAssignment, await created(`/authorization/groups/${group}/role_assignments`, role)],
  ]);
  return {
    ids,
    externalId,
    domain,
    listed: { ListUserApiKeys: keyOfUser, ListRoleMappings: team, ListAuditLogActions: externalId, ListAuditLogSchemas: externalId },
  };
}

/** Somebody who comes with a program, and has to show a code beside their password. */
async function challenged(caller: Caller, client_id: string): Promise<string> {
  const known = { email: `${randomUUID()}@acme.test`, password: 'ride-a-giraffe-7' };
  await caller.post('/user_management/users', { ...known, email_verified: true }).expect(201);
  await caller.patch('/admin/environment_settings', { risk: { bot_detection: 'challenge' } }).expect(200);
  const shown = { client_id, client_secret: caller.key, grant_type: 'password', ...known, user_agent: 'curl/8.5.0' };
  const { radar_challenge_id } = await caller.post('/user_management/authenticate', shown).expect(403);
  await caller.patch('/admin/environment_settings', { risk: { bot_detection: 'log' } }).expect(200);
  return radar_challenge_id;
}

/** An organization, and a webhook that told of it, to a path that ends in its external id. */
export async function inhabitants(caller: Caller, receiver: string, clientId: string): Promise<Inhabitants> {
  const externalId = randomUUID();
  const endpoint = { endpoint_url: `${receiver}/${externalId}`, events: ['organization.created'] };
  const { id: webhook } = await caller.post('/webhook_endpoints', endpoint).expect(201);
  // Whatever a request has set, people sign in by code here.
  const open = { sign_up: true, mfa: 'optional', readable_codes: true, sign_in_methods: { magic_auth: true, password: true } };
  await caller.patch('/admin/environment_settings', open).expect(200);
  await caller.put('/user_management/jwt_template', { content: '{}' }).expect(200);
  const modelled = await model(caller);
  const { ids, ...names } = await organization(caller, clientId, externalId);
  const { data } = await caller.eventually(`/webhook_endpoints/${webhook}/deliveries`, { data: [{ status: 'delivered' }] });
  await caller.eventually(`/events?organization_id=${ids.get(Organization)}&events=organization.created`, { data: [{ event: 'organization.created' }] });
  const { id: redirectUri } = await caller.post('/user_management/redirect_uris', { uri: `https://acme.test/${externalId}` }).expect(201);
  const { id: corsOrigin } = await caller.post('/user_management/cors_origins', { origin: `https://${externalId}.test` }).expect(201);
  const tried = { ip_address: '192.0.2.1', user_agent: 'Mozilla/5.0', email: `${externalId}@acme.test`, auth_method: 'Password', action: 'sign-in' };
  const { attempt_id: attempt } = await caller.post('/radar/attempts', tried).expect(200);
  const told: readonly (readonly [Class, string])[] = [
    [RadarAttempt, attempt],
    [RadarChallenge, await challenged(caller, clientId)],
    [RedirectUri, redirectUri],
    [CorsOrigin, corsOrigin],
    [WebhookEndpoint, webhook],
    [WebhookDelivery, data[0].id],
    [Event, data[0].event_id],
  ];
  return { ids: new Map([...modelled, ...ids, ...told]), ...names };
}

/** Nothing is sent beyond this machine. */
export function toReceiver(request: GeneratedRequest, receiver: string): GeneratedRequest {
  const { body } = request;
  if (typeof body !== 'object' || body === null) return request;
  const fields = ['endpoint_url', 'url'].filter((field) => String(body[field as keyof typeof body]).startsWith('http'));
  // A list stays one: it is to be refused.
  return fields.length === 0
    ? request
    : { ...request, body: { ...body, ...Object.fromEntries(fields.map((field) => [field, `${receiver}/${randomUUID()}`])) } };
}

const published = operations().filter((operation) => operation.route !== null);
export const lists = published.filter(
  ({ route, options }) => route!.method === 'get' && (options.answers.shape === 'list' || options.answers.shape === 'feed'),
);
export const pagedLists = lists.filter(({ type }) => fieldsOf(type).some(({ name }) => name === 'after'));

/** Lists that want one of several filters. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  ListAuditLogEvents: ['organization_id'],
  ListOrganizationMemberships: ['organization_id'],
  ListAuthorizationResources: ['organization_id'],
  ListAccessibleResources: ['parent_resource_external_id', 'parent_resource_type_slug'],
};

/** Where a list is asked for that holds something, up to further parameters. */
export function pathOfList(operation: RegisteredOperation, ids: Inhabitants['ids']): string {
  const { path, query } = placesOf(operation);
  const value = (field: Field): string => {
    const found = field.kind === 'ref' ? ids.get(field.of()) : 'example' in field ? field.example : undefined;
    if (typeof found !== 'string') throw new Error(`${operation.name} needs ${field.name}: let there be something, or give an example in its contract.`);
    return encodeURIComponent(found);
  };
  const filled = path.reduce((all, field) => all.replace(`{${field.name}}`, value(field)), operation.route!.path);
  const needed = query.filter((field) => !mayBeAbsent(field) || NEEDED[operation.name]?.includes(field.name));
  return `${filled}?${needed.map((field) => `${field.name}=${value(field)}&`).join('')}`;
}
