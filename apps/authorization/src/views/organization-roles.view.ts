import { primaryView } from '#libs/event-sourcing/src/views/view';
import { organizationRolesDecider, type OrganizationRolesEvent, type OrganizationRolesState } from '../domain/organization-roles.decider.ts';

/** One row per organization that ever had a role of its own, under the organization's id. Private: answers are picked from it. */
export const organizationRolesView = primaryView<OrganizationRolesState | null, OrganizationRolesEvent, OrganizationRolesState>({
  name: 'organization_roles',
  version: 2,
  decider: organizationRolesDecider,
  indexes: [
    { name: 'permission', keys: ({ roles }) => [...new Set(roles.flatMap(({ permissions }) => permissions.map(({ id }) => id)))] },
    { name: 'resource_type', keys: ({ roles }) => [...new Set(roles.flatMap(({ resource_type_id }) => resource_type_id ?? []))] },
    { name: 'mapped_role', keys: ({ mappings = {} }) => [...new Set(Object.values(mappings).flatMap((each) => each.map(({ role_id }) => role_id)))] },
  ],
  rowOf: (state) => state,
});
