import type { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import type { Clock } from '#libs/platform/src/clock';
import type { Positions } from '#libs/platform/src/positions';
import { systemContext } from '#libs/platform/src/system-context';
import type { ReadModels, Table } from '#libs/read-models/src/read-models';
import {
  groupRoleAssignmentDecider,
  groupRoleAssignmentKey,
  removeGroupRoleAssignment,
  type NewGroupRoleAssignment,
} from '../domain/group-role-assignment.decider.ts';
import { removeRoleAssignment, roleAssignmentDecider, roleAssignmentKey, type NewRoleAssignment } from '../domain/role-assignment.decider.ts';
import { groupRoleAssignmentsView } from '../views/group-role-assignments.view.ts';
import { roleAssignmentsView } from '../views/role-assignments.view.ts';

interface Needs {
  readonly repository: Repository;
  readonly readModels: ReadModels;
  readonly positions: Positions;
  readonly clock: Clock;
}

/** The index under which assignments are found that hang on what an event says is gone. */
const INDEXES = {
  'organization_membership.deleted': 'membership',
  'group.deleted': 'group',
  'role.deleted': 'role',
  'organization_role.deleted': 'role',
  'resource.deleted': 'resource',
  'organization.deleted': 'organization',
} as const;

/** How many are deleted at once. */
const SLICE = 100;

/**
 * Assignments are dead with their membership or group, role and resource; this tells so of each. Asked again, it finds none left to tell of. What is recorded
 * behind the deletion is taken back where it comes (`hangings.ts`).
 */
export function deleteAssignmentsOfWhatIsGone({ repository, readModels, positions, clock }: Needs): Reaction {
  const direct = readModels.table(tableOf(roleAssignmentsView));
  const ofGroups = readModels.table(tableOf(groupRoleAssignmentsView));
  const context = (environment: string) => systemContext(environment, clock.now());
  const removeDirect = (environment: string, { id, organization_membership_id, role, resource }: NewRoleAssignment) =>
    repository.transact(
      roleAssignmentDecider,
      context(environment),
      roleAssignmentKey(organization_membership_id, role.id, resource.id),
      removeRoleAssignment(id),
    );
  const removeOfGroup = (environment: string, { id, group_id, role, resource }: NewGroupRoleAssignment) =>
    repository.transact(
      groupRoleAssignmentDecider,
      context(environment),
      groupRoleAssignmentKey(group_id, role.id, resource.id),
      removeGroupRoleAssignment(id),
    );

  return {
    name: 'delete-assignments-of-what-is-gone',
    handles: Object.keys(INDEXES),
    react: async ({ type, data, position, meta: { environment } }) => {
      const { id } = data as { readonly id: string };
      const index = INDEXES[type as keyof typeof INDEXES];
      // What was given before is to be among the rows.
      await positions.reached(position, context(environment).deadline);
      await forEach(direct, environment, index, id, (row) => removeDirect(environment, row));
      await forEach(ofGroups, environment, index, id, (row) => removeOfGroup(environment, row));
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
