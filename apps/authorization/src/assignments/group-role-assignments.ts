import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import {
  CreateGroupRoleAssignment,
  DeleteGroupRoleAssignment,
  DeleteGroupRoleAssignmentById,
  GetGroupRoleAssignment,
  ListGroupRoleAssignments,
  ReplaceGroupRoleAssignments,
  UpdateGroupRoleAssignments,
} from '#libs/contracts/src/role-assignments/operations';
import { GroupRoleAssignment, type RequestedGroupRole } from '#libs/contracts/src/role-assignments/role-assignment';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository, type Transacted } from '#libs/event-sourcing/src/deciding/repository';
import type { Position } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { allDone } from '#libs/platform/src/all-done';
import { Clock } from '#libs/platform/src/clock';
import { invalidField, notFound } from '#libs/platform/src/domain-error';
import { derivedId, newCommandId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { filteredPage } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { AccessIndex } from '../access/access-index.ts';
import { namedResource, namedRole, roleFor } from '../access/named-resource.ts';
import type { OrganizationIndex } from '../access/organization-index.ts';
import type { Assigned } from '../domain/assignments.decider.ts';
import {
  groupRoleAssignmentDecider,
  groupRoleAssignments,
  type GroupRoleAssignmentEvent,
  type GroupRoleAssignmentState,
  type StoredGroupRoleAssignment,
} from '../domain/group-role-assignment.decider.ts';
import { groupRoleAssignmentsView } from '../views/group-role-assignments.view.ts';
import { AssignmentGuard } from './assignment-guard.ts';
import { isLive } from './assignment-lists.ts';
import { assignedResource } from './role-assignments.ts';

type Given = Assigned<'group_id'>;
type Assigning = Transacted<GroupRoleAssignmentState, GroupRoleAssignmentEvent>;

const ON_ORGANIZATION = { unless: 'organization' } as const;
const SLICE = 100;
/** Roles that one request may name, and that its answer shows. */
const MOST_AT_ONCE = 100;

const textOf = serialiserOf(GroupRoleAssignment);

/** Which role a group has where, and with it all of its members. */
@Injectable()
export class GroupRoleAssignments {
  private readonly rows: Table<StoredGroupRoleAssignment>;
  /** The end of the last replacement that was asked for, by group. */
  private readonly turns = new Map<string, Promise<void>>();

  constructor(
    private readonly repository: Repository,
    private readonly access: AccessIndex,
    private readonly guard: AssignmentGuard,
    private readonly clock: Clock,
    private readonly deletions: Deletions,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(groupRoleAssignmentsView));
  }

  @Handles(ListGroupRoleAssignments)
  async list(query: ListGroupRoleAssignments): Promise<Serialised<List<GroupRoleAssignment>>> {
    const index = await this.access.ofGroup(query.context, query.group_id);
    return filteredPage(this.rows, query, {
      idPrefix: 'gra',
      where: { index: 'group', values: [query.group_id] },
      textsOf: async (rows) => rows.map(contentOf).map((assignment) => (isLive(index, assignment) ? textOf(toPublicAssignment(assignment)) : null)),
    });
  }

  @Handles(CreateGroupRoleAssignment)
  async create(operation: CreateGroupRoleAssignment): Promise<GroupRoleAssignment> {
    const { context, group_id } = operation;
    const { given, transacted } = await this.guard.past(context, async () => {
      const index = await this.access.ofGroup(context, group_id);
      const given = givenBy(index, group_id, operation);
      this.guard.refuseClosed(index, given);
      return { given, transacted: await this.repository.transact(groupRoleAssignmentDecider, context, keyOf(given), groupRoleAssignments.assign(given)) };
    });
    // Another may have been made since this command's own was taken back.
    const assignment = groupRoleAssignments.require(transacted.state, groupRoleAssignmentId(context));
    await this.settle(context, given, assignment.id, transacted.position);
    return toPublicAssignment(assignment);
  }

  /** In this process one after another, so that two sets that are asked for at once do not end as a mixture of both. */
  @Handles(ReplaceGroupRoleAssignments)
  async replace(operation: ReplaceGroupRoleAssignments): Promise<List<GroupRoleAssignment>> {
    return this.inTurn(operation, () => this.replaceNow(operation));
  }

  /** What is asked for is looked up before anything happens: a role or a resource that is not there refuses all of it. */
  @Handles(UpdateGroupRoleAssignments)
  async update(operation: UpdateGroupRoleAssignments): Promise<Serialised<List<GroupRoleAssignment>>> {
    const { context, group_id } = operation;
    await this.inTurn(operation, () => this.updateNow(operation));
    return this.list(Object.assign(new ListGroupRoleAssignments(), { context, group_id, limit: MOST_AT_ONCE }));
  }

  private async inTurn<Done>({ context, group_id }: Pick<UpdateGroupRoleAssignments, 'context' | 'group_id'>, work: () => Promise<Done>): Promise<Done> {
    const group = `${context.environment} ${group_id}`;
    const done = (this.turns.get(group) ?? Promise.resolve()).then(work);
    const turn = done.then(
      () => {},
      () => {},
    );
    this.turns.set(group, turn);
    try {
      return await done;
    } finally {
      if (this.turns.get(group) === turn) this.turns.delete(group);
    }
  }

  @Handles(DeleteGroupRoleAssignment)
  async delete(operation: DeleteGroupRoleAssignment): Promise<void> {
    const { context, group_id, role_slug } = operation;
    await this.deletions.once({ context, what: 'Group role assignment', id: role_slug }, async () => {
      const index = await this.access.ofGroup(context, group_id);
      const resourceId = index.tree.idOf(namedResource(index, operation, ON_ORGANIZATION));
      const key = groupRoleAssignments.keyOf(group_id, namedRole(index, role_slug).id, resourceId);
      return this.repository.transact(groupRoleAssignmentDecider, context, key, groupRoleAssignments.removeAny());
    });
  }

  @Handles(GetGroupRoleAssignment)
  async get({ context, group_id, role_assignment_id }: GetGroupRoleAssignment): Promise<GroupRoleAssignment> {
    return toPublicAssignment(await this.found(context, group_id, role_assignment_id));
  }

  @Handles(DeleteGroupRoleAssignmentById)
  async deleteById({ context, group_id, role_assignment_id: id }: DeleteGroupRoleAssignmentById): Promise<void> {
    await this.deletions.once({ context, what: 'Group role assignment', id }, async () => {
      const assignment = await this.found(context, group_id, id);
      return this.repository.transact(groupRoleAssignmentDecider, context, keyOf(assignment), groupRoleAssignments.remove(id));
    });
  }

  /**
   * Gives first and takes away after, each assignment by itself: whoever repeats the command after it was interrupted finds part of it done, and the rest follows.
   */
  private async replaceNow({ context, group_id, role_assignments }: ReplaceGroupRoleAssignments): Promise<List<GroupRoleAssignment>> {
    const index = await this.access.ofGroup(context, group_id);
    const wanted = givenByKey(index, group_id, role_assignments, 'role_assignments');
    const assigned = await this.assignAll(context, index.id, wanted);
    const positions = assigned.map(({ position }) => position);
    for await (const assignments of this.assignmentsOf(context, group_id)) {
      const rest = assignments.filter((assignment) => !wanted.has(keyOf(assignment)));
      positions.push(...(await allDone(rest.map((assignment) => this.remove(context, assignment)))));
    }
    answerLastPosition(context, positions);
    const existing = assigned.flatMap(({ state }) => (state?.object === 'group_role_assignment' ? [toPublicAssignment(state)] : []));
    const newestFirst = existing.sort((one, other) => (one.id < other.id ? 1 : -1));
    return { object: 'list', data: newestFirst, list_metadata: { before: null, after: null } };
  }

  private async updateNow({ context, group_id, add = [], remove = [] }: UpdateGroupRoleAssignments): Promise<void> {
    if (add.length + remove.length > MOST_AT_ONCE) throw invalidField('too_many', 'remove', `add and remove must have at most ${MOST_AT_ONCE} roles together.`);
    const index = await this.access.ofGroup(context, group_id);
    const wanted = givenByKey(index, group_id, add, 'add');
    const unwanted = givenByKey(index, group_id, remove, 'remove');
    const isTwice = [...unwanted.keys()].some((key) => wanted.has(key));
    if (isTwice) throw invalidField('not_together', 'remove', 'A role cannot be given and taken away on one resource at once.');
    const assigned = await this.assignAll(context, index.id, wanted);
    const removed = await allDone(
      [...unwanted.keys()].map((key) => this.repository.transact(groupRoleAssignmentDecider, context, key, groupRoleAssignments.removeAny())),
    );
    answerLastPosition(
      context,
      [...assigned, ...removed].map(({ position }) => position),
    );
  }

  /** All of them, those that are there too, in the order of the request: so each has the same ids whenever the command is repeated. */
  private async assignAll(context: RequestContext, organizationId: string, wanted: ReadonlyMap<string, Given>): Promise<readonly Assigning[]> {
    const assigned = await this.guard.past(context, async () => {
      const index = await this.access.ofOrganization(context, organizationId);
      for (const given of wanted.values()) this.guard.refuseClosed(index, given);
      return allDone(
        [...wanted].map(([key, given], ordinal) =>
          this.repository.transact(groupRoleAssignmentDecider, context, key, groupRoleAssignments.keep(given, ordinal)),
        ),
      );
    });
    await allDone([...wanted].map(([key, given], place) => this.settleAssigned(context, { key, given }, assigned[place]!)));
    return assigned;
  }

  private async found(context: RequestContext, groupId: string, id: string): Promise<StoredGroupRoleAssignment> {
    const index = await this.access.ofGroup(context, groupId);
    const row = await this.rows.find(context, id);
    const assignment = row === null ? null : contentOf(row);
    if (assignment?.group_id !== groupId || !isLive(index, assignment)) throw notFound('Group role assignment', id);
    return assignment;
  }

  private async *assignmentsOf({ environment }: RequestContext, groupId: string): AsyncGenerator<readonly StoredGroupRoleAssignment[]> {
    const where = { index: 'group', values: [groupId] };
    for (let after: string | undefined; ;) {
      const { rows, hasAfter } = await this.rows.page(environment, { where, order: 'asc', limit: SLICE, ...(after !== undefined && { after }) });
      yield rows.map(contentOf);
      if (!hasAfter) return;
      after = rows.at(-1)!.id;
    }
  }

  /** Also what this very command gave before, and took back: it is refused again. What somebody else took away since stays away. */
  private async settleAssigned(
    context: RequestContext,
    { key, given }: { readonly key: string; readonly given: Given },
    { state, position }: Assigning,
  ): Promise<void> {
    if (state?.object === 'group_role_assignment') return this.settle(context, state, state.id, position);
    const repeated = await this.guard.givenBy(context, streamName(groupRoleAssignmentDecider.category, context.environment, key));
    if (repeated !== null) await this.settle(context, given, repeated.id, repeated.position);
  }

  /** Also one that is there already: whoever gave it may not have looked yet. */
  private settle(context: RequestContext, given: Given, id: string, position: Position): Promise<void> {
    const decision = groupRoleAssignments.remove(id);
    return this.guard.settle(context, given, position, (own) => this.repository.transact(groupRoleAssignmentDecider, own, keyOf(given), decision));
  }

  /** As a command of its own, since what there is to be removed differs when the command is repeated, and ids count. */
  private async remove(context: RequestContext, assignment: StoredGroupRoleAssignment): Promise<string> {
    const own = { ...context, commandId: newCommandId(this.clock.now()), attempt: 1, sentAt: undefined, receipt: {} };
    const decision = groupRoleAssignments.remove(assignment.id);
    return (await this.repository.transact(groupRoleAssignmentDecider, own, keyOf(assignment), decision)).position;
  }
}

function givenBy(index: OrganizationIndex, group_id: string, requested: RequestedGroupRole, within = ''): Given {
  const node = namedResource(index, requested, { ...ON_ORGANIZATION, within });
  const { id, slug } = roleFor(index, requested.role_slug, node, { within });
  return { organization_id: index.id, group_id, role: { id, slug }, resource: assignedResource(index, node) };
}

function givenByKey(index: OrganizationIndex, groupId: string, requested: readonly RequestedGroupRole[], field: string): ReadonlyMap<string, Given> {
  return new Map(
    requested.map((role, place) => {
      const given = givenBy(index, groupId, role, `${field}.${place}.`);
      return [keyOf(given), given];
    }),
  );
}

/** Of what a command gives. */
function groupRoleAssignmentId({ commandId }: RequestContext): string {
  return `gra_${derivedId(commandId, 0)}`;
}

function keyOf({ group_id, role, resource }: Given): string {
  return groupRoleAssignments.keyOf(group_id, role.id, resource.id);
}

/** As the API shows it. */
function toPublicAssignment({ object, id, group_id, role, resource, created_at }: StoredGroupRoleAssignment): GroupRoleAssignment {
  return { object, id, group_id, role, resource, created_at, updated_at: created_at };
}

/** Of what was recorded one by one, the answer tells the end. */
function answerLastPosition({ receipt }: RequestContext, positions: readonly string[]): void {
  const last = positions.toSorted().at(-1);
  if (last !== undefined) receipt.position = last;
}
