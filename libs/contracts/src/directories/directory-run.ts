import { Const, Flag, Id, Integer, ListOf, Nested, OneOf, Ref, Text, Time } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';
import { Directory } from './directory.ts';

/** What a listing makes of the people of a directory. */
export class DirectoryRunUsers {
  @Integer({ doc: 'People in the listing.', minimum: 0 }) listed!: number;
  @Integer({ doc: 'Those who are new.', minimum: 0 }) created!: number;
  @Integer({ doc: 'Those who change.', minimum: 0 }) updated!: number;
  @Integer({ doc: 'Those who stay as they are.', minimum: 0 }) unchanged!: number;
  @Integer({ doc: 'People of the directory who are not in the listing: they go.', minimum: 0 }) removed!: number;
}

/** What a listing makes of the groups of a directory. */
export class DirectoryRunGroups {
  @Integer({ doc: 'Groups in the listing.', minimum: 0 }) listed!: number;
  @Integer({ doc: 'Those that are new.', minimum: 0 }) created!: number;
  @Integer({ doc: 'Those that change, or whose members do.', minimum: 0 }) updated!: number;
  @Integer({ doc: 'Those that stay as they are.', minimum: 0 }) unchanged!: number;
  @Integer({ doc: 'Groups of the directory that are not in the listing: they go.', minimum: 0 }) removed!: number;
  @Integer({ doc: 'Members who join, of all groups.', minimum: 0 }) members_added!: number;
  @Integer({ doc: 'Members who leave, of the groups that stay.', minimum: 0 }) members_removed!: number;
}

/** What is wrong with a listing, or with a line of it. */
export class DirectoryRunError {
  @Integer({ doc: 'The line, counted from 1; null where it is about all of them.', nullable: true, minimum: 1 }) line!: number | null;
  @Text({ doc: 'What kind of fault it is.', example: 'invalid_entry' }) code!: string;
  @Text({ doc: 'The fault in words, without what the line says.' }) message!: string;
}

export const RUN_PHASES = ['queued', 'comparing', 'applying', 'completed', 'refused', 'failed'] as const;

/** How far a full listing of a directory is carried out. */
export class DirectoryRun {
  @Const('directory_run') object!: 'directory_run';
  @Id('directory_run', { doc: 'Identifies the run.' }) id!: string;
  @Ref(() => Directory, { doc: 'The directory.' }) directory_id!: string;
  @Ref(() => Organization, { doc: 'The organization of the directory.' }) organization_id!: string;
  @OneOf(RUN_PHASES, {
    doc: '`comparing` changes nothing yet; `refused`: what it asks for has to be asked for with `force`, and nothing was changed; `failed`: `errors` tell why, and whatever was carried out before stays.',
  })
  phase!: (typeof RUN_PHASES)[number];
  @Flag({ doc: 'Whether it is to be compared alone.' }) dry_run!: boolean;
  @Nested(() => DirectoryRunUsers, { doc: 'What becomes of people; zeros until they were compared.' }) users!: DirectoryRunUsers;
  @Nested(() => DirectoryRunGroups, { doc: 'What becomes of groups; zeros until they were compared.' }) groups!: DirectoryRunGroups;
  @Integer({ doc: 'Lines that were read, in the present phase.', minimum: 0 }) lines!: number;
  @ListOf(() => DirectoryRunError, { doc: 'The first 100 faults.' }) errors!: readonly DirectoryRunError[];
  @Integer({ doc: 'How many faults there are.', minimum: 0 }) error_count!: number;
  @Time({ doc: 'When the listing was there.' }) created_at!: string;
  @Time({ doc: 'When it came further last.' }) updated_at!: string;
}
