import { Const, Id, Json, ListOf, Nested, OneOf, Optional, Ref, Text, Time } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';
import { PERMISSION_SLUG } from '../permissions/permission.ts';

/** Whose key it is. A user's key works in one organization, for as long as the user is an active member of it. */
export class ApiKeyOwner {
  @OneOf(['organization', 'user'], { doc: 'Whether an organization has the key, or one of its users.' }) type!: 'organization' | 'user';
  @Text({ doc: 'The organization, or the user.', max: 128, example: 'org_01JG8K3M0Q5R7T9V1X3Z5B7D9F' }) id!: string;
  @Optional() @Ref(() => Organization, { doc: "Of a user's key: the organization that it works in." }) organization_id?: string;
}

/** A secret by which a customer's program calls your API; you ask here whether it is valid. It never works as a key of this API. */
export class ApiKey {
  @Const('api_key') object!: 'api_key';
  @Id('api_key', { doc: 'Identifies the key; not a secret.' }) id!: string;
  @Nested(() => ApiKeyOwner, { doc: 'Whose key it is.' }) owner!: ApiKeyOwner;
  @Text({ doc: 'Tells it from others.', min: 1, max: 255, example: 'Build server' }) name!: string;
  @Text({ doc: 'Tells people which it is: its beginning and its last four characters.', example: 'sk_…1f9a' }) obfuscated_value!: string;
  @Time({ doc: 'When it was found valid last, as far as is known some seconds later. Null: never; in events always.', nullable: true }) last_used_at!:
    string | null;
  @Time({ doc: 'When it stops being valid; null: never.', nullable: true }) expires_at!: string | null;
  @ListOf({ text: PERMISSION_SLUG }, { doc: 'Slugs of its permissions, for your API to go by.', example: ['documents:read'] }) permissions!: readonly string[];
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

/** A key whose time changed, as events show it. */
export class UpdatedApiKey extends ApiKey {
  @Json({ doc: 'What changed, as it was before.' }) previous_attributes!: Pick<ApiKey, 'expires_at'>;
}

/** A key in the one answer that shows its value. */
export class ApiKeyWithValue extends ApiKey {
  @Text({ doc: 'The key itself: it cannot be shown again.', secret: true }) value!: string;
}

/** What is known of a value that somebody showed. */
export class ApiKeyValidation {
  @Nested(() => ApiKey, { doc: 'The key; null for a value that is none, or no longer valid.', nullable: true }) api_key!: ApiKey | null;
}
