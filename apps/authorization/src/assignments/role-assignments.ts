import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import {
  CreateRoleAssignment,
  DeleteRoleAssignment,
  DeleteRoleAssignmentById,
  ListResourceRoleAssignments,
  ListResourceRoleAssignmentsByExternalId,
  ListRoleAssignments,
} from '#libs/contracts/src/role-assignments/operations';
import type { RoleAssignment } from '#libs/contracts/src/role-assignments/role-assignment';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import { pageOf } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type PageRequest, type Table } from '#libs/read-models/src/read-models';
import { AccessIndex } from '../access/access-index.ts';
import { namedResource, namedRole, roleFor } from '../access/named-resource.ts';
import type { OrganizationIndex } from '../access/organization-index.ts';
import type { Node } from '../domain/resource-tree.ts';
import { roleAssignmentDecider, roleAssignments, type StoredRoleAssignment } from '../domain/role-assignment.decider.ts';
import { both, roleAssignmentsView } from '../views/role-assignments.view.ts';
import { AssignmentGuard } from './assignment-guard.ts';
import { AssignmentLists, directAssignment, isLive } from './assignment-lists.ts';

type Where = NonNullable<PageRequest['where']>;

/** Which role a membership has where. */
@Injectable()
export class RoleAssignments {
  private readonly rows: Table<StoredRoleAssignment>;

  constructor(
    private readonly repository: Repository,
    private readonly access: AccessIndex,
    private readonly lists: AssignmentLists,
    private readonly guard: AssignmentGuard,
    private readonly deletions: Deletions,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(roleAssignmentsView));
  }

  @Handles(CreateRoleAssignment)
  async create(operation: CreateRoleAssignment): Promise<RoleAssignment> {
    const { context, organization_membership_id, role_slug } = operation;
    const { given, key, transacted } = await this.guard.past(context, async () => {
      const index = await this.access.ofMembership(context, organization_membership_id);
      const node = namedResource(index, operation);
      const { id, slug } = roleFor(index, role_slug, node);
      const given = { organization_id: index.id, organization_membership_id, role: { id, slug }, resource: assignedResource(index, node) };
      this.guard.refuseClosed(index, given);
      const key = roleAssignments.keyOf(organization_membership_id, id, given.resource.id);
      return { given, key, transacted: await this.repository.transact(roleAssignmentDecider, context, key, roleAssignments.assign(given)) };
    });
    // Also one that is there already: whoever gave it may not have looked yet.
    const assignment = roleAssignments.live(transacted.state);
    if (assignment === null) throw notFound('Role assignment', key);
    await this.guard.settle(context, given, transacted.position, (own) =>
      this.repository.transact(roleAssignmentDecider, own, key, roleAssignments.remove(assignment.id)),
    );
    return directAssignment(assignment);
  }

  @Handles(DeleteRoleAssignment)
  async delete(operation: DeleteRoleAssignment): Promise<void> {
    const { context, organization_membership_id, role_slug } = operation;
    await this.deletions.once({ context, what: 'Role assignment', id: role_slug }, async () => {
      const index = await this.access.ofMembership(context, organization_membership_id);
      const resourceId = index.tree.idOf(namedResource(index, operation));
      const key = roleAssignments.keyOf(organization_membership_id, namedRole(index, role_slug).id, resourceId);
      return this.repository.transact(roleAssignmentDecider, context, key, roleAssignments.removeAny());
    });
  }

  @Handles(DeleteRoleAssignmentById)
  async deleteById({ context, organization_membership_id, role_assignment_id: id }: DeleteRoleAssignmentById): Promise<void> {
    await this.deletions.once({ context, what: 'Role assignment', id }, async () => {
      const index = await this.access.ofMembership(context, organization_membership_id);
      const row = await this.rows.find(context, id);
      if (row === null && (await this.lists.isGroupEntry(context.environment, index, organization_membership_id, id))) throw fromGroup();
      const assignment = row === null ? null : contentOf(row);
      if (assignment?.organization_membership_id !== organization_membership_id || !isLive(index, assignment)) throw notFound('Role assignment', id);
      const key = roleAssignments.keyOf(organization_membership_id, assignment.role.id, assignment.resource.id);
      return this.repository.transact(roleAssignmentDecider, context, key, roleAssignments.remove(id));
    });
  }

  @Handles(ListRoleAssignments)
  async list(query: ListRoleAssignments): Promise<Serialised<List<RoleAssignment>>> {
    const { context, organization_membership_id: membershipId } = query;
    const index = await this.access.ofMembership(context, membershipId);
    const resources = filteredResources(index, query);
    const pages = this.lists.pages(context, {
      index,
      direct: filterOf('membership', [membershipId], resources, query.resource_type_slug),
      ofGroups: filterOf('group', index.membership(membershipId)?.groups ?? [], resources, query.resource_type_slug),
      membersOf: () => [membershipId],
    });
    return pageOf(pages, query, { idPrefix: 'role_assignment' });
  }

  @Handles(ListResourceRoleAssignments)
  async listOfResource(query: ListResourceRoleAssignments): Promise<Serialised<List<RoleAssignment>>> {
    const index = await this.access.ofResource(query.context, query.resource_id);
    return this.listOf(query, index, query.resource_id);
  }

  @Handles(ListResourceRoleAssignmentsByExternalId)
  async listOfResourceByExternalId(query: ListResourceRoleAssignmentsByExternalId): Promise<Serialised<List<RoleAssignment>>> {
    const { context, organization_id, resource_type_slug, external_id } = query;
    const index = await this.access.ofOrganization(context, organization_id);
    const node = namedResource(index, { resource_external_id: external_id, resource_type_slug });
    return this.listOf(query, index, index.tree.idOf(node));
  }

  private listOf(
    query: ListResourceRoleAssignments | ListResourceRoleAssignmentsByExternalId,
    index: OrganizationIndex,
    resourceId: string,
  ): Promise<Serialised<List<RoleAssignment>>> {
    const { context, role_slug } = query;
    // A role that is not there was assigned to nobody.
    const role = role_slug === undefined ? null : (index.roleBySlug(role_slug)?.id ?? '');
    const where = role === null ? { index: 'resource', values: [resourceId] } : { index: 'resource_role', values: [both(resourceId, role)] };
    const pages = this.lists.pages(context, {
      index,
      direct: where,
      ofGroups: where,
      membersOf: ({ group_id }) => index.group(group_id)?.members.filter((member) => index.membership(member) !== null) ?? [],
    });
    return pageOf(pages, query, { idPrefix: 'role_assignment' });
  }
}

export function assignedResource({ tree }: OrganizationIndex, node: Node): StoredRoleAssignment['resource'] {
  return { id: tree.idOf(node), external_id: tree.externalIdOf(node), resource_type_slug: tree.typeSlugOf(node) };
}

/** Ids of the resources that a list of assignments is limited to; null: to none in particular. A type has too many to be named one by one. */
function filteredResources({ tree, model }: OrganizationIndex, query: ListRoleAssignments): readonly string[] | null {
  const { resource_id, resource_external_id, resource_type_slug } = query;
  if (resource_id === undefined && resource_external_id === undefined) return null;
  const types = resource_type_slug === undefined ? [...model.resourceTypes()] : [model.resourceTypeBySlug(resource_type_slug)];
  const nodes = resource_id !== undefined ? [tree.nodeById(resource_id)] : types.map((type) => type && tree.nodeByExternalId(type.id, resource_external_id!));
  return nodes
    .filter((node) => node != null)
    .filter((node) => resource_external_id === undefined || tree.externalIdOf(node) === resource_external_id)
    .filter((node) => resource_type_slug === undefined || tree.typeSlugOf(node) === resource_type_slug)
    .map((node) => tree.idOf(node));
}

function filterOf(name: 'membership' | 'group', ids: readonly string[], resources: readonly string[] | null, typeSlug: string | undefined): Where {
  if (resources !== null) return { index: `${name}_resource`, values: ids.flatMap((id) => resources.map((resource) => both(id, resource))) };
  if (typeSlug !== undefined) return { index: `${name}_type`, values: ids.map((id) => both(id, typeSlug)) };
  return { index: name, values: ids };
}

function fromGroup(): DomainError {
  const message = 'The membership has this role through a group: remove the role assignment of the group, or the membership from the group.';
  return new DomainError('conflict', 'role_assignment_from_group', message);
}
