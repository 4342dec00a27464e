import type { OrganizationRolesEvent } from '#apps/authorization/src/domain/organization-roles.decider';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import type { View } from '#libs/event-sourcing/src/views/view';

export interface MappedDirectory {
  readonly organization_id: string;
  /** Groups that give roles, each with how many. */
  readonly groups: Readonly<Record<string, number>>;
}

/** Directories whose groups give roles, under their ids: a change in any other concerns no role. */
export const roleMappingsView: View<MappedDirectory, FactOf<OrganizationRolesEvent, 'role_mappings.changed'>> = {
  name: 'role_mappings',
  version: 1,
  awaited: false,
  handles: ['role_mappings.changed'],
  indexes: [],
  idsOf: ({ data }) => [data.directory_id],
  evolve: (row, { data: { organization_id, added, removed } }) => {
    const counts = new Map(Object.entries(row?.groups ?? {}));
    for (const { group_id } of added) counts.set(group_id, (counts.get(group_id) ?? 0) + 1);
    for (const { group_id } of removed) counts.set(group_id, (counts.get(group_id) ?? 0) - 1);
    const groups = Object.fromEntries([...counts].filter(([, count]) => count > 0));
    return Object.keys(groups).length === 0 ? null : { organization_id, groups };
  },
};
