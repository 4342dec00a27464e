import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import type { Hanging } from '#libs/event-sourcing/src/deciding/guards/hanging';
import type { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { EventMeta } from '#libs/event-sourcing/src/log/event-store';
import type { Clock } from '#libs/platform/src/clock';
import { systemContext } from '#libs/platform/src/system-context';
import { groupRoleAssignmentDecider, groupRoleAssignments, type GroupRoleAssignmentEvent } from '../domain/group-role-assignment.decider.ts';
import { organizationRolesDecider, undoOrganizationRole, type OrganizationRolesEvent } from '../domain/organization-roles.decider.ts';
import type { ResourceEvent } from '../domain/resource.events.ts';
import { roleAssignmentDecider, roleAssignments, type RoleAssignmentEvent } from '../domain/role-assignment.decider.ts';
import type { ParentRows } from '../repositories/parent-rows.ts';
import type { ResourceTrees } from '../repositories/resource-trees.ts';
import { undo } from './undo-resource.ts';

interface Needs {
  readonly parents: ParentRows;
  readonly repository: Repository;
  readonly trees: ResourceTrees;
  readonly clock: Clock;
}

/** What intents close here. */
export const CLOSED = ['resource_type', 'organization_role', 'resource'] as const;

type Resources = FactOf<ResourceEvent, 'resource.created' | 'resource.moved'>;
type Roles = FactOf<OrganizationRolesEvent, 'organization_role.created'>;
type Assignments = FactOf<RoleAssignmentEvent, 'role_assignment.created'>;
type GroupAssignments = FactOf<GroupRoleAssignmentEvent, 'group_role_assignment.created'>;

/** What begins to hang on what in this service, and how it ends where it may not. */
export function hangings({ parents, repository, trees, clock }: Needs): readonly Hanging[] {
  const context = ({ environment }: EventMeta) => systemContext(environment, clock.now());

  const onResource = ({ data: { organization_id, role, resource }, meta: { environment } }: Recorded<Assignments> | Recorded<GroupAssignments>) => [
    parents.role(environment, organization_id, role.id),
    parents.resource(environment, resource.id),
    parents.organization(environment, organization_id),
  ];

  const resources: Hanging<Resources> = {
    begins: ['resource.created', 'resource.moved'],
    hangsOn: async ({ data, meta: { environment, organization } }) => {
      const place = await parents.place(environment, data.id, data.parent_resource_id);
      // What is gone already hangs on nothing.
      return place.length === 0 ? [] : [await parents.organization(environment, organization!), ...place];
    },
    undo: ({ data, meta }) => trees.amend(context(meta), meta.organization!, data.id, undo(meta.commandId)),
  };
  const roles: Hanging<Roles> = {
    begins: ['organization_role.created'],
    hangsOn: async ({ data, meta }) => (data.resource_type_id === null ? [] : [await parents.type(meta.environment, data.resource_type_id)]),
    undo: ({ data, meta }) => repository.transact(organizationRolesDecider, context(meta), meta.organization!, undoOrganizationRole(data.id)),
  };
  const assignments: Hanging<Assignments> = {
    begins: ['role_assignment.created'],
    hangsOn: (event) => Promise.all([...onResource(event), parents.membership(event.meta.environment, event.data.organization_membership_id)]),
    undo: ({ data: { id, organization_membership_id, role, resource }, meta }) => {
      const key = roleAssignments.keyOf(organization_membership_id, role.id, resource.id);
      return repository.transact(roleAssignmentDecider, context(meta), key, roleAssignments.remove(id));
    },
  };
  const groupAssignments: Hanging<GroupAssignments> = {
    begins: ['group_role_assignment.created'],
    hangsOn: (event) => Promise.all([...onResource(event), parents.group(event.meta.environment, event.data.group_id)]),
    undo: ({ data: { id, group_id, role, resource }, meta }) => {
      const key = groupRoleAssignments.keyOf(group_id, role.id, resource.id);
      return repository.transact(groupRoleAssignmentDecider, context(meta), key, groupRoleAssignments.remove(id));
    },
  };
  return [resources, roles, assignments, groupAssignments];
}
