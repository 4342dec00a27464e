import { ApiKey, UpdatedApiKey } from './api-keys/api-key.ts';
import { DirectoryGroup, UpdatedDirectoryGroup } from './directories/directory-group.ts';
import { DirectoryGroupUser, EventDirectoryUser, UpdatedDirectoryUser } from './directories/directory-user.ts';
import { ActivatedDirectory, DirectoryToken, EventDirectory } from './directories/directory.ts';
import type { Class } from './operation.ts';
import { AuthenticationEvent } from './feed/authentication-event.ts';
import {
  DomainVerificationFailure,
  EventEmailVerification,
  EventMagicAuth,
  EventOrganization,
  EventOrganizationMembership,
  EventPasswordReset,
  EventUser,
} from './feed/event-data.ts';
import { RadarChallengeCreated, RadarRiskDetected } from './feed/radar-events.ts';
import { Group, GroupMember } from './groups/group.ts';
import { Invitation } from './invitations/invitation.ts';
import { OrganizationDomain } from './organizations/organization.ts';
import { Permission } from './permissions/permission.ts';
import { OrganizationRole, Role } from './roles/role.ts';
import { Session } from './sessions/session.ts';

export interface PublicEvent {
  /** Whether a webhook endpoint may subscribe to it; the feed has all. */
  readonly webhook: boolean;
  /** The class of `data`, through whose serialiser it leaves. Absent while its slice is not built: the name is valid and never fires. */
  readonly of?: () => Class;
}

/** Delivered by feed and webhook, or by the feed alone. */
const webhook = (of?: () => Class): PublicEvent => ({ webhook: true, ...(of && { of }) });
const feedOnly = (of?: () => Class): PublicEvent => ({ webhook: false, ...(of && { of }) });

/** Every public event name. */
export const PUBLIC_EVENTS = {
  'api_key.created': webhook(() => ApiKey),
  'api_key.updated': webhook(() => UpdatedApiKey),
  'api_key.revoked': webhook(() => ApiKey),
  'authentication.email_verification_succeeded': webhook(() => AuthenticationEvent),
  'authentication.email_verification_failed': feedOnly(() => AuthenticationEvent),
  'authentication.magic_auth_succeeded': webhook(() => AuthenticationEvent),
  'authentication.magic_auth_failed': webhook(() => AuthenticationEvent),
  'authentication.mfa_succeeded': webhook(() => AuthenticationEvent),
  'authentication.mfa_failed': feedOnly(() => AuthenticationEvent),
  'authentication.oauth_succeeded': webhook(),
  'authentication.oauth_failed': webhook(),
  'authentication.passkey_succeeded': webhook(),
  'authentication.passkey_failed': webhook(),
  'authentication.password_succeeded': webhook(() => AuthenticationEvent),
  'authentication.password_failed': webhook(() => AuthenticationEvent),
  'authentication.reauthentication_succeeded': webhook(),
  'authentication.sso_started': webhook(),
  'authentication.sso_succeeded': webhook(),
  'authentication.sso_failed': webhook(),
  'authentication.sso_timed_out': webhook(),
  'authentication.radar_risk_detected': webhook(() => RadarRiskDetected),
  'radar.challenge_created': webhook(() => RadarChallengeCreated),
  'connection.activated': webhook(),
  'connection.deactivated': webhook(),
  'connection.deleted': webhook(),
  'connection.saml_certificate_renewal_required': webhook(),
  'connection.saml_certificate_renewed': webhook(),
  'dsync.activated': webhook(() => ActivatedDirectory),
  'dsync.deleted': webhook(() => EventDirectory),
  'dsync.user.created': webhook(() => EventDirectoryUser),
  'dsync.user.updated': webhook(() => UpdatedDirectoryUser),
  'dsync.user.deleted': webhook(() => EventDirectoryUser),
  'dsync.group.created': webhook(() => DirectoryGroup),
  'dsync.group.updated': webhook(() => UpdatedDirectoryGroup),
  'dsync.group.deleted': webhook(() => DirectoryGroup),
  'dsync.group.user_added': webhook(() => DirectoryGroupUser),
  'dsync.group.user_removed': webhook(() => DirectoryGroupUser),
  'dsync.token.created': feedOnly(() => DirectoryToken),
  'dsync.token.revoked': feedOnly(() => DirectoryToken),
  'email_verification.created': webhook(() => EventEmailVerification),
  'magic_auth.created': webhook(() => EventMagicAuth),
  'password_reset.created': webhook(() => EventPasswordReset),
  'password_reset.succeeded': webhook(() => EventPasswordReset),
  'invitation.created': webhook(() => Invitation),
  'invitation.accepted': webhook(() => Invitation),
  'invitation.resent': webhook(() => Invitation),
  'invitation.revoked': webhook(() => Invitation),
  'user.created': webhook(() => EventUser),
  'user.updated': webhook(() => EventUser),
  'user.deleted': webhook(() => EventUser),
  'session.created': webhook(() => Session),
  'session.revoked': webhook(() => Session),
  'organization.created': webhook(() => EventOrganization),
  'organization.updated': webhook(() => EventOrganization),
  'organization.deleted': webhook(() => EventOrganization),
  'organization_domain.created': webhook(() => OrganizationDomain),
  'organization_domain.updated': webhook(() => OrganizationDomain),
  'organization_domain.deleted': webhook(() => OrganizationDomain),
  'organization_domain.verified': webhook(() => OrganizationDomain),
  'organization_domain.verification_failed': webhook(() => DomainVerificationFailure),
  'organization_membership.created': webhook(() => EventOrganizationMembership),
  'organization_membership.updated': webhook(() => EventOrganizationMembership),
  'organization_membership.deleted': webhook(() => EventOrganizationMembership),
  'group.created': webhook(() => Group),
  'group.updated': webhook(() => Group),
  'group.deleted': webhook(() => Group),
  'group.member_added': webhook(() => GroupMember),
  'group.member_removed': webhook(() => GroupMember),
  'role.created': webhook(() => Role),
  'role.updated': webhook(() => Role),
  'role.deleted': webhook(() => Role),
  'organization_role.created': webhook(() => OrganizationRole),
  'organization_role.updated': webhook(() => OrganizationRole),
  'organization_role.deleted': webhook(() => OrganizationRole),
  'permission.created': webhook(() => Permission),
  'permission.updated': webhook(() => Permission),
  'permission.deleted': webhook(() => Permission),
  'action.authentication.denied': feedOnly(),
  'action.user_registration.denied': feedOnly(),
  'flag.created': webhook(),
  'flag.updated': webhook(),
  'flag.deleted': webhook(),
  'flag.rule_updated': webhook(),
  'waitlist_user.created': webhook(),
  'waitlist_user.approved': webhook(),
  'waitlist_user.denied': webhook(),
  'pipes.connected_account.connected': webhook(),
  'pipes.connected_account.connection_failed': webhook(),
  'pipes.connected_account.disconnected': webhook(),
  'pipes.connected_account.reauthorization_needed': webhook(),
  'agent.registration.created': webhook(),
  'agent.registration.claim.attempt.created': webhook(),
  'agent.registration.claim.completed': webhook(),
  'agent.registration.credential.issued': webhook(),
  'agent.registration.deleted': webhook(),
  'agent.registration.expired': webhook(),
  'agent.registration.organization.switched': webhook(),
  'agent.registration.refreshed': webhook(),
  'agent.registration.revoked': webhook(),
  'vault.byok_key.deleted': feedOnly(),
  'vault.byok_key.verification_completed': feedOnly(),
  'vault.data.created': feedOnly(),
  'vault.data.deleted': feedOnly(),
  'vault.data.read': feedOnly(),
  'vault.data.updated': feedOnly(),
  'vault.dek.decrypted': feedOnly(),
  'vault.dek.read': feedOnly(),
  'vault.kek.created': feedOnly(),
  'vault.kek.deleted': feedOnly(),
  'vault.metadata.read': feedOnly(),
  'vault.names.listed': feedOnly(),
} as const satisfies Readonly<Record<string, PublicEvent>>;

export type PublicEventName = keyof typeof PUBLIC_EVENTS;

export const PUBLIC_EVENT_NAMES = Object.keys(PUBLIC_EVENTS) as readonly PublicEventName[];
/** The names that a webhook endpoint may subscribe to. */
export const WEBHOOK_EVENT_NAMES: readonly PublicEventName[] = PUBLIC_EVENT_NAMES.filter((name) => PUBLIC_EVENTS[name].webhook);

export function isPublicEventName(name: string): name is PublicEventName {
  return Object.hasOwn(PUBLIC_EVENTS, name);
}

/** The class of an event's `data`, or null when no slice fires it yet. */
export function eventDataOf(name: PublicEventName): Class | null {
  return PUBLIC_EVENTS[name].of?.() ?? null;
}
