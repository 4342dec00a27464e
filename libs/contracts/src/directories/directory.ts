import { Const, Id, Integer, ListOf, Nested, OneOf, Optional, Picked, Ref, Text, Time, without } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';

/** The products that a directory may be of; people are sent by SCIM from those that have it in their name, and by full listings from the others. */
export const DIRECTORY_TYPES = [
  'azure scim v2.0',
  'bamboohr',
  'breathe hr',
  'cezanne hr',
  'cyberark scim v2.0',
  'fourth hr',
  'generic scim v2.0',
  'gsuite directory',
  'hibob',
  'jump cloud scim v2.0',
  'okta scim v2.0',
  'onelogin scim v2.0',
  'people hr',
  'personio',
  'pingfederate scim v2.0',
  'rippling scim v2.0',
  's3',
  'sailpoint scim v2.0',
  'sftp',
  'sftp workday',
  'workday',
] as const;

const STATES = ['linked', 'validating', 'invalid_credentials', 'unlinked', 'deleting'] as const;

/** How many people and groups a directory has. */
export class DirectoryUserCounts {
  @Integer({ doc: 'People who are active.', minimum: 0 }) active!: number;
  @Integer({ doc: 'People who are not.', minimum: 0 }) inactive!: number;
}

export class DirectoryMetadata {
  @Nested(() => DirectoryUserCounts, { doc: 'Its people.' }) users!: DirectoryUserCounts;
  @Integer({ doc: 'Its groups.', minimum: 0 }) groups!: number;
}

/** Where the people and groups of an organization come from. */
export class Directory {
  @Const('directory') object!: 'directory';
  @Id('directory', { doc: 'Identifies the directory.' }) id!: string;
  @Ref(() => Organization, { doc: 'The organization whose people it holds.' }) organization_id!: string;
  @Text({ doc: 'Tells it from others in addresses that people see.', example: '4T5V7X9Z1B3D5F7H' }) external_key!: string;
  @OneOf(DIRECTORY_TYPES, { doc: 'The product that it is kept in.' }) type!: (typeof DIRECTORY_TYPES)[number];
  @OneOf(STATES, {
    doc: '`validating` until the product was heard of first, then `linked`; `invalid_credentials` while it comes with a token that was revoked; `unlinked` while it is switched off.',
  })
  state!: (typeof STATES)[number];
  @Text({ doc: 'Shown to people; not unique.', min: 1, max: 255, example: 'Acme Okta' }) name!: string;
  @Optional() @Text({ doc: 'The first domain of its organization; absent where that has none.', example: 'acme.test' }) domain?: string;
  @Optional() @Nested(() => DirectoryMetadata, { doc: 'How much is in it.' }) metadata?: DirectoryMetadata;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When its settings or its state changed last.' }) updated_at!: string;
}

/** What of a person in the directory becomes one of `custom_attributes`. */
export class DirectoryAttribute {
  @Text({ doc: 'What it is called in `custom_attributes`.', min: 1, max: 64, pattern: /^[a-z][a-z0-9_]*$/, example: 'cost_center' }) name!: string;
  @Text({
    doc: 'Where it stands in what SCIM sends: an attribute, or one within another after a dot, and behind the name of its schema where it is of an extension.',
    min: 1,
    max: 255,
    example: 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:costCenter',
  })
  source!: string;
}

const FOLLOWS = ['off', 'memberships', 'memberships_and_roles'] as const;
const UNVERIFIED_DOMAINS = ['ignore', 'invite'] as const;
const ON_DELETE = ['release', 'end'] as const;

/** What becomes of the people of a directory in its organization. */
export class DirectoryPolicy {
  @OneOf(FOLLOWS, {
    doc: 'What follows its people: nothing; users and memberships; or these and the roles that its groups are mapped to.',
  })
  follows!: (typeof FOLLOWS)[number];
  @OneOf(UNVERIFIED_DOMAINS, { doc: 'What becomes of people whose address is of no domain that the organization has verified: nothing, or an invitation.' })
  unverified_domains!: (typeof UNVERIFIED_DOMAINS)[number];
  @OneOf(ON_DELETE, { doc: 'What becomes of the memberships that it manages once it is deleted: they are managed by hand, or end with it.' })
  on_delete!: (typeof ON_DELETE)[number];
}

/** Changes of a policy: what is absent stays, or is as at first. */
export class DirectoryPolicyChanges {
  @Optional() @Picked(DirectoryPolicy) follows?: DirectoryPolicy['follows'];
  @Optional() @Picked(DirectoryPolicy) unverified_domains?: DirectoryPolicy['unverified_domains'];
  @Optional() @Picked(DirectoryPolicy) on_delete?: DirectoryPolicy['on_delete'];
}

/** A directory with how it is set up. */
export class ConfiguredDirectory extends Directory {
  @Nested(() => DirectoryPolicy, { doc: 'What becomes of its people in the organization.' }) policy!: DirectoryPolicy;
  @ListOf(() => DirectoryAttribute, { doc: 'What becomes `custom_attributes` of its people.' }) attributes!: readonly DirectoryAttribute[];
  @Text({ doc: 'Where the product sends people and groups by SCIM 2.0: a path of this API.', example: '/scim/v2/directory_01JG8K3M0Q5R7T9V1X3Z5B7D9F' })
  scim_path!: string;
}

/** A token by which a product may write into a directory. */
export class DirectoryToken {
  @Const('directory_token') object!: 'directory_token';
  @Id('directory_token', { doc: 'Identifies the token; not a secret.' }) id!: string;
  @Ref(() => Directory, { doc: 'The directory.' }) directory_id!: string;
  @Ref(() => Organization, { doc: 'The organization of the directory.' }) organization_id!: string;
  @Text({ doc: 'Tells people which it is: its last four characters.', example: '1f9a' }) token_suffix!: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
}

/** A token in the one answer that shows its value. */
export class DirectoryTokenWithValue extends DirectoryToken {
  @Text({ doc: 'The token itself: it cannot be shown again.', secret: true }) token!: string;
}

/** A domain of the organization, as events of a directory show it. */
export class EventDirectoryDomain {
  @Const('organization_domain') object!: 'organization_domain';
  @Id('org_domain', { doc: 'Identifies the domain.' }) id!: string;
  @Text({ doc: 'The domain.', max: 253, example: 'acme.test' }) domain!: string;
}

/** A directory as it ends: events know its state by other words. */
export class EventDirectory extends without(Directory, 'external_key', 'domain', 'metadata', 'state') {
  @OneOf(['active', 'validating', 'invalid_credentials', 'inactive', 'deleting'], { doc: '`active` is `linked`, `inactive` is `unlinked`.' })
  state!: 'active' | 'validating' | 'invalid_credentials' | 'inactive' | 'deleting';
}

/** A directory that was heard of for the first time. */
export class ActivatedDirectory extends EventDirectory {
  @Picked(Directory) external_key!: string;
  @ListOf(() => EventDirectoryDomain, { doc: 'The domains of its organization.' }) domains!: readonly EventDirectoryDomain[];
}

/** What a product asked by SCIM, and what it was answered, without what is personal. */
export class DirectoryRequest {
  @Const('directory_request') object!: 'directory_request';
  @Id('directory_request', { doc: 'Identifies the request.' }) id!: string;
  @Ref(() => Directory, { doc: 'The directory.' }) directory_id!: string;
  @Text({ doc: 'The method.', example: 'PATCH' }) method!: string;
  @Text({ doc: 'The path below the address of the directory, with the values of filters left out.', example: '/Users?filter=userName eq "…"' }) path!: string;
  @ListOf({ text: {} }, { doc: 'Names of the attributes that its body held; of a PATCH, its operations and paths.', example: ['replace active'] })
  attributes!: readonly string[];
  @Integer({ doc: 'The status that it was answered with.', example: 200 }) status!: number;
  @Text({ doc: 'What was wrong with it, in the words of SCIM; null where nothing was.', nullable: true, example: 'uniqueness' }) error!: string | null;
  @Text({ doc: 'The sentence of the refusal; null where nothing was refused.', nullable: true }) detail!: string | null;
  @Text({ doc: 'The request id, as its answer carried it.', example: 'req_01JG8K3M0Q5R7T9V1X3Z5B7D9F' }) request_id!: string;
  @Integer({ doc: 'How long the answer took, in milliseconds.', minimum: 0 }) duration_ms!: number;
  @Time({ doc: 'When it came.' }) created_at!: string;
}
