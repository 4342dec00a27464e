import { derivedId } from '#libs/platform/src/ids';
import { ORGANIZATION_TYPE } from '../resource-types/resource-type.ts';

/** The role of whoever has no other: every environment has it from the beginning, for good. */
export const DEFAULT_ROLE = 'member';

/** What an environment begins with, as `authorization_model.seeded` records it: the same ids whenever, and by whomever, it is asked. */
export interface Seeds {
  readonly permissions: readonly SeededPermission[];
  /** In the order of their priority. */
  readonly roles: readonly SeededRole[];
}

interface Seeded {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  readonly resource_type_id: null;
  readonly resource_type_slug: typeof ORGANIZATION_TYPE;
}

interface SeededPermission extends Seeded {
  readonly system: true;
}

interface SeededRole extends Seeded {
  readonly permissions: readonly { readonly id: string; readonly slug: string }[];
}

/** Those that the widgets ask for, and how people read them. */
const WIDGET_PERMISSIONS = [
  ['widgets:users-table:manage', 'Manage members', 'Invite, change and remove members in the users widget.'],
  ['widgets:domain-verification:manage', 'Verify domains', 'Add and verify domains in the domain widget.'],
  ['widgets:sso:manage', 'Manage single sign-on', 'Set up single sign-on in its widget.'],
  ['widgets:api-keys:manage', 'Manage API keys', 'Create and revoke API keys in their widget.'],
  ['widgets:dsync:manage', 'Manage directory sync', 'Set up directory sync in its widget.'],
  ['widgets:audit-log-streaming:manage', 'Manage audit log streams', 'Set up audit log streams in their widget.'],
  ['widgets:pipes:manage', 'Manage connected accounts', 'Connect accounts in the pipes widget.'],
] as const;

/** The seeds of an environment. Their ids derive from its own, so that every service knows them without asking. */
export function seedsOf(environmentId: string): Seeds {
  const idOf = (prefix: string, ordinal: number): string => `${prefix}_${derivedId(environmentId.slice(-26), ordinal)}`;
  const type = { resource_type_id: null, resource_type_slug: ORGANIZATION_TYPE } as const;
  const permissions = WIDGET_PERMISSIONS.map(([slug, name, description], index) => ({
    ...{ id: idOf('perm', index + 1), slug, name, description, system: true as const },
    ...type,
  }));
  const [admin, member] = [idOf('role', 1), idOf('role', 2)];
  return {
    permissions,
    roles: [
      {
        id: admin,
        slug: 'admin',
        name: 'Admin',
        description: 'Manages the organization.',
        ...type,
        permissions: permissions.map(({ id, slug }) => ({ id, slug })),
      },
      { id: member, slug: DEFAULT_ROLE, name: 'Member', description: 'What everybody has who has no other role.', ...type, permissions: [] },
    ],
  };
}
