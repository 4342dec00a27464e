import { Const, Id, ListOf, OneOf, Picked, Ref, Text, Time } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';
import { PERMISSION_SLUG } from '../permissions/permission.ts';
import { SLUG } from '../resource-types/resource-type.ts';

/** What the slug of a custom role begins with, and no other. */
export const CUSTOM_ROLE = 'org-';

/** Permissions under a name, given to people and groups: one of the environment's, or an organization's own. */
export class Role {
  @Const('role') object!: 'role';
  @Id('role', { doc: 'Identifies the role.' }) id!: string;
  @Text({ doc: "Names the role in requests, for good. An organization's own begin with `org-`.", ...SLUG, example: 'editor' }) slug!: string;
  @Text({ doc: 'Shown to people.', min: 1, max: 48, example: 'Editor' }) name!: string;
  @Text({ doc: 'What it is for.', max: 150, nullable: true, example: 'Writes and publishes documents.' }) description!: string | null;
  @OneOf(['EnvironmentRole', 'OrganizationRole'], { doc: 'Whether all organizations have it, or one.' }) type!: 'EnvironmentRole' | 'OrganizationRole';
  @Text({ doc: 'Slug of the resource type that it can be assigned on.', ...SLUG, example: 'organization' }) resource_type_slug!: string;
  @ListOf({ text: PERMISSION_SLUG }, { doc: 'Slugs of its permissions.', example: ['documents:read'] }) permissions!: readonly string[];
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

/** An organization's own role, as events show it. */
export class OrganizationRole {
  @Const('organization_role') object!: 'organization_role';
  @Picked(Role) id!: string;
  @Ref(() => Organization, { doc: 'The organization that it belongs to.' }) organization_id!: string;
  @Picked(Role) slug!: string;
  @Picked(Role) name!: string;
  @Picked(Role) description!: string | null;
  @Picked(Role) resource_type_slug!: string;
  @Picked(Role) permissions!: readonly string[];
  @Picked(Role) created_at!: string;
  @Picked(Role) updated_at!: string;
}
