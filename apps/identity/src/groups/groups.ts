import { Injectable } from '@nestjs/common';
import type { Group, GroupMember } from '#libs/contracts/src/groups/group';
import {
  AddGroupMember,
  CreateGroup,
  DeleteGroup,
  FindGroups,
  GetGroup,
  ListGroupMembers,
  ListGroups,
  RemoveGroupMember,
  UpdateGroup,
  UpdateGroupMembers,
} from '#libs/contracts/src/groups/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import { ListOrganizationMembershipGroups } from '#libs/contracts/src/organization-memberships/operations';
import { OrganizationMembershipWithUser } from '#libs/contracts/src/organization-memberships/organization-membership';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { invalidField, notFound } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { pageOf, filteredPage } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import {
  addMember,
  changeMembers,
  createGroup,
  deleteGroup,
  groupDecider,
  requireGroup,
  removeMember,
  updateGroup,
  type GroupEvent,
  type GroupState,
  type StoredGroup,
} from '../domain/group.decider.ts';
import { MembershipReader } from '../readers/membership-reader.ts';
import { ParentReader } from '../readers/parent-reader.ts';
import { groupMembersView, groupSearchKey, groupsView, pairId, toPublicGroupText } from '../views/groups.view.ts';
import { pageOfNamed, searchWords } from '#libs/read-models/src/name-search';

const serialiseMembership = serialiserOf(OrganizationMembershipWithUser);
/** Memberships that one request may name. */
const MOST_MEMBERS_AT_ONCE = 100;

@Injectable()
export class Groups {
  private readonly rows: Table<StoredGroup>;
  private readonly pairs: Table<GroupMember>;

  constructor(
    private readonly repository: Repository,
    private readonly memberships: MembershipReader,
    private readonly parents: ParentReader,
    private readonly settings: IdentitySettings,
    private readonly deletions: Deletions,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(groupsView));
    this.pairs = readModels.table(tableOf(groupMembersView));
  }

  @Handles(CreateGroup)
  async create(operation: CreateGroup): Promise<Group> {
    const { context, organization_id } = operation;
    await this.parents.requireOrganization(context, organization_id);
    return this.transact(context, `group_${derivedId(context.commandId, 0)}`, createGroup(operation));
  }

  @Handles(ListGroups)
  async list(query: ListGroups): Promise<Serialised<List<Group>>> {
    const { context, organization_id } = query;
    await this.parents.requireOrganization(context, organization_id);
    const words = searchWords(query.search ?? '');
    if (words.length === 0)
      return pageOf(this.rows, query, { idPrefix: 'group', where: { index: 'organization', values: [organization_id] }, textOf: toPublicGroupText });
    return pageOfNamed(this.rows, query, { idPrefix: 'group', words, keyOf: (word) => groupSearchKey(organization_id, word), textOf: toPublicGroupText });
  }

  @Handles(GetGroup)
  async get(query: GetGroup): Promise<Group> {
    return this.found(query);
  }

  @Handles(UpdateGroup)
  async update(operation: UpdateGroup): Promise<Group> {
    const { id } = await this.found(operation);
    return this.transact(operation.context, id, updateGroup(id, operation));
  }

  @Handles(DeleteGroup)
  async delete(operation: DeleteGroup): Promise<void> {
    const { context, group_id } = operation;
    await this.deletions.once({ context, what: 'Group', id: group_id }, async () => {
      const { id } = await this.found(operation);
      return this.repository.transact(groupDecider, context, id, deleteGroup(id));
    });
  }

  @Handles(AddGroupMember)
  async addMember(operation: AddGroupMember): Promise<Group> {
    const { context, organization_membership_id } = operation;
    const { id } = await this.found(operation);
    await this.requireMembership(operation, organization_membership_id);
    return this.transact(context, id, addMember(id, organization_membership_id, this.settings.MEMBERS_PER_GROUP));
  }

  @Handles(UpdateGroupMembers)
  async updateMembers(operation: UpdateGroupMembers): Promise<Group> {
    const { context, organization_id } = operation;
    const { id } = await this.found(operation);
    const change = membersToChange(operation);
    const ids = [...change.add, ...change.remove];
    const memberships = await this.memberships.withIds(context.environment, ids);
    for (const [index, membership] of memberships.entries())
      if (membership?.organization_id !== organization_id) await this.requireMembership(operation, ids[index]!);
    return this.transact(context, id, changeMembers(id, change, this.settings.MEMBERS_PER_GROUP));
  }

  @Handles(RemoveGroupMember)
  async removeMember(operation: RemoveGroupMember): Promise<void> {
    const { context, organization_membership_id } = operation;
    await this.deletions.once({ context, what: 'Organization membership', id: organization_membership_id }, async () => {
      const { id } = await this.found(operation);
      await this.requireMembership(operation, organization_membership_id);
      return this.repository.transact(groupDecider, context, id, removeMember(id, organization_membership_id));
    });
  }

  @Handles(ListGroupMembers)
  async listMembers(query: ListGroupMembers): Promise<Serialised<List<OrganizationMembershipWithUser>>> {
    const { environment } = query.context;
    const { id } = await this.found(query);
    return filteredPage(this.pairs, query, {
      idPrefix: 'om',
      where: { index: 'group', values: [id] },
      rowIdOf: (organization_membership_id) => pairId({ group_id: id, organization_membership_id }),
      idOf: (row) => contentOf(row).organization_membership_id,
      textsOf: async (rows) => {
        const ids = rows.map((row) => contentOf(row).organization_membership_id);
        return (await this.memberships.withIds(environment, ids)).map((membership) => (membership === null ? null : serialiseMembership(membership)));
      },
    });
  }

  @Handles(FindGroups)
  async find({ context, ids }: FindGroups): Promise<readonly Group[]> {
    const rows = await this.rows.getMany(context.environment, ids);
    return rows.flatMap((row) => (row === null ? [] : [contentOf(row)]));
  }

  @Handles(ListOrganizationMembershipGroups)
  async listOfMembership(query: ListOrganizationMembershipGroups): Promise<Serialised<List<Group>>> {
    const { environment } = query.context;
    const { id } = await this.memberships.require(query.context, query.id);
    return filteredPage(this.pairs, query, {
      idPrefix: 'group',
      where: { index: 'membership', values: [id] },
      rowIdOf: (group_id) => pairId({ group_id, organization_membership_id: id }),
      idOf: (row) => contentOf(row).group_id,
      textsOf: async (rows) => {
        const groups = await this.rows.getMany(
          environment,
          rows.map((row) => contentOf(row).group_id),
        );
        return groups.map((row) => (row === null ? null : toPublicGroupText(row)));
      },
    });
  }

  /** @throws DomainError `entity_not_found`, also where it is a group of another organization */
  private async found({ context, organization_id, group_id }: Pick<GetGroup, 'context' | 'organization_id' | 'group_id'>): Promise<StoredGroup> {
    await this.parents.requireOrganization(context, organization_id);
    const group = contentOf(await this.rows.require(context, group_id));
    if (group.organization_id !== organization_id) throw notFound('Group', group_id);
    return group;
  }

  private async requireMembership({ context, organization_id }: Pick<AddGroupMember, 'context' | 'organization_id'>, id: string): Promise<void> {
    const membership = await this.memberships.require(context, id);
    if (membership.organization_id !== organization_id) throw notFound('Organization membership', id);
  }

  private async transact(context: RequestContext, id: string, decision: Decision<GroupState, GroupEvent>): Promise<Group> {
    const { state } = await this.repository.transact(groupDecider, context, id, decision);
    return requireGroup(state, id);
  }
}

/** Each once. @throws DomainError where one is to be added and removed, or there are too many */
function membersToChange({ add = [], remove = [] }: UpdateGroupMembers): { readonly add: readonly string[]; readonly remove: readonly string[] } {
  const [added, removed] = [new Set(add), new Set(remove)];
  if (added.size + removed.size > MOST_MEMBERS_AT_ONCE)
    throw invalidField('too_many', 'remove', `add and remove must have at most ${MOST_MEMBERS_AT_ONCE} memberships together.`);
  const index = remove.findIndex((id) => added.has(id));
  if (index !== -1) throw invalidField('not_together', `remove.${index}`, 'A membership cannot be added and removed at once.');
  return { add: [...added], remove: [...removed] };
}
