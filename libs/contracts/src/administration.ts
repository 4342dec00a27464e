/**
 * Facts by which an environment is administered: its audit trail tells of each, and their records carry from where they came. Every process has the list, since whoever records a fact and
 * whoever tells of it are different services. What they say is told by `administrative-facts.ts` of audit-logs, and what is left out of it is named there.
 */
export const ADMINISTRATIVE_FACTS = [
  'environment.created',
  'environment.updated',
  'environment_key.created',
  'environment_key.rotated',
  'environment_key.revoked',
  'environment_settings.changed',
  'authentication_policy.changed',
  'redirect_uri.created',
  'redirect_uri.made_default',
  'redirect_uri.deleted',
  'cors_origin.created',
  'cors_origin.deleted',
  'jwt_template.set',
  'risk_list.entry_added',
  'risk_list.entry_removed',
  'token_key.created',
  'token_keys.dropped',
  'api_key.created',
  'api_key.updated',
  'api_key.revoked',
  'resource_type.created',
  'resource_type.updated',
  'resource_type.deleted',
  'permission.created',
  'permission.updated',
  'permission.deleted',
  'role.created',
  'role.updated',
  'role.deleted',
  'roles.reordered',
  'organization_role.created',
  'organization_role.updated',
  'organization_role.deleted',
  'role_mappings.changed',
  'directory.created',
  'directory.updated',
  'directory.unlinked',
  'directory.relinked',
  'dsync.deleted',
  'dsync.token.created',
  'dsync.token.revoked',
  'webhook_endpoint.created',
  'webhook_endpoint.updated',
  'webhook_endpoint.secret_rotated',
  'webhook_endpoint.deleted',
  'organization.deleted',
  'organization_domain.created',
  'organization_domain.updated',
  'organization_domain.verified',
  'organization_domain.verification_failed',
  'organization_domain.deleted',
  'user.erased',
  'data_key.given_up',
  'audit_log_action.schema_created',
  'audit_key.created',
  'audit_retention.set',
] as const;

export type AdministrativeFact = (typeof ADMINISTRATIVE_FACTS)[number];

const KNOWN: ReadonlySet<string> = new Set(ADMINISTRATIVE_FACTS);

export function isAdministrative(type: string): type is AdministrativeFact {
  return KNOWN.has(type);
}
