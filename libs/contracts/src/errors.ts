import type { ErrorKind } from '#libs/platform/src/domain-error';

export interface DeclaredError {
  readonly kind: ErrorKind;
  readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 409 | 413 | 414 | 415 | 422 | 429 | 431 | 500 | 503;
  readonly doc: string;
  /** Answered as RFC 6749 says, `{error, error_description}`, instead of by a `code`, on which clients decide what to read. */
  readonly isOAuth?: true;
  /** What nothing is refused by yet: the part of the product that it waits for. */
  readonly comesWith?: string;
}

const declare = <T extends Record<string, DeclaredError>>(table: T): T => table;

/** Every error code, once: its kind, its status, and what it tells the caller. */
export const ERRORS = declare({
  unauthorized: { kind: 'unauthenticated', status: 401, doc: 'The API key is missing, unknown or revoked.' },
  invalid_client: { kind: 'invalid', status: 400, doc: 'No environment has this client id, or the secret is not one of its keys.', isOAuth: true },
  forbidden: { kind: 'forbidden', status: 403, doc: 'The key is valid but may not do this.' },
  entity_not_found: { kind: 'not-found', status: 404, doc: 'No such object in this environment.' },
  route_not_found: { kind: 'not-found', status: 404, doc: 'No such path.' },
  method_not_allowed: { kind: 'invalid', status: 405, doc: 'The path exists, but not with this method; see `Allow`.' },
  request_timeout: { kind: 'invalid', status: 408, doc: 'The request did not arrive completely in time.' },
  payload_too_large: {
    kind: 'invalid',
    status: 413,
    doc: 'The body is longer than the operation takes (64 KiB, unless it says more), or what it asks for is more than can be recorded at once.',
  },
  uri_too_long: { kind: 'invalid', status: 414, doc: 'The path is longer than any.' },
  headers_too_large: { kind: 'invalid', status: 431, doc: 'The request has more than 100 headers, or more than 16 KiB of them.' },
  bad_request: { kind: 'invalid', status: 400, doc: 'The request cannot be understood or carried out.' },
  invalid_request_parameters: { kind: 'invalid', status: 422, doc: 'Fields are missing or wrong; `errors` names each.' },
  rate_limit_exceeded: { kind: 'limited', status: 429, doc: 'Too many requests, or too many bytes in their bodies; try again after `Retry-After`.' },
  service_unavailable: { kind: 'unavailable', status: 503, doc: 'Nothing happened; try again after `Retry-After`.' },
  storage_full: { kind: 'unavailable', status: 503, doc: 'The disk is nearly full: writes are refused, reads go on.' },
  event_log_damaged: {
    kind: 'unavailable',
    status: 503,
    doc: 'What this object is stored in was changed from outside, and an operator has to look; trying again does not help, so there is no `Retry-After`.',
  },
  idempotency_outcome_unknown: {
    kind: 'conflict',
    status: 409,
    doc: 'The answer to an earlier request with this `Idempotency-Key` was lost, and too much has happened since to tell whether it was carried out: look.',
  },
  position_not_reached: { kind: 'invalid', status: 422, doc: 'The position lies beyond the end of the log.' },
  internal_error: { kind: 'unavailable', status: 500, doc: 'A bug on our side; tell us the request id.' },
  invalid_metadata: { kind: 'invalid', status: 400, doc: 'Metadata breaks its limits: 50 pairs, keys of 40 and values of 600 ASCII characters.' },
  external_id_already_used: { kind: 'conflict', status: 400, doc: 'Another object of this environment has this external id.' },
  payment_customer_id_already_used: { kind: 'conflict', status: 400, doc: 'Another organization of this environment has this payment customer id.' },
  domain_already_exists: { kind: 'conflict', status: 409, doc: 'The domain is taken.' },
  domain_not_allowed: { kind: 'invalid', status: 422, doc: 'Not a domain name, or one of a consumer mail provider.' },
  domain_already_verified: { kind: 'conflict', status: 400, doc: 'The domain is verified: there is nothing left to do.' },
  organization_domain_limit_reached: { kind: 'invalid', status: 422, doc: 'The organization has as many domains as it may have.' },
  environment_name_already_used: { kind: 'conflict', status: 409, doc: 'Another environment has this name.' },
  redirect_uri_is_default: { kind: 'conflict', status: 409, doc: 'The redirect URI is the default: make another one the default first.' },
  duplicate_cors_origin: { kind: 'conflict', status: 409, doc: 'The environment has this CORS origin already.' },
  token_too_big: { kind: 'invalid', status: 400, doc: 'What the template of access tokens adds has more than 3,072 bytes.', isOAuth: true },
  client_id_already_used: { kind: 'conflict', status: 409, doc: 'Another environment has this client id.' },
  environment_key_limit_reached: { kind: 'invalid', status: 422, doc: 'The environment has as many keys that work as it may have.' },
  environment_key_revoked: { kind: 'conflict', status: 409, doc: 'The key was revoked: create another one.' },
  api_key_already_expired: { kind: 'conflict', status: 409, doc: 'The API key has expired, for good: create another one.' },
  user_not_organization_member: { kind: 'invalid', status: 400, doc: 'The user is no active member of the organization.' },
  duplicate_endpoint: { kind: 'conflict', status: 409, doc: 'Another webhook endpoint of this environment has this URL.' },
  invalid_url: {
    kind: 'invalid',
    status: 422,
    doc: 'The URL cannot be one of a webhook endpoint: not https, private, with credentials, port 0, spaces, control characters or backslashes.',
  },
  webhook_endpoint_limit_reached: { kind: 'invalid', status: 422, doc: 'The environment has as many webhook endpoints as it may have.' },
  user_already_organization_member: { kind: 'conflict', status: 400, doc: 'The user is an active member of the organization.' },
  cannot_reactivate_pending_organization_membership: {
    kind: 'conflict',
    status: 400,
    doc: 'The membership waits for its user to accept an invitation.',
    comesWith: 'invitations',
  },
  cannot_deactivate_pending_organization_membership: {
    kind: 'conflict',
    status: 400,
    doc: 'The membership waits for its user to accept an invitation.',
    comesWith: 'invitations',
  },
  missing_user_id_or_organization_id: { kind: 'invalid', status: 400, doc: 'Give `user_id`, `organization_id`, or both.' },
  invalid_role: { kind: 'invalid', status: 422, doc: 'The organization has no such role; `role_slug` names it.' },
  multiple_roles_not_enabled: { kind: 'invalid', status: 422, doc: 'Memberships have one role only.' },
  sub_resource_scoped_role_not_allowed: {
    kind: 'invalid',
    status: 422,
    doc: 'The role is scoped to another type of resource than organizations; `role_slug` names it.',
  },
  group_membership_limit_exceeded: { kind: 'invalid', status: 400, doc: 'The group has as many members as it may have.' },
  webhook_endpoint_disabled: { kind: 'conflict', status: 409, doc: 'The webhook endpoint is disabled: nothing is sent to it.' },
  resource_type_slug_conflict: { kind: 'conflict', status: 409, doc: 'Another resource type of this environment has this slug.' },
  resource_type_in_use: { kind: 'conflict', status: 409, doc: 'Other types, permissions, roles or resources are of this type.' },
  permission_slug_conflict: { kind: 'conflict', status: 409, doc: 'Another permission of this environment has this slug.' },
  role_slug_conflict: { kind: 'conflict', status: 409, doc: 'Another role of this environment has this slug.' },
  organization_role_slug_conflict: { kind: 'conflict', status: 409, doc: 'Another role of this organization has this slug.' },
  role_permission_limit_reached: {
    kind: 'invalid',
    status: 422,
    doc: 'The roles of the environment, or those of the organization, would have more than 20,000 permissions together.',
  },
  authorization_model_limit_reached: {
    kind: 'invalid',
    status: 422,
    doc: 'The resource types, permissions and roles of the environment are too many, or their texts too long, to take in more.',
  },
  role_has_assignments: { kind: 'conflict', status: 409, doc: 'The role is assigned: take it away first.' },
  role_has_group_role_mappings: { kind: 'conflict', status: 409, doc: 'Groups of an identity provider are mapped to the role.', comesWith: 'directories' },
  user_creation_error: { kind: 'conflict', status: 400, doc: 'The user cannot be created: `errors` says what is taken.' },
  email_not_available: { kind: 'conflict', status: 400, doc: 'Another user of this environment has this email.' },
  invalid_email: { kind: 'invalid', status: 400, doc: 'Not an email address.' },
  invalid_locale: { kind: 'invalid', status: 400, doc: 'Not a BCP 47 language tag.' },
  email_already_verified: { kind: 'conflict', status: 400, doc: 'The email is verified already.' },
  email_change_not_allowed: { kind: 'conflict', status: 400, doc: 'The email of this user is managed elsewhere.', comesWith: 'directories and single sign-on' },
  user_deletion_not_allowed: { kind: 'conflict', status: 409, doc: 'The user cannot be deleted at the moment.', comesWith: 'directories' },
  email_previously_verified: { kind: 'conflict', status: 400, doc: 'The email is verified already: the code is of no use any more.' },
  email_verification_code_previously_used: { kind: 'conflict', status: 400, doc: 'The code was used already.' },
  email_verification_code_expired: { kind: 'conflict', status: 400, doc: 'The code has expired: send another one.' },
  email_verification_code_incorrect: { kind: 'invalid', status: 400, doc: 'Not the code that was sent last.' },
  invalid_one_time_code: { kind: 'invalid', status: 400, doc: 'Not the code that was sent last.', comesWith: 'sign-in' },
  one_time_code_previously_used: { kind: 'conflict', status: 400, doc: 'The code was used already.', comesWith: 'sign-in' },
  one_time_code_expired: { kind: 'conflict', status: 400, doc: 'The code has expired: create another one.', comesWith: 'sign-in' },
  one_time_code_too_many_attempts: { kind: 'limited', status: 400, doc: 'Too many codes were tried: create another one.' },
  sign_up_not_allowed: { kind: 'forbidden', status: 400, doc: 'Nobody has this address, and no user may be created with it.' },
  authentication_method_not_allowed: { kind: 'forbidden', status: 400, doc: 'The settings of the environment do not allow to sign in like this.' },
  email_password_auth_disabled: { kind: 'forbidden', status: 403, doc: 'The settings of the environment do not allow passwords.' },
  password_reset_error: { kind: 'invalid', status: 400, doc: 'The new password is too weak: `errors` says why.' },
  daily_quota_exceeded: { kind: 'limited', status: 429, doc: 'As many messages as an address may be sent in a day were sent.' },
  password_strength_error: { kind: 'invalid', status: 400, doc: 'The password is too weak: `errors` says why.' },
  invalid_password_hash: { kind: 'invalid', status: 400, doc: 'The password hash is not in the form of its type, or takes too much to verify.' },
  password_and_password_hash_provided: { kind: 'invalid', status: 400, doc: 'Give `password` or `password_hash`, not both.' },
  password_and_password_hash_type_provided: { kind: 'invalid', status: 400, doc: '`password_hash_type` goes with `password_hash`, not with `password`.' },
  password_salt_position_requires_password_hash: { kind: 'invalid', status: 400, doc: '`password_salt_position` goes with `password_hash`.' },
  authorization_resource_external_id_conflict: {
    kind: 'conflict',
    status: 409,
    doc: 'Another resource of this type in the organization has this external id.',
  },
  resource_has_dependents: { kind: 'conflict', status: 409, doc: 'Resources hang under this one, or roles are assigned on it.' },
  lock_timeout: { kind: 'conflict', status: 400, doc: 'Too many changes to the resources of this organization at once: nothing happened, try again.' },
  resource_type_update_in_progress: { kind: 'conflict', status: 409, doc: 'The type of the resource was changed meanwhile: nothing happened, try again.' },
  missing_organization_id_or_resource_type_slug: { kind: 'invalid', status: 400, doc: 'Give `organization_id`, `resource_type_slug`, or both.' },
  duplicate_group_role_assignment: { kind: 'conflict', status: 409, doc: 'The group already has this role on this resource.' },
  role_assignment_from_group: {
    kind: 'conflict',
    status: 409,
    doc: 'The membership has the role through a group: remove the role assignment of the group, or the membership from the group.',
  },
});

export type ErrorCode = keyof typeof ERRORS;
