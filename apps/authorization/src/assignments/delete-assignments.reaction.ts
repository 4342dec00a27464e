import type { Fact } from '#libs/event-sourcing/src/decider';
import type { Positions } from '#libs/event-sourcing/src/positions';
import type { Reaction } from '#libs/event-sourcing/src/reaction';
import type { Repository } from '#libs/event-sourcing/src/repository';
import { tableOf } from '#libs/event-sourcing/src/view';
import type { Clock } from '#libs/platform/src/clock';
import { systemContext } from '#libs/platform/src/system-context';
import type { ReadModels, Table } from '#libs/read-models/src/read-models';
import {
  groupRoleAssignmentDecider,
  groupRoleAssignmentKey,
  removeGroupRoleAssignment,
  type LivingGroupRoleAssignment,
} from './group-role-assignment.decider.ts';
import { groupRoleAssignmentsView } from './group-role-assignments.view.ts';
import { removeRoleAssignment, roleAssignmentDecider, roleAssignmentKey, type LivingRoleAssignment } from './role-assignment.decider.ts';
import { roleAssignmentsView } from './role-assignments.view.ts';

interface Needs {
  readonly repository: Repository;
  readonly readModels: ReadModels;
  readonly positions: Positions;
  readonly clock: Clock;
}

/** The index under which assignments are found that hang on what an event says is gone. */
const INDEXES: Readonly<Record<string, string>> = {
  'organization_membership.deleted': 'membership',
  'group.deleted': 'group',
  'role.deleted': 'role',
  'organization_role.deleted': 'role',
  'resource.deleted': 'resource',
  'organization.deleted': 'organization',
};

/** How many are deleted at once. */
const SLICE = 100;

/** Assignments are dead with their membership or group, role and resource; this tells so of each. Asked again, it finds none left to tell of. */
export function deleteAssignmentsOfWhatIsGone({ repository, readModels, positions, clock }: Needs): Reaction {
  const direct = readModels.table(tableOf(roleAssignmentsView));
  const ofGroups = readModels.table(tableOf(groupRoleAssignmentsView));
  return {
    name: 'delete-assignments-of-what-is-gone',
    handles: Object.keys(INDEXES),
    react: async ({ type, data, meta: { environment }, position }) => {
      const index = INDEXES[type]!;
      const { id } = data as Fact<string, { readonly id: string }>['data'];
      const context = () => systemContext(environment, clock.now());
      // The rows of what was assigned before it was gone.
      await positions.reached(position, context().deadline);
      await forEach(direct, environment, index, id, ({ id: assignment, organization_membership_id, role, resource }: LivingRoleAssignment) => {
        const key = roleAssignmentKey(organization_membership_id, role.id, resource.id);
        return repository.transact(roleAssignmentDecider, context(), key, removeRoleAssignment(assignment));
      });
      await forEach(ofGroups, environment, index, id, ({ id: assignment, group_id, role, resource }: LivingGroupRoleAssignment) => {
        const key = groupRoleAssignmentKey(group_id, role.id, resource.id);
        return repository.transact(groupRoleAssignmentDecider, context(), key, removeGroupRoleAssignment(assignment));
      });
    },
  };
}

async function forEach<Row>(table: Table<Row>, environment: string, index: string, value: string, work: (row: Row) => Promise<unknown>): Promise<void> {
  if (!table.definition.indexes.some(({ name }) => name === index)) return;
  const where = { index, values: [value] };
  for (let after: string | undefined; ;) {
    const { rows, hasAfter } = await table.page(environment, { where, order: 'asc', limit: SLICE, ...(after !== undefined && { after }) });
    await Promise.all(rows.map(({ text }) => work(JSON.parse(text) as Row)));
    if (!hasAfter) return;
    after = rows.at(-1)!.id;
  }
}
