import { Const, Flag, Id, Text, Time } from '../fields.ts';
import { SLUG } from '../resource-types/resource-type.ts';

/** What permission slugs are made of. */
export const PERMISSION_SLUG = { min: 1, max: 48, pattern: /^[a-z0-9_:.*-]+$/ } as const;

/** Something that a role may allow. */
export class Permission {
  @Const('permission') object!: 'permission';
  @Id('perm', { doc: 'Identifies the permission.' }) id!: string;
  @Text({ doc: 'Names the permission in requests: unique in the environment, and for good.', ...PERMISSION_SLUG, example: 'documents:read' }) slug!: string;
  @Text({ doc: 'Shown to people.', min: 1, max: 48, example: 'Read documents' }) name!: string;
  @Text({ doc: 'What it allows.', max: 150, nullable: true, example: 'Open and search documents.' }) description!: string | null;
  @Flag({ doc: 'Whether it came with the environment: then it cannot be changed or deleted.' }) system!: boolean;
  @Text({ doc: 'Slug of the resource type that it is about.', ...SLUG, example: 'organization' }) resource_type_slug!: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}
