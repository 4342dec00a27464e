import type { AuthorizationModelEvent } from '#apps/authorization/src/domain/authorization-model.decider';
import type { OrganizationRolesEvent } from '#apps/authorization/src/domain/organization-roles.decider';
import type { DirectoryEvent } from '#apps/directory-sync/src/domain/directory.decider';
import type { ApiKeyEvent } from '#apps/identity/src/domain/api-key.decider';
import type { AuthenticationPolicyEvent } from '#apps/identity/src/domain/authentication-policy.decider';
import type { BrowserAddressesEvent } from '#apps/identity/src/domain/browser-addresses.decider';
import type { EnvironmentSettingsEvent } from '#apps/identity/src/domain/environment-settings.decider';
import type { EnvironmentEvent } from '#apps/identity/src/domain/environment.decider';
import type { JwtTemplateEvent } from '#apps/identity/src/domain/jwt-template.decider';
import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import type { RiskListEvent } from '#apps/identity/src/domain/risk-list.decider';
import type { TokenKeysEvent } from '#apps/identity/src/domain/token-keys.decider';
import type { UserEvent } from '#apps/identity/src/domain/user.decider';
import type { WebhookEndpointEvent } from '#apps/notifications/src/domain/webhook-endpoint.decider';
import { DEFAULT_POLICY } from '#libs/contracts/src/authentication-policy/default-policy.decider';
import type { AdministrativeFact } from '#libs/contracts/src/administration';
import { FIRST_POLICY } from '#libs/contracts/src/directories/first-policy.decider';
import { DEFAULT_SETTINGS } from '#libs/contracts/src/environment-settings/default-settings.decider';
import type { Fact, FactOf } from '#libs/event-sourcing/src/deciding/decider';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { environmentOf, streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import type { AuditActionEvent } from '../domain/audit-action.decider.ts';
import type { AuditExportEvent } from '../domain/audit-export.decider.ts';
import type { AuditKeysEvent } from '../domain/audit-keys.decider.ts';
import { auditRetentionDecider, type AuditRetentionEvent } from '../domain/audit-retention.decider.ts';
import type { AuditStreamEvent, StreamSettings } from '../domain/audit-stream.decider.ts';

type Facts =
  | EnvironmentEvent
  | EnvironmentSettingsEvent
  | AuthenticationPolicyEvent
  | BrowserAddressesEvent
  | JwtTemplateEvent
  | RiskListEvent
  | TokenKeysEvent
  | ApiKeyEvent
  | AuthorizationModelEvent
  | OrganizationRolesEvent
  | DirectoryEvent
  | WebhookEndpointEvent
  | OrganizationEvent
  | UserEvent
  | Fact<'data_key.given_up', { readonly key: string }>
  | AuditActionEvent
  | AuditKeysEvent
  | AuditExportEvent
  | AuditRetentionEvent
  | AuditStreamEvent;

/** The record of a fact, and what is known of its target beforehand. */
export interface Told<Data = unknown> {
  readonly record: Omit<RecordedEvent, 'data'> & { readonly data: Data };
  readonly known: ReadonlyMap<string, unknown>;
  /** The command by which the stream began. */
  readonly begunBy: string | null;
}

/** How an audit event is made of a fact. */
export interface Telling<Data = unknown> {
  /** Begins its target, changes it, or ends it. `happens`: it has none that anything is known of, and its stream is not read. */
  readonly does: 'begins' | 'changes' | 'ends' | 'happens';
  /** What kind of thing it was done to. */
  readonly target: string;
  idOf(record: Told<Data>['record']): string;
  /** What it says, but for what is nobody's to know. */
  shows(data: Data): object;
  /** What holds where nothing was said. */
  readonly defaults?: object;
  /** Absent: always. What follows from something that is told is left out, and so is what nobody administers by. */
  isTold?(told: Told<Data>, changes: boolean): boolean;
  /** Everything of this kind in the same stream loses it from a list of this name. */
  readonly takenFrom?: { readonly target: string; readonly list: string };
}

type DataOf<Type extends AdministrativeFact> = FactOf<Facts, Type>['data'];
type How<Data> = Partial<Pick<Telling<Data>, 'idOf' | 'defaults' | 'isTold' | 'takenFrom'>>;

const ofOwnId = ({ data }: { readonly data: unknown }): string => (data as { readonly id: string }).id;
const ofStream = ({ stream }: { readonly stream: string }): string => streamKeyOf(stream);
const ofEnvironment = ({ stream }: { readonly stream: string }): string => environmentOf(stream);

const { gone_before: _, ...firstRetention } = auditRetentionDecider.initial;

const telling =
  (does: Telling['does']) =>
  <Data>(target: string, shows: (data: Data) => object = () => ({}), how: How<Data> = {}): Telling<Data> => ({ does, target, shows, idOf: ofOwnId, ...how });
const begins = telling('begins');
const changes = telling('changes');
const ends = telling('ends');
const happens = telling('happens');

/** What the system records by itself follows from what somebody did, which is told. */
const unlessItFollows = <Data>({ record }: Told<Data>): boolean => record.meta.actor.id !== 'system';
/** Keys of people are theirs. */
const ofOrganization = <Data>(told: Told<Data>): boolean =>
  unlessItFollows(told) && (told.known.get('owner-type') === 'organization' || isOfOrganization(told.record.data));
const isOfOrganization = (data: unknown): boolean => (data as { readonly owner?: { readonly type?: string } }).owner?.type === 'organization';
/** An organization that is made with its domains is the daily work of an application. */
const afterItsOrganization = <Data>({ record, begunBy }: Told<Data>): boolean => record.meta.commandId !== begunBy;
const ifChanged = (_told: unknown, isChange: boolean): boolean => isChange;

const role = ({ slug, name, description, resource_type_slug }: { slug: string; name: string; description: string | null; resource_type_slug: string }) => ({
  slug,
  name,
  description,
  resource_type_slug,
});
const slugs = (permissions: readonly { readonly slug: string }[] | undefined) => permissions && { permissions: permissions.map(({ slug }) => slug) };

/** How each fact of administration is told. */
export const TELLINGS: { readonly [Type in AdministrativeFact]: Telling<DataOf<Type>> } = {
  'environment.created': begins('environment', ({ name, client_id }) => ({ name, client_id })),
  'environment.updated': changes('environment', ({ client_id }) => ({ client_id }), { idOf: ofStream }),
  'environment_key.created': begins('environment_key', ({ name, obfuscated_value }) => ({ name, obfuscated_value, expires_at: null, is_revoked: false })),
  'environment_key.rotated': changes('environment_key', ({ expires_at }) => ({ expires_at })),
  'environment_key.revoked': changes('environment_key', () => ({ is_revoked: true })),
  'environment_settings.changed': changes('environment_settings', (data) => data, { idOf: ofEnvironment, defaults: DEFAULT_SETTINGS }),
  'authentication_policy.changed': changes('authentication_policy', ({ organization_id: _, ...policy }) => policy, {
    idOf: ofStream,
    defaults: DEFAULT_POLICY,
  }),
  'redirect_uri.created': begins('redirect_uri', ({ uri }) => ({ uri, default: false })),
  'redirect_uri.made_default': changes('redirect_uri', () => ({ default: true })),
  'redirect_uri.deleted': ends('redirect_uri'),
  'cors_origin.created': begins('cors_origin', ({ origin }) => ({ origin })),
  'cors_origin.deleted': ends('cors_origin'),
  'jwt_template.set': changes('jwt_template', ({ content }) => ({ content }), { idOf: ofEnvironment }),
  'risk_list.entry_added': happens('radar_list_entry', ({ type, action }) => ({ type, action }), { idOf: ({ data }) => nameOfEntry(data) }),
  'risk_list.entry_removed': happens('radar_list_entry', ({ type, action }) => ({ type, action }), { idOf: ({ data }) => nameOfEntry(data) }),
  'token_key.created': happens('token_key', ({ public_key: { alg }, signs_from }) => ({ algorithm: alg, signs_from }), {
    idOf: ({ data }) => data.public_key.kid,
  }),
  'token_keys.dropped': happens('token_keys', ({ kids }) => ({ dropped: kids }), { idOf: ofEnvironment }),
  'api_key.created': begins(
    'api_key',
    ({ owner: { type, id }, name, obfuscated_value, permissions, expires_at }) => ({ owner: { type, id }, name, obfuscated_value, permissions, expires_at }),
    { isTold: ofOrganization },
  ),
  'api_key.updated': changes('api_key', ({ expires_at }) => ({ expires_at }), { isTold: ofOrganization }),
  'api_key.revoked': ends('api_key', undefined, { isTold: ofOrganization }),
  'resource_type.created': begins('resource_type', ({ slug, name, description, parents }) => ({
    slug,
    name,
    description,
    parents: parents.map((each) => each.slug),
  })),
  'resource_type.updated': changes('resource_type', ({ id: _, parents, ...data }) => ({
    ...data,
    ...(parents && { parents: parents.map((each) => each.slug) }),
  })),
  'resource_type.deleted': ends('resource_type'),
  'permission.created': begins('permission', role),
  'permission.updated': changes('permission', ({ id: _, ...data }) => data),
  'permission.deleted': ends('permission', undefined, { takenFrom: { target: 'role', list: 'permissions' } }),
  'role.created': begins('role', (data) => ({ ...role(data), ...slugs(data.permissions) })),
  // With an id alone, it tells of what follows from another fact.
  'role.updated': changes('role', ({ id: _, permissions, ...data }) => ({ ...data, ...slugs(permissions) }), { isTold: ifChanged }),
  'role.deleted': ends('role'),
  'roles.reordered': changes('roles', ({ role_ids }) => ({ role_ids }), { idOf: ofEnvironment }),
  'organization_role.created': begins('organization_role', (data) => ({ ...role(data), ...slugs(data.permissions) }), { isTold: unlessItFollows }),
  'organization_role.updated': changes('organization_role', ({ id: _, permissions, ...data }) => ({ ...data, ...slugs(permissions) }), {
    isTold: unlessItFollows,
  }),
  'organization_role.deleted': ends('organization_role', undefined, { isTold: unlessItFollows }),
  'role_mappings.changed': happens('directory', ({ added, removed }) => ({ roles_given: added, roles_taken: removed }), {
    idOf: ({ data }) => data.directory_id,
    isTold: unlessItFollows,
  }),
  'directory.created': begins('directory', ({ type, name, attributes, policy = FIRST_POLICY }) => ({ type, name, attributes, policy, is_unlinked: false })),
  'directory.updated': changes('directory', ({ id: _, ...data }) => data),
  'directory.unlinked': changes('directory', () => ({ is_unlinked: true })),
  'directory.relinked': changes('directory', () => ({ is_unlinked: false })),
  'dsync.deleted': ends('directory', undefined, { isTold: unlessItFollows }),
  'dsync.token.created': begins('directory_token', ({ directory_id, token_suffix }) => ({ directory_id, token_suffix })),
  'dsync.token.revoked': ends('directory_token'),
  'webhook_endpoint.created': begins('webhook_endpoint', ({ endpoint_url, events, secret }) => ({ endpoint_url, events, status: 'enabled', secret })),
  'webhook_endpoint.updated': changes('webhook_endpoint', ({ endpoint_url, events, status }) => ({ endpoint_url, events, status }), { idOf: ofStream }),
  'webhook_endpoint.secret_rotated': changes('webhook_endpoint', ({ secret, previous_secret_expires_at }) => ({ secret, previous_secret_expires_at }), {
    idOf: ofStream,
  }),
  'webhook_endpoint.deleted': ends('webhook_endpoint'),
  'organization.deleted': ends('organization'),
  'organization_domain.created': begins('organization_domain', ({ domain, state, verification_strategy }) => ({ domain, state, verification_strategy }), {
    isTold: afterItsOrganization,
  }),
  'organization_domain.updated': changes('organization_domain', ({ state }) => ({ state })),
  'organization_domain.verified': changes('organization_domain', ({ verification_strategy }) => ({ state: 'verified', verification_strategy }), {
    isTold: afterItsOrganization,
  }),
  'organization_domain.verification_failed': changes('organization_domain', ({ reason }) => ({ state: 'failed', reason })),
  'organization_domain.deleted': ends('organization_domain', undefined, { isTold: unlessItFollows }),
  'user.erased': happens('user', undefined, { idOf: ofStream, isTold: unlessItFollows }),
  'data_key.given_up': happens('data_key', undefined, { idOf: ({ data }) => data.key }),
  'audit_log_action.schema_created': changes('audit_log_action', ({ name, version, actor, targets, metadata }) => ({
    name,
    version,
    actor: listed(actor),
    targets,
    metadata: listed(metadata),
  })),
  'audit_key.created': happens('audit_key', undefined, { idOf: ({ data }) => data.public_key }),
  'audit_retention.set': changes('audit_logs_retention', (data) => data, { idOf: ofStream, defaults: firstRetention }),
  'audit_log_stream.created': begins('audit_log_stream', ({ organization_id, ...data }) => ({ organization_id, ...settingsOf(data), is_paused: false })),
  'audit_log_stream.updated': changes('audit_log_stream', settingsOf),
  'audit_log_stream.paused': changes('audit_log_stream', () => ({ is_paused: true })),
  'audit_log_stream.resumed': changes('audit_log_stream', () => ({ is_paused: false })),
  'audit_log_stream.deleted': ends('audit_log_stream', undefined, { isTold: unlessItFollows }),
  // Whom it is filtered by lies sealed.
  'audit_log_export.created': happens('audit_log_export', ({ organization_id, format, range_start, range_end, filter, size }) => ({
    ...{ organization_id, format, range_start: new Date(range_start).toISOString(), range_end: new Date(range_end).toISOString() },
    ...{ is_filtered: filter !== null, size },
  })),
};

function settingsOf({ type, url, secret, index, source, sourcetype }: StreamSettings): StreamSettings {
  return { type, url, secret, index, source, sourcetype };
}

/** Types of the same streams that nothing is told of, and why. */
export const LEFT_OUT = {
  'authorization_model.seeded': 'What an environment begins with is the same in each.',
  'resource_type.closing': 'A step of a deletion, which is told.',
  'resource_type.reopened': 'A step of a deletion that was refused.',
  'organization_role.closing': 'A step of a deletion, which is told.',
  'organization_role.reopened': 'A step of a deletion that was refused.',
  'directory.credentials_refused': 'What a product of a customer did.',
  'directory.credentials_accepted': 'What a product of a customer did.',
  'dsync.activated': 'What a product of a customer did.',
  'audit_log_export.ready': 'What becomes of an export that was asked for.',
  'audit_log_export.failed': 'What becomes of an export that was asked for.',
  'audit_log_export.expired': 'What becomes of an export that was asked for.',
  'organization.created': 'The daily work of an application.',
  'organization.updated': 'The daily work of an application.',
  'organization_domain.verification_restarted': 'Nothing changes but how long a record is looked for.',
} as const;

/** Categories none of whose facts administer an environment: what applications and people do all day, and what the product keeps for itself. */
export const NOT_ADMINISTRATION: readonly string[] = [
  ...['user', 'group', 'invitation', 'organization_membership', 'session', 'authentication_factor', 'attempt', 'directory_link'],
  ...['magic_auth', 'email_verification', 'password_reset', 'radar_challenge'],
  ...['role_assignment', 'group_role_assignment', 'resource_tree'],
  ...['directory_user', 'directory_group', 'directory_address'],
  ...['audit_trail', 'audit_checkpoint'],
];

/** What of other facts is needed to say what was before. */
export const KNOWN_BY = ['authorization_model.seeded', 'organization.created', 'organization.updated'] as const;
type Knowing = FactOf<Facts, (typeof KNOWN_BY)[number]>;

/** What such a fact says, by what kind of thing it is and by its id. */
export function knownBy({ type, data, stream }: Knowing & Pick<RecordedEvent, 'stream'>): readonly (readonly [target: string, id: string, says: object])[] {
  switch (type) {
    case 'authorization_model.seeded':
      return [
        ...data.permissions.map((each) => ['permission', each.id, role(each)] as const),
        ...data.roles.map((each) => ['role', each.id, { ...role(each), ...slugs(each.permissions) }] as const),
      ];
    case 'organization.created':
    case 'organization.updated': {
      const { name, external_id } = data;
      return [['organization', streamKeyOf(stream), { ...(name !== undefined && { name }), ...(external_id !== undefined && { external_id }) }]];
    }
  }
}

/** Whose trail tells of a record; null where it is of no environment that there can be. */
export function environmentToldOf({ stream, type, data, meta }: RecordedEvent): string | null {
  if (meta.environment !== SYSTEM_ENVIRONMENT) return meta.environment;
  if (type !== 'data_key.given_up') return streamKeyOf(stream);
  return /(?<=[.-])environment_[0-9A-Z]{26}/.exec((data as { readonly key: string }).key)?.[0] ?? null;
}

/** What is on a list stands nowhere; this says only which entry was taken from it that was put there. */
function nameOfEntry({ digest }: { readonly digest: string }): string {
  return digest.slice(0, 16);
}

/** One value, whatever it holds. */
function listed(schema: object | null): readonly object[] | null {
  return schema && [schema];
}
