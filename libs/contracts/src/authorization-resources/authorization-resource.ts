import { Const, Id, Ref, Text, Time } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';

/** Something of the application's that people get access to. The resources of an organization form a tree; its root stands for the organization itself. */
export class AuthorizationResource {
  @Const('authorization_resource') object!: 'authorization_resource';
  @Id('authz_resource', { doc: 'Identifies the resource.' }) id!: string;
  @Text({
    doc: 'Your own identifier; unique among the resources of its type in the organization, and never changes. That of an organization resource is the id of the organization.',
    min: 1,
    max: 128,
    ascii: true,
    example: 'project-42',
  })
  external_id!: string;
  @Text({ doc: 'The type that it is of; `organization` for the root of the tree.', min: 1, max: 48, example: 'project' }) resource_type_slug!: string;
  @Ref(() => Organization, { doc: 'The organization that it belongs to.' }) organization_id!: string;
  @Ref(() => AuthorizationResource, { doc: 'What it hangs under: access to that is access to this. Null for the organization resource alone.', nullable: true })
  parent_resource_id!: string | null;
  // The organization resource has the name of its organization, which may be longer than others.
  @Text({ doc: 'Shown to people; not unique.', min: 1, max: 255, example: 'Website relaunch' }) name!: string;
  @Text({ doc: 'Says more.', max: 150, nullable: true, example: 'Everything about the new website.' }) description!: string | null;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}
