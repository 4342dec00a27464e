import { Flag, MapOfText, OneOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { arrayOf, Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { PageQuery } from '../pages.ts';
import { Identity, User } from './user.ts';

type GivenMetadata = Readonly<Record<string, string | null>>;

const PASSWORD_HASH_TYPES = ['bcrypt', 'firebase-scrypt', 'ssha', 'ssha256', 'scrypt', 'pbkdf2', 'argon2'] as const;
export type PasswordHashType = (typeof PASSWORD_HASH_TYPES)[number];

const SALT_POSITIONS = ['prefix', 'suffix'] as const;
export type SaltPosition = (typeof SALT_POSITIONS)[number];

const PASSWORD = { doc: 'At least 10 characters, and not a common one.', max: 1024, example: 'ride-a-giraffe-7' };
const PASSWORD_HASH = { doc: 'The hash of a password, instead of the password.', max: 4096 };
const HASH_TYPE = { doc: 'How `password_hash` was made.' };
const SALT_POSITION = { doc: 'For `ssha256`: whether the salt stood before or behind the password when it was hashed; behind it where this is absent.' };

@Operation({
  post: '/user_management/users',
  owner: 'identity',
  summary: 'Create a user',
  maxBody: 128 * 1024,
  description: 'A taken `email` or `external_id` is `user_creation_error`; its `errors` say which.',
  answers: created(User),
  refuses: [
    'user_creation_error',
    'invalid_metadata',
    'password_strength_error',
    'invalid_password_hash',
    'password_and_password_hash_provided',
    'password_and_password_hash_type_provided',
    'password_salt_position_requires_password_hash',
  ],
  emits: ['user.created'],
})
export class CreateUser extends Command<User> {
  @Picked(User) email!: string;
  @Optional() @Picked(User) first_name?: string | null;
  @Optional() @Picked(User) last_name?: string | null;
  @Optional() @Picked(User) name?: string | null;
  @Optional() @Flag({ doc: 'Send true only for an address that you have verified yourself.' }) email_verified?: boolean;
  @Optional() @Picked(User) external_id?: string | null;
  @Optional() @MapOfText({ doc: 'Your own data.', nullable: true, example: { language: 'en' } }) metadata?: GivenMetadata | null;
  @Optional() @Text(PASSWORD) password?: string;
  @Optional() @Text(PASSWORD_HASH) password_hash?: string;
  @Optional() @OneOf(PASSWORD_HASH_TYPES, HASH_TYPE) password_hash_type?: PasswordHashType;
  @Optional() @OneOf(SALT_POSITIONS, SALT_POSITION) password_salt_position?: SaltPosition;
  @Optional() @Text({ doc: 'Address of the person who signs up. Not stored.', max: 64, nullable: true }) ip_address?: string | null;
  @Optional() @Text({ doc: 'Browser of the person who signs up. Not stored.', max: 2048, nullable: true }) user_agent?: string | null;
  @Optional() @Text({ doc: 'Signals of the browser. Not stored.', max: 255, nullable: true }) signals_id?: string | null;
}

@Operation({ get: '/user_management/users/{id}', owner: 'identity', summary: 'Get a user', answers: ok(User) })
export class GetUser extends Query<User> {
  @Ref(() => User, { doc: 'The user.' }) id!: string;
}

@Operation({
  get: '/user_management/users/external_id/{external_id}',
  owner: 'identity',
  summary: 'Get a user by your own identifier',
  answers: ok(User),
})
export class GetUserByExternalId extends Query<User> {
  @Text({ doc: 'Your own identifier, percent-encoded.' }) external_id!: string;
}

@Operation({ get: '/user_management/users', owner: 'identity', summary: 'List users', answers: listOf(User) })
export class ListUsers extends PageQuery<User> {
  @Optional() @Text({ doc: 'The address of the user, whatever its letters look like.', min: 1, max: 254 }) email?: string;
  @Optional() @Ref(() => Organization, { doc: 'Users with an active membership in this organization.' }) organization_id?: string;
  @Optional() @Ref(() => Organization, { doc: 'Deprecated: used where `organization_id` is absent.' }) organization?: string;
}

@Operation({
  put: '/user_management/users/{id}',
  owner: 'identity',
  summary: 'Update a user',
  maxBody: 128 * 1024,
  description:
    'What is absent stays. `metadata` is merged: null removes a key, `{}` removes all. Another `email` is unverified unless `email_verified` says otherwise.',
  answers: ok(User),
  refuses: [
    'invalid_metadata',
    'invalid_email',
    'invalid_locale',
    'email_not_available',
    'external_id_already_used',
    'password_strength_error',
    'invalid_password_hash',
    'password_and_password_hash_provided',
    'password_and_password_hash_type_provided',
    'password_salt_position_requires_password_hash',
    'email_already_verified',
    'email_change_not_allowed',
  ],
  emits: ['user.updated'],
})
export class UpdateUser extends Command<User> {
  @Ref(() => User, { doc: 'The user.' }) id!: string;
  @Optional() @Text({ doc: 'Another address.', max: 1024, visible: true, example: 'ada@acme.test' }) email?: string;
  @Optional() @Picked(User) first_name?: string | null;
  @Optional() @Picked(User) last_name?: string | null;
  @Optional() @Picked(User) name?: string | null;
  @Optional() @Flag({ doc: 'Send true only for an address that you have verified yourself.' }) email_verified?: boolean;
  @Optional() @Picked(User) external_id?: string | null;
  @Optional() @MapOfText({ doc: 'Your own data, merged into what is there.', nullable: true, example: { language: null } }) metadata?: GivenMetadata | null;
  @Optional() @Text({ doc: 'Preferred language, as a BCP 47 tag; null clears it.', max: 1024, nullable: true, example: 'en-GB' }) locale?: string | null;
  @Optional() @Text(PASSWORD) password?: string;
  @Optional() @Text(PASSWORD_HASH) password_hash?: string;
  @Optional() @OneOf(PASSWORD_HASH_TYPES, HASH_TYPE) password_hash_type?: PasswordHashType;
  @Optional() @OneOf(SALT_POSITIONS, SALT_POSITION) password_salt_position?: SaltPosition;
}

@Operation({
  delete: '/user_management/users/{id}',
  owner: 'identity',
  summary: 'Delete a user',
  description: 'The user is gone at once, with every membership; events for each of these follow.',
  answers: empty(200),
  refuses: ['user_deletion_not_allowed'],
  emits: ['user.deleted', 'organization_membership.deleted', 'group.member_removed'],
})
export class DeleteUser extends Command<void> {
  @Ref(() => User, { doc: 'The user.' }) id!: string;
}

@Operation({
  post: '/admin/users/{id}/erasure',
  owner: 'identity',
  summary: 'Erase a user',
  description:
    'For good: the user is deleted where that was not done yet, and what is personal of them becomes unreadable in the log and in every backup of it. It goes on after the answer: other processes know it within a minute. What stays for a while is told in the guide to operations. Asked again, it changes nothing.',
  answers: empty(202),
  emits: ['user.deleted', 'organization_membership.deleted', 'group.member_removed'],
})
export class EraseUser extends Command<void> {
  @Ref(() => User, { doc: 'The user, who may be deleted already.' }) id!: string;
}

@Operation({
  get: '/user_management/users/{id}/identities',
  owner: 'identity',
  summary: 'List the identities of a user at providers',
  description: 'Empty until sign-in through a provider is there.',
  answers: arrayOf(Identity),
})
export class ListIdentities extends Query<readonly Identity[]> {
  @Ref(() => User, { doc: 'The user.' }) id!: string;
}
