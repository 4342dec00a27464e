import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { FindGroups } from '#libs/contracts/src/groups/operations';
import { RoleAssignment } from '#libs/contracts/src/role-assignments/role-assignment';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type PageRequest, type Table } from '#libs/read-models/src/read-models';
import type { OrganizationIndex } from '../access/organization-index.ts';
import type { StoredGroupRoleAssignment } from '../domain/group-role-assignment.decider.ts';
import type { AssignedResource, AssignedRole } from '../domain/assignments.decider.ts';
import type { StoredRoleAssignment } from '../domain/role-assignment.decider.ts';
import { groupRoleAssignmentsView } from '../views/group-role-assignments.view.ts';
import { roleAssignmentsView } from '../views/role-assignments.view.ts';
import { areOfSameTime, boundsOfSameTime, groupEntryId, mayBeGroupEntry } from './group-entries.ts';
import { MergedPages, type Source, type Stretch } from './merged-pages.ts';

type Where = NonNullable<PageRequest['where']>;

/** What is read of a table at once, at most. */
const SLICE = 100;

const textOf = serialiserOf(RoleAssignment);

/** What a list of assignments is made of. */
interface ListSources {
  readonly index: OrganizationIndex;
  readonly direct: Where;
  readonly ofGroups: Where;
  /** The memberships that have something because of an assignment of their group. */
  readonly membersOf: (assignment: StoredGroupRoleAssignment) => readonly string[];
}

interface Item {
  readonly id: string;
  readonly assignment: RoleAssignment;
  /** The group through which the membership has it. */
  readonly groupId?: string;
}

/** The assignments of memberships: those stored, and those that they have because their groups have them. */
@Injectable()
export class AssignmentLists {
  private readonly direct: Table<StoredRoleAssignment>;
  private readonly ofGroups: Table<StoredGroupRoleAssignment>;

  constructor(
    private readonly transport: OperationTransport,
    readModels: ReadModels,
  ) {
    this.direct = readModels.table(tableOf(roleAssignmentsView));
    this.ofGroups = readModels.table(tableOf(groupRoleAssignmentsView));
  }

  pages(context: RequestContext, listed: ListSources): MergedPages<Item> {
    const { environment } = context;
    const { direct, ofGroups } = listed;
    const sources: Source<Item>[] = [];
    if (direct.values.length > 0) sources.push((stretch) => this.directItems(environment, listed, stretch));
    if (ofGroups.values.length > 0) sources.push((stretch) => this.groupItems(environment, listed, stretch));
    return new MergedPages(
      sources,
      (id) => this.wasListed(environment, id),
      (items) => this.textsOf(context, items),
    );
  }

  /** Groups are identity's: their names are asked for once a page. */
  private async textsOf(context: RequestContext, items: readonly Item[]): Promise<readonly string[]> {
    const ids = [...new Set(items.flatMap(({ groupId = [] }) => groupId))];
    const groups = ids.length === 0 ? [] : await this.transport.call(Object.assign(new FindGroups(), { context, ids }));
    const named = new Map(groups.map(({ id, name }) => [id, { id, name }]));
    return items.map(({ assignment, groupId }) =>
      // Null as well for a group that was deleted since.
      textOf(groupId === undefined ? assignment : { ...assignment, source: { ...assignment.source, group: named.get(groupId) ?? null } }),
    );
  }

  /** Whether an id is that of an entry that the membership has because of its groups. */
  async isGroupEntry(environment: string, index: OrganizationIndex, membershipId: string, id: string): Promise<boolean> {
    const groups = index.membership(membershipId)?.groups ?? [];
    if (!mayBeGroupEntry(id) || groups.length === 0) return false;
    const where = { index: 'group', values: groups };
    for await (const assignment of this.rowsOfGroups(environment, where, { from: id, isAscending: true, most: 1 })) {
      if (groupEntryId(assignment.id, membershipId) === id) return isLive(index, assignment);
      if (assignment.id > boundsOfSameTime(id).to) return false;
    }
    return false;
  }

  private async *directItems(environment: string, { index, direct: where }: ListSources, { from, isAscending, most }: Stretch): AsyncGenerator<Item> {
    const order = isAscending ? 'asc' : 'desc';
    // Two at least: where a slice begins with what the last one ended with, the other is news.
    const limit = Math.max(2, Math.min(most, SLICE));
    for (let at = from; ;) {
      const page = await this.direct.page(environment, { where, order, limit, ...(at !== null && (isAscending ? { from: at } : { to: at })) });
      for (const row of page.rows) {
        const { id } = row;
        if (id === at && at !== from) continue;
        const assignment = contentOf(row);
        if (isLive(index, assignment) && index.membership(assignment.organization_membership_id) !== null)
          yield { id, assignment: directAssignment(assignment) };
      }
      if (!page.hasAfter) return;
      at = page.rows.at(-1)!.id;
    }
  }

  /** In the order of ids, which is that of the groups' assignments by time; those of one millisecond are mixed. */
  private async *groupItems(environment: string, listed: ListSources, stretch: Stretch): AsyncGenerator<Item> {
    const { index, ofGroups } = listed;
    let together: StoredGroupRoleAssignment[] = [];
    for await (const assignment of this.rowsOfGroups(environment, ofGroups, stretch)) {
      if (!isLive(index, assignment)) continue;
      if (together[0] !== undefined && !areOfSameTime(together[0].id, assignment.id)) {
        yield* this.entries(together, listed, stretch);
        together = [];
      }
      together.push(assignment);
    }
    yield* this.entries(together, listed, stretch);
  }

  private async *entries(assignments: readonly StoredGroupRoleAssignment[], { membersOf }: ListSources, { from, isAscending }: Stretch): AsyncGenerator<Item> {
    const entries: { readonly id: string; readonly assignment: StoredGroupRoleAssignment; readonly member: string }[] = [];
    for (const assignment of assignments) {
      // Each of them may have thousands of members.
      if (entries.length > 0) await nextTurn();
      for (const member of membersOf(assignment)) {
        const id = groupEntryId(assignment.id, member);
        if (from === null || id === from || id > from === isAscending) entries.push({ id, assignment, member });
      }
    }
    entries.sort((one, other) => (one.id < other.id === isAscending ? -1 : 1));
    for (const { id, assignment, member } of entries) yield { id, assignment: groupEntry(id, assignment, member), groupId: assignment.group_id };
  }

  private async *rowsOfGroups(environment: string, where: Where, { from, isAscending }: Stretch): AsyncGenerator<StoredGroupRoleAssignment> {
    const bounds = from === null ? null : boundsOfSameTime(from);
    const begin = bounds === null ? {} : isAscending ? { from: bounds.from } : { to: bounds.to };
    for (let after: string | undefined; ;) {
      const page = await this.ofGroups.page(environment, {
        where,
        order: isAscending ? 'asc' : 'desc',
        limit: SLICE,
        ...begin,
        ...(after !== undefined && { after }),
      });
      yield* page.rows.map(contentOf);
      if (!page.hasAfter) return;
      after = page.rows.at(-1)!.id;
    }
  }

  /** What comes through a group is stored nowhere: any id of its form may have been one. */
  private async wasListed(environment: string, id: string): Promise<boolean> {
    return mayBeGroupEntry(id) || this.direct.hasHeld(environment, id);
  }
}

/** Whether what was assigned there is still there. */
export function isLive(index: OrganizationIndex, { role, resource }: { readonly role: AssignedRole; readonly resource: AssignedResource }): boolean {
  return index.roleById(role.id) !== null && index.tree.nodeById(resource.id) !== undefined;
}

/** As the API shows it. */
export function directAssignment(assignment: StoredRoleAssignment): RoleAssignment {
  return shown(assignment, assignment.id, assignment.organization_membership_id, { type: 'direct', group_role_assignment_id: null, group: null });
}

function groupEntry(id: string, assignment: StoredGroupRoleAssignment, membership: string): RoleAssignment {
  return shown(assignment, id, membership, { type: 'group', group_role_assignment_id: assignment.id, group: null });
}

function shown(
  { role, resource, created_at }: Pick<StoredRoleAssignment, 'role' | 'resource' | 'created_at'>,
  id: string,
  organization_membership_id: string,
  source: RoleAssignment['source'],
): RoleAssignment {
  return { object: 'role_assignment', id, organization_membership_id, role, resource, source, created_at, updated_at: created_at };
}
