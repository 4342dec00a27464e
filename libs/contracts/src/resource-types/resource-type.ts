import { Const, Id, ListOf, Text, Time } from '../fields.ts';

/** What slugs of types and roles are made of; they never change. */
export const SLUG = { min: 1, max: 48, pattern: /^[a-z0-9_-]+$/ } as const;
/** The type of every organization itself: built in, the root of every hierarchy. */
export const ORGANIZATION_TYPE = 'organization';

/** A kind of thing that an application has: workspaces, projects. `organization` is built in, and no object of its own. */
export class ResourceType {
  @Const('resource_type') object!: 'resource_type';
  @Id('resource_type', { doc: 'Identifies the type.' }) id!: string;
  @Text({ doc: 'Names the type in requests: unique in the environment, and for good.', ...SLUG, example: 'workspace' }) slug!: string;
  @Text({ doc: 'Shown to people.', min: 1, max: 48, example: 'Workspace' }) name!: string;
  @Text({ doc: 'What it is for.', max: 150, nullable: true, example: 'Where a team works.' }) description!: string | null;
  @ListOf(
    { text: SLUG },
    {
      doc: 'The types that a resource of this type may lie under: `organization`, or others. Each resource has one parent.',
      minItems: 1,
      maxItems: 100,
      example: ['organization'],
    },
  )
  parent_type_slugs!: readonly string[];
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}
