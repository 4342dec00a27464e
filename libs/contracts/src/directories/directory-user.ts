import { Const, Flag, Id, JsonObject, ListOf, Nested, OneOf, Optional, Ref, Text, Time, without } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';
import { DirectoryGroup } from './directory-group.ts';
import { Directory } from './directory.ts';

/** An address of a person in a directory. */
export class DirectoryUserEmail {
  @Optional() @Flag({ doc: 'Whether it is the one to use.' }) primary?: boolean;
  @Optional() @Text({ doc: 'What it is for.', nullable: true, example: 'work' }) type?: string | null;
  @Text({ doc: 'The address.', nullable: true, personal: true, example: 'ada@acme.test' }) value!: string | null;
}

const LINK_STATES = ['linked', 'domain_not_verified', 'deactivated_by_hand', 'email_taken', 'managed_elsewhere', 'unlinked_by_hand'] as const;
export type LinkState = (typeof LINK_STATES)[number];

/** A person in a directory. */
export class DirectoryUser {
  @Const('directory_user') object!: 'directory_user';
  @Id('directory_user', { doc: 'Identifies the person in this directory.' }) id!: string;
  @Ref(() => Directory, { doc: 'The directory.' }) directory_id!: string;
  @Ref(() => Organization, { doc: 'The organization of the directory.' }) organization_id!: string;
  @Text({ doc: 'What the product knows the person by; our id where it does not say.', personal: true, example: '00u1emaKYZTWRYYRRTSK' }) idp_id!: string;
  @Text({
    doc: 'The primary address, else that for work, else the first, else the user name where it is one.',
    nullable: true,
    personal: true,
    example: 'ada@acme.test',
  })
  email!: string | null;
  @Text({ doc: 'First name.', nullable: true, personal: true, example: 'Ada' }) first_name!: string | null;
  @Text({ doc: 'Last name.', nullable: true, personal: true, example: 'Lovelace' }) last_name!: string | null;
  @Text({ doc: 'The whole name.', nullable: true, personal: true, example: 'Ada Lovelace' }) name!: string | null;
  @ListOf(() => DirectoryUserEmail, { doc: 'Deprecated: all addresses.' }) emails!: readonly DirectoryUserEmail[];
  @Text({ doc: 'Deprecated: the user name.', nullable: true, personal: true, example: 'ada@acme.test' }) username!: string | null;
  @Text({ doc: 'Deprecated: the job title.', nullable: true, personal: true, example: 'Countess' }) job_title!: string | null;
  @OneOf(['active', 'inactive', 'suspended'], { doc: 'Whether the person may work; those who left the company are inactive, or gone.' })
  state!: 'active' | 'inactive' | 'suspended';
  @JsonObject({ doc: 'What the settings of the directory pick from what the product sends.', personal: true, example: { department: 'Research' } })
  custom_attributes!: Readonly<Record<string, unknown>>;
  @JsonObject({ doc: 'As the product sent it.', personal: true, example: { userName: 'ada@acme.test' } }) raw_attributes!: Readonly<Record<string, unknown>>;
  @ListOf(() => DirectoryGroup, { doc: 'Deprecated: the groups that the person is in. Empty in lists of the people in a group.' })
  groups!: readonly DirectoryGroup[];
  @OneOf(LINK_STATES, {
    nullable: true,
    doc: 'What has become of the person in the organization, as the policy of the directory has it. `linked`: the person has a membership. `domain_not_verified`: the address is of no domain that the organization has verified. `deactivated_by_hand`: the membership stays inactive until an administrator reactivates it. `email_taken`: another person or user has the address. `managed_elsewhere`: another directory of the organization manages the membership. `unlinked_by_hand`: the user or the membership was deleted, until the product sends a change of the person. null: nothing has.',
  })
  link_state!: LinkState | null;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

/** A person as events show it: without groups, and without what became of them, which follows. */
export class EventDirectoryUser extends without(DirectoryUser, 'groups', 'link_state') {}

/** A person who changed, as events show it. */
export class UpdatedDirectoryUser extends EventDirectoryUser {
  @JsonObject({ doc: 'What changed, as it was before: null for what was not there; of `raw_attributes` what changed in it.', personal: true })
  previous_attributes!: Readonly<Record<string, unknown>>;
}

/** A person who joined a group, or left it; `raw_attributes` of the person are empty. */
export class DirectoryGroupUser {
  @Ref(() => Directory, { doc: 'The directory.' }) directory_id!: string;
  @Nested(() => EventDirectoryUser, { doc: 'The person.' }) user!: EventDirectoryUser;
  @Nested(() => DirectoryGroup, { doc: 'The group.' }) group!: DirectoryGroup;
}
