import type { Hanging } from '#libs/event-sourcing/src/deciding/guards/hanging';
import type { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { Clock } from '#libs/platform/src/clock';
import { systemContext } from '#libs/platform/src/system-context';
import {
  groupRoleAssignmentDecider,
  groupRoleAssignments,
  type GroupRoleAssignmentEvent,
  type NewGroupRoleAssignment,
} from '../domain/group-role-assignment.decider.ts';
import { organizationRolesDecider, undoOrganizationRole, type OrganizationRolesEvent } from '../domain/organization-roles.decider.ts';
import type { ResourceEvent } from '../domain/resource.events.ts';
import { roleAssignmentDecider, roleAssignments, type NewRoleAssignment, type RoleAssignmentEvent } from '../domain/role-assignment.decider.ts';
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

/** What begins to hang on what in this service, and how it ends where it may not. */
export function hangings({ parents, repository, trees, clock }: Needs): readonly Hanging[] {
  const context = (environment: string) => systemContext(environment, clock.now());
  return [
    {
      begins: ['resource.created', 'resource.moved'] satisfies readonly ResourceEvent['type'][],
      hangsOn: async ({ data, meta: { environment, organization } }) => {
        const { id, parent_resource_id } = data as { readonly id: string; readonly parent_resource_id: string };
        const place = await parents.place(environment, id, parent_resource_id);
        // What is gone already hangs on nothing.
        return place.length === 0 ? [] : [await parents.organization(environment, organization!), ...place];
      },
      undo: ({ data, meta: { environment, organization, commandId } }) => trees.amend(context(environment), organization!, idOf(data), undo(commandId)),
    },
    {
      begins: ['organization_role.created' satisfies OrganizationRolesEvent['type']],
      hangsOn: async ({ data, meta: { environment } }) => {
        const { resource_type_id } = data as { readonly resource_type_id: string | null };
        return resource_type_id === null ? [] : [await parents.type(environment, resource_type_id)];
      },
      undo: ({ data, meta: { environment, organization } }) =>
        repository.transact(organizationRolesDecider, context(environment), organization!, undoOrganizationRole(idOf(data))),
    },
    {
      begins: ['role_assignment.created' satisfies RoleAssignmentEvent['type']],
      hangsOn: async (event) => {
        const { organization_membership_id } = event.data as NewRoleAssignment;
        return Promise.all([...roleOnResource(parents, event), parents.membership(event.meta.environment, organization_membership_id)]);
      },
      undo: ({ data, meta: { environment } }) => {
        const { id, organization_membership_id, role, resource } = data as NewRoleAssignment;
        const key = roleAssignments.keyOf(organization_membership_id, role.id, resource.id);
        return repository.transact(roleAssignmentDecider, context(environment), key, roleAssignments.remove(id));
      },
    },
    {
      begins: ['group_role_assignment.created' satisfies GroupRoleAssignmentEvent['type']],
      hangsOn: async (event) => {
        const { group_id } = event.data as NewGroupRoleAssignment;
        return Promise.all([...roleOnResource(parents, event), parents.group(event.meta.environment, group_id)]);
      },
      undo: ({ data, meta: { environment } }) => {
        const { id, group_id, role, resource } = data as NewGroupRoleAssignment;
        const key = groupRoleAssignments.keyOf(group_id, role.id, resource.id);
        return repository.transact(groupRoleAssignmentDecider, context(environment), key, groupRoleAssignments.remove(id));
      },
    },
  ];
}

function roleOnResource(parents: ParentRows, { data, meta: { environment } }: RecordedEvent): readonly ReturnType<ParentRows['role']>[] {
  const { organization_id, role, resource } = data as NewRoleAssignment;
  return [parents.role(environment, organization_id, role.id), parents.resource(environment, resource.id), parents.organization(environment, organization_id)];
}

function idOf(data: unknown): string {
  return (data as { readonly id: string }).id;
}
