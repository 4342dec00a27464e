import { Const, Id, JsonObject, Ref, Text, Time } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';
import { Directory } from './directory.ts';

/** A group of people in a directory. */
export class DirectoryGroup {
  @Const('directory_group') object!: 'directory_group';
  @Id('directory_group', { doc: 'Identifies the group.' }) id!: string;
  @Text({ doc: 'What the product knows it by; our id where it does not say.', example: '00g1emaKYZTWRYYRRTSK' }) idp_id!: string;
  @Ref(() => Directory, { doc: 'The directory.' }) directory_id!: string;
  @Ref(() => Organization, { doc: 'The organization of the directory.' }) organization_id!: string;
  @Text({ doc: 'Shown to people; unique in its directory.', example: 'Engineering' }) name!: string;
  @JsonObject({ doc: 'As the product sent it, without its members.', example: { displayName: 'Engineering' } }) raw_attributes!: Readonly<
    Record<string, unknown>
  >;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last; its members do not count.' }) updated_at!: string;
}

/** A group that changed, as events show it. */
export class UpdatedDirectoryGroup extends DirectoryGroup {
  @JsonObject({ doc: 'What changed, as it was before: null for what was not there; of `raw_attributes` what changed in it.' })
  previous_attributes!: Readonly<Record<string, unknown>>;
}
