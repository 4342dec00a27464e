import { Flag, Integer, ListOf, Nested, OneOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { accepted, Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { PageQuery } from '../pages.ts';
import { DirectoryGroup } from './directory-group.ts';
import { DirectoryRun } from './directory-run.ts';
import { DirectoryUser } from './directory-user.ts';
import {
  ConfiguredDirectory,
  Directory,
  DirectoryAttribute,
  DirectoryPolicyChanges,
  DirectoryRequest,
  DirectoryToken,
  DirectoryTokenWithValue,
} from './directory.ts';

const ATTRIBUTES = {
  doc: 'What becomes `custom_attributes` of its people: names and where they come from. Absent: job title, department, division, organization, cost center, employee number and manager.',
  maxItems: 50,
} as const;
const IN_DIRECTORY = 'Only with `directory`.';

@Operation({ get: '/directories', owner: 'directory-sync', summary: 'List directories', answers: listOf(Directory) })
export class ListDirectories extends PageQuery<Directory> {
  @Optional() @Text({ doc: 'Of organizations that have this domain.', min: 1, max: 253, example: 'acme.test' }) domain?: string;
  @Optional() @Ref(() => Organization, { doc: 'Of this organization.' }) organization_id?: string;
  @Optional()
  @Text({ doc: 'Beginnings of words, in upper or lower case and in any order: each begins one of the first 8 words of the name.', min: 1, max: 256 })
  search?: string;
}

@Operation({ get: '/directories/{id}', owner: 'directory-sync', summary: 'Get a directory', answers: ok(Directory) })
export class GetDirectory extends Query<Directory> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
}

@Operation({
  delete: '/directories/{id}',
  owner: 'directory-sync',
  summary: 'Delete a directory',
  description:
    'Its people and groups are gone with it; one event tells of it, and none of each of them. Memberships that it manages are managed by hand from then on, or end with it, as its policy says.',
  answers: empty(202),
  emits: ['dsync.deleted'],
})
export class DeleteDirectory extends Command<void> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
}

@Operation({
  get: '/directory_users',
  owner: 'directory-sync',
  summary: 'List people of directories',
  description: 'In production mode at most 4 requests per second and directory (`DIRECTORY_USERS_RATE_LIMIT`); events tell what changed.',
  answers: listOf(DirectoryUser),
  refuses: ['entity_not_found'],
})
export class ListDirectoryUsers extends PageQuery<DirectoryUser> {
  @Optional() @Ref(() => Directory, { doc: 'Of this directory.' }) directory?: string;
  @Optional() @Ref(() => DirectoryGroup, { doc: 'In this group.' }) group?: string;
  @Optional() @Text({ doc: `What the product knows the person by. ${IN_DIRECTORY}`, min: 1, max: 1_024 }) idp_id?: string;
  @Optional() @Text({ doc: `One of the addresses of the person, in upper or lower case. ${IN_DIRECTORY}`, min: 1, max: 1_024 }) email?: string;
}

@Operation({ get: '/directory_users/{id}', owner: 'directory-sync', summary: 'Get a person of a directory', answers: ok(DirectoryUser) })
export class GetDirectoryUser extends Query<DirectoryUser> {
  @Ref(() => DirectoryUser, { doc: 'The person.' }) id!: string;
}

@Operation({
  get: '/directory_groups',
  owner: 'directory-sync',
  summary: 'List groups of directories',
  answers: listOf(DirectoryGroup),
  refuses: ['entity_not_found'],
})
export class ListDirectoryGroups extends PageQuery<DirectoryGroup> {
  @Optional() @Ref(() => Directory, { doc: 'Of this directory.' }) directory?: string;
  @Optional() @Ref(() => DirectoryUser, { doc: 'That this person is in.' }) user?: string;
}

@Operation({ get: '/directory_groups/{id}', owner: 'directory-sync', summary: 'Get a group of a directory', answers: ok(DirectoryGroup) })
export class GetDirectoryGroup extends Query<DirectoryGroup> {
  @Ref(() => DirectoryGroup, { doc: 'The group.' }) id!: string;
}

@Operation({
  post: '/admin/directories',
  owner: 'directory-sync',
  summary: 'Create a directory',
  description: 'It is `validating` until the product of the customer was heard of, for which it needs a token.',
  answers: created(ConfiguredDirectory),
})
export class CreateDirectory extends Command<ConfiguredDirectory> {
  @Ref(() => Organization, { doc: 'The organization whose people it will hold.' }) organization_id!: string;
  @Picked(Directory) type!: Directory['type'];
  @Picked(Directory) name!: string;
  @Optional() @ListOf(() => DirectoryAttribute, ATTRIBUTES) attributes?: readonly DirectoryAttribute[];
  @Optional()
  @Nested(() => DirectoryPolicyChanges, { doc: 'What becomes of its people in the organization. Absent: nothing follows them.' })
  policy?: DirectoryPolicyChanges;
}

@Operation({ get: '/admin/directories/{id}', owner: 'directory-sync', summary: 'Get a directory with how it is set up', answers: ok(ConfiguredDirectory) })
export class GetConfiguredDirectory extends Query<ConfiguredDirectory> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
}

@Operation({
  patch: '/admin/directories/{id}',
  owner: 'directory-sync',
  summary: 'Change how a directory is set up',
  description: 'What is absent stays. Nothing is announced of it.',
  answers: ok(ConfiguredDirectory),
})
export class UpdateDirectory extends Command<ConfiguredDirectory> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
  @Optional() @Picked(Directory) name?: string;
  @Optional() @ListOf(() => DirectoryAttribute, ATTRIBUTES) attributes?: readonly DirectoryAttribute[];
  @Optional()
  @Nested(() => DirectoryPolicyChanges, {
    doc: 'What becomes of its people in the organization; what is absent in it stays. Switched on, it counts for all who are in the directory; switched off, their memberships are managed by hand.',
  })
  policy?: DirectoryPolicyChanges;
  @Optional()
  @OneOf(['linked', 'unlinked'], { doc: '`unlinked` refuses whatever the product sends; `linked` takes it again.' })
  state?: 'linked' | 'unlinked';
}

@Operation({
  get: '/admin/directories/{id}/tokens',
  owner: 'directory-sync',
  summary: 'List the tokens of a directory',
  description: 'Those that were not revoked.',
  answers: listOf(DirectoryToken),
})
export class ListDirectoryTokens extends PageQuery<DirectoryToken> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
}

@Operation({
  post: '/admin/directories/{id}/tokens',
  owner: 'directory-sync',
  summary: 'Create a token of a directory',
  description:
    'It is shown in this answer only; the same request again, with the same `Idempotency-Key`, answers the same one. A directory has at most 10 at a time.',
  answers: created(DirectoryTokenWithValue),
  refuses: ['directory_token_limit_reached'],
  emits: ['dsync.token.created'],
})
export class CreateDirectoryToken extends Command<DirectoryTokenWithValue> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
}

@Operation({
  delete: '/admin/directories/{id}/tokens/{token_id}',
  owner: 'directory-sync',
  summary: 'Revoke a token of a directory',
  description: 'The next request with it is refused.',
  answers: empty(204),
  emits: ['dsync.token.revoked'],
})
export class RevokeDirectoryToken extends Command<void> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
  @Ref(() => DirectoryToken, { doc: 'The token.' }) token_id!: string;
}

@Operation({
  get: '/admin/directories/{id}/requests',
  owner: 'directory-sync',
  summary: 'List the last requests that came by SCIM',
  description: 'The last 100 of a directory, for 7 days: what the IT of a customer wants to see while it sets up its product. Nothing in them is personal.',
  answers: listOf(DirectoryRequest),
})
export class ListDirectoryRequests extends PageQuery<DirectoryRequest> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
}

const LISTING_TYPES = ['application/x-ndjson', 'text/csv'] as const;

@Operation({
  put: '/admin/directories/{id}/snapshot',
  owner: 'directory-sync',
  summary: 'Send all people and groups of a directory',
  description:
    'A full listing, as CSV or as lines of JSON, in UTF-8: who is in it is created or changed, who is not goes. It is compared with the directory first; the answer names the run that tells how far it is. Nothing is carried out where a line is wrong, where the listing is empty, or where more people or groups would go than `removal_limit` says. A directory has one run at a time.',
  answers: accepted(DirectoryRun),
  refuses: ['directory_run_in_progress', 'directory_unlinked', 'blob_store_not_configured', 'storage_full', 'request_timeout'],
  maxBody: 2 * 1024 * 1024 * 1024,
  upload: { folder: 'listings', contentTypes: LISTING_TYPES },
})
export class SendDirectoryListing extends Command<DirectoryRun> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
  @Optional() @Flag({ doc: 'Whether it is compared alone: the run tells what would change.' }) dry_run?: boolean;
  @Optional() @Flag({ doc: 'Whether it is carried out however many go, and also where it is empty.' }) force?: boolean;
  @Optional()
  @Integer({ doc: 'Per cent of the people, and of the groups, that may go without `force`.', minimum: 0, maximum: 100, default: 20 })
  removal_limit?: number;
}

@Operation({
  get: '/admin/directories/{id}/runs/{run_id}',
  owner: 'directory-sync',
  summary: 'Get the run of a full listing',
  description: 'For 30 days after it came further last.',
  answers: ok(DirectoryRun),
})
export class GetDirectoryRun extends Query<DirectoryRun> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
  @Ref(() => DirectoryRun, { doc: 'The run.' }) run_id!: string;
}
