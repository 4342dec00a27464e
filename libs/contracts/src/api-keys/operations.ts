import { ListOf, Optional, Picked, Ref, Text, Time } from '../fields.ts';
import { Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { PageQuery } from '../pages.ts';
import { PERMISSION_SLUG } from '../permissions/permission.ts';
import { User } from '../users/user.ts';
import { ApiKey, ApiKeyValidation, ApiKeyWithValue } from './api-key.ts';

const EXPIRES_AT = { doc: 'When it stops being valid: a time to come. Absent or null: never.', nullable: true } as const;
const PERMISSIONS = { doc: 'Slugs of permissions of this environment.', maxItems: 100, unique: true } as const;

@Operation({
  get: '/organizations/{organization_id}/api_keys',
  owner: 'identity',
  summary: 'List the API keys of an organization',
  description: 'Those of its users are listed by user.',
  answers: listOf(ApiKey),
})
export class ListOrganizationApiKeys extends PageQuery<ApiKey> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
}

@Operation({
  post: '/organizations/{organization_id}/api_keys',
  owner: 'identity',
  summary: 'Create an API key of an organization',
  description: 'Its value is shown in this answer only; the same request again, with the same `Idempotency-Key`, answers the same value.',
  answers: created(ApiKeyWithValue),
  emits: ['api_key.created'],
})
export class CreateOrganizationApiKey extends Command<ApiKeyWithValue> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Picked(ApiKey) name!: string;
  @Optional() @ListOf({ text: PERMISSION_SLUG }, PERMISSIONS) permissions?: readonly string[];
  @Optional() @Time(EXPIRES_AT) expires_at?: string | null;
}

@Operation({
  get: '/user_management/users/{user_id}/api_keys',
  owner: 'identity',
  summary: 'List the API keys of a user',
  answers: listOf(ApiKey),
})
export class ListUserApiKeys extends PageQuery<ApiKey> {
  @Ref(() => User, { doc: 'The user.' }) user_id!: string;
  @Optional() @Ref(() => Organization, { doc: 'Only those that work in this organization.' }) organization_id?: string;
}

@Operation({
  post: '/user_management/users/{user_id}/api_keys',
  owner: 'identity',
  summary: 'Create an API key of a user',
  description:
    'It works in one organization, for as long as the user is an active member of it. Its value is shown in this answer only; the same request again, with the same `Idempotency-Key`, answers the same value.',
  answers: created(ApiKeyWithValue),
  refuses: ['user_not_organization_member'],
  emits: ['api_key.created'],
})
export class CreateUserApiKey extends Command<ApiKeyWithValue> {
  @Ref(() => User, { doc: 'The user.' }) user_id!: string;
  @Ref(() => Organization, { doc: 'The organization that it works in: the user is an active member of it.' }) organization_id!: string;
  @Picked(ApiKey) name!: string;
  @Optional() @ListOf({ text: PERMISSION_SLUG }, PERMISSIONS) permissions?: readonly string[];
  @Optional() @Time(EXPIRES_AT) expires_at?: string | null;
}

@Operation({
  delete: '/api_keys/{id}',
  owner: 'identity',
  summary: 'Delete an API key',
  description: 'It is not valid any more, for good: the next request for its validation answers null.',
  answers: empty(204),
  emits: ['api_key.revoked'],
})
export class DeleteApiKey extends Command<void> {
  @Ref(() => ApiKey, { doc: 'The key.' }) id!: string;
}

@Operation({
  post: '/api_keys/{id}/expire',
  owner: 'identity',
  summary: 'Change when an API key expires',
  description: 'Without `expires_at`, or with a time that has passed: now. Null: never. A key that has expired stays so.',
  answers: ok(ApiKey),
  refuses: ['api_key_already_expired'],
  emits: ['api_key.updated'],
})
export class ExpireApiKey extends Command<ApiKey> {
  @Ref(() => ApiKey, { doc: 'The key.' }) id!: string;
  @Optional() @Time({ doc: 'When it stops being valid. Absent: now. Null: never.', nullable: true }) expires_at?: string | null;
}

@Operation({
  post: '/api_keys/validations',
  owner: 'identity',
  summary: 'Tell whether a value is a valid API key',
  description: 'Whatever was answered before is seen by it: a key that was deleted, or has expired, or whose owner is gone, is null with the next request.',
  answers: ok(ApiKeyValidation),
})
export class ValidateApiKey extends Query<ApiKeyValidation> {
  @Text({ doc: 'What your API was shown as a key.', min: 1, max: 4_096, secret: true }) value!: string;
}
