import { Injectable } from '@nestjs/common';
import type {
  AccessChain,
  AccessCheck,
  AccessCheckBatch,
  AccessExplanation,
  AccessNearMiss,
  MappedRoles,
  NearMissReason,
  OrganizationAccess,
} from '#libs/contracts/src/access-checks/access-check';
import {
  CheckAccess,
  CheckAccessBatch,
  ExplainAccess,
  FindMappedRoles,
  GetOrganizationAccess,
  ListAccessibleResources,
  ListEffectivePermissions,
  ListEffectivePermissionsByExternalId,
  ListMembershipsWithAccess,
  ListMembershipsWithAccessByExternalId,
} from '#libs/contracts/src/access-checks/operations';
import type { AuthorizationResource } from '#libs/contracts/src/authorization-resources/authorization-resource';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import { FindOrganizationMemberships } from '#libs/contracts/src/organization-memberships/operations';
import { OrganizationMembershipWithUser } from '#libs/contracts/src/organization-memberships/organization-membership';
import type { PageQuery } from '#libs/contracts/src/pages';
import { Permission as PermissionAnswer } from '#libs/contracts/src/permissions/permission';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { notFound } from '#libs/platform/src/domain-error';
import { pageOfIds } from '#libs/read-models/src/pages';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { AccessIndex } from '../access/access-index.ts';
import type { EnvironmentModel, Permission } from '../access/environment-model.ts';
import { namedResource } from '../access/named-resource.ts';
import type { Chain, OrganizationIndex, Way } from '../access/organization-index.ts';
import { toPublicPermission } from '../domain/authorization-model.decider.ts';
import type { Node } from '../domain/resource-tree.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import { membershipsView, type StoredMembership } from '../views/access.views.ts';
import { listedBy } from '../views/listed.ts';
import { answerIn, resourcesView, type ResourceRow } from '../views/resources.view.ts';
import { accessibleChildren, holders } from './discovery.ts';

/** Chains, or near misses, of one explanation. */
const MOST = 100;

const YES = '{"authorized":true}';
const NO = '{"authorized":false}';
const AUTHORIZED = new Serialised<AccessCheck>(YES);
const NOT_AUTHORIZED = new Serialised<AccessCheck>(NO);

const membershipText = serialiserOf(OrganizationMembershipWithUser);

/** Whether somebody may do something, who may, and what. Asks the index; rows and other services only say how things are shown. */
@Injectable()
export class AccessChecks {
  private readonly resources: Table<ResourceRow>;
  private readonly memberships: Table<StoredMembership>;

  constructor(
    private readonly access: AccessIndex,
    private readonly models: AuthorizationModels,
    private readonly transport: OperationTransport,
    readModels: ReadModels,
  ) {
    this.resources = readModels.table(tableOf(resourcesView));
    this.memberships = readModels.table(tableOf(membershipsView));
  }

  @Handles(CheckAccess)
  async check(query: CheckAccess): Promise<Serialised<AccessCheck>> {
    const index = await this.access.ofMembership(query.context, query.organization_membership_id);
    const permission = permissionNamed(index.model, query.permission_slug);
    const node = namedResource(index, query);
    return index.allows(index.membershipNumber(query.organization_membership_id), permission, node) ? AUTHORIZED : NOT_AUTHORIZED;
  }

  @Handles(CheckAccessBatch)
  async checkBatch({ context, organization_membership_id, checks }: CheckAccessBatch): Promise<Serialised<AccessCheckBatch>> {
    const index = await this.access.ofMembership(context, organization_membership_id);
    const membership = index.membershipNumber(organization_membership_id);
    let text = '{"results":[';
    for (const [place, asked] of checks.entries()) {
      const permission = permissionNamed(index.model, asked.permission_slug);
      const node = namedResource(index, asked, { within: `checks.${place}.` });
      text += (place === 0 ? '' : ',') + (index.allows(membership, permission, node) ? YES : NO);
    }
    return new Serialised(`${text}]}`);
  }

  @Handles(ExplainAccess)
  async explain(query: ExplainAccess): Promise<AccessExplanation> {
    const index = await this.access.ofMembership(query.context, query.organization_membership_id);
    const permission = permissionNamed(index.model, query.permission_slug);
    const node = namedResource(index, query);
    const membership = index.membershipNumber(query.organization_membership_id);
    const authorized = index.allows(membership, permission, node);
    const chains = some(index.chains(membership, permission, node), (chain) => toPublicChain(index, chain, node));
    const misses = authorized ? { found: [], hasMore: false } : some(nearMisses(index, membership, permission, node), (miss) => toPublicNearMiss(index, miss));
    return {
      authorized,
      permission_slug: permission.slug,
      resource_id: index.tree.idOf(node),
      chains: chains.found,
      near_misses: misses.found,
      has_more: chains.hasMore || misses.hasMore,
    };
  }

  @Handles(ListAccessibleResources)
  async listResources(query: ListAccessibleResources): Promise<Serialised<List<AuthorizationResource>>> {
    const { context, organization_membership_id, permission_slug } = query;
    const index = await this.access.ofMembership(context, organization_membership_id);
    const permission = permissionNamed(index.model, permission_slug);
    const { parent_resource_id: resource_id, parent_resource_external_id: resource_external_id, parent_resource_type_slug: resource_type_slug } = query;
    const parent = namedResource(index, { resource_id, resource_external_id, resource_type_slug }, { within: 'parent_' });
    return pageOfIds(query, {
      idPrefix: 'authz_resource',
      ids: accessibleChildren(index, index.membershipNumber(organization_membership_id), permission, parent),
      isKnown: (id) => this.resources.hasHeld(context.environment, id),
      textsOf: async (ids) => (await this.resources.getMany(context.environment, ids)).map((row) => (row === null ? null : answerIn(row.text))),
    });
  }

  @Handles(ListMembershipsWithAccess)
  async listMemberships(query: ListMembershipsWithAccess): Promise<Serialised<List<OrganizationMembershipWithUser>>> {
    const index = await this.access.ofResource(query.context, query.resource_id);
    return this.holdersOn(query, index, namedResource(index, { resource_id: query.resource_id }));
  }

  @Handles(ListMembershipsWithAccessByExternalId)
  async listMembershipsByExternalId(query: ListMembershipsWithAccessByExternalId): Promise<Serialised<List<OrganizationMembershipWithUser>>> {
    const { context, organization_id, resource_type_slug, external_id } = query;
    const index = await this.access.ofOrganization(context, organization_id);
    return this.holdersOn(query, index, namedResource(index, { resource_external_id: external_id, resource_type_slug }));
  }

  @Handles(ListEffectivePermissions)
  async listPermissions(query: ListEffectivePermissions): Promise<Serialised<List<PermissionAnswer>>> {
    const index = await this.access.ofMembership(query.context, query.organization_membership_id);
    return this.permissionsOn(query, index, namedResource(index, { resource_id: query.resource_id }));
  }

  @Handles(ListEffectivePermissionsByExternalId)
  async listPermissionsByExternalId(query: ListEffectivePermissionsByExternalId): Promise<Serialised<List<PermissionAnswer>>> {
    const { context, organization_membership_id, resource_type_slug, external_id } = query;
    const index = await this.access.ofMembership(context, organization_membership_id);
    return this.permissionsOn(query, index, namedResource(index, { resource_external_id: external_id, resource_type_slug }));
  }

  @Handles(FindMappedRoles)
  async mappedRoles({ context, organization_id, organization_membership_ids }: FindMappedRoles): Promise<readonly MappedRoles[]> {
    const index = await this.access.ofOrganization(context, organization_id);
    return organization_membership_ids.flatMap((id) => {
      const membership = index.membershipNumber(id);
      return membership === -1 ? [] : [{ organization_membership_id: id, role_ids: index.mapped.of(membership).map((role) => role.id) }];
    });
  }

  @Handles(GetOrganizationAccess)
  async organizationAccess({ context, organization_membership_id }: GetOrganizationAccess): Promise<OrganizationAccess> {
    const index = await this.access.ofMembership(context, organization_membership_id);
    const { roles, permissions } = index.organizationAccess(index.membershipNumber(organization_membership_id));
    return { role_ids: roles.map(({ id }) => id), permissions: permissions.map(({ slug }) => slug).sort() };
  }

  private holdersOn(
    query: PageQuery<OrganizationMembershipWithUser> & { readonly permission_slug: string; readonly assignment?: Way },
    index: OrganizationIndex,
    node: Node,
  ): Promise<Serialised<List<OrganizationMembershipWithUser>>> {
    const { context, permission_slug, assignment = null } = query;
    const permission = permissionNamed(index.model, permission_slug);
    return pageOfIds(query, {
      idPrefix: 'om',
      ids: holders(index, permission, node, assignment),
      isKnown: (id) => this.memberships.hasHeld(context.environment, id),
      textsOf: async (ids) => {
        const found = await this.transport.call(Object.assign(new FindOrganizationMemberships(), { context, ids }));
        const texts = new Map(found.map((membership) => [membership.id, membershipText(membership)]));
        return ids.map((id) => texts.get(id) ?? null);
      },
    });
  }

  private async permissionsOn(
    query: PageQuery<PermissionAnswer> & { readonly organization_membership_id: string },
    index: OrganizationIndex,
    node: Node,
  ): Promise<Serialised<List<PermissionAnswer>>> {
    const held = new Set(index.permissionsOn(index.membershipNumber(query.organization_membership_id), node).map(({ id }) => id));
    const { permissions, ended_ids } = await this.models.of(query.context.environment);
    const all = permissions.filter(({ id }) => held.has(id)).map(toPublicPermission);
    // A permission that is not held is a cursor as good as one that was deleted.
    const endedIds = [...ended_ids, ...permissions.map(({ id }) => id).filter((id) => !held.has(id))];
    return listedBy(query, { idPrefix: 'perm', of: PermissionAnswer, all, endedIds });
  }
}

/** @throws DomainError `entity_not_found` */
function permissionNamed(model: EnvironmentModel, slug: string): Permission {
  const permission = model.permissionBySlug(slug);
  if (permission === null) throw notFound('Permission', slug);
  return permission;
}

interface NearMiss {
  readonly reason: NearMissReason;
  readonly chain: Chain;
}

function* nearMisses(index: OrganizationIndex, membership: number, permission: Permission, node: Node): Generator<NearMiss> {
  const isActive = index.isActive(membership);
  const onTheWay = new Set<Node>();
  for (let at = node; at >= 0; at = index.tree.parentOf(at)) onTheWay.add(at);
  for (const chain of index.rolesOnTheWay(membership, node)) {
    if (!chain.role.grants(permission.number)) yield { reason: 'role_without_permission', chain };
    else if (!isActive) yield { reason: 'membership_not_active', chain };
  }
  for (const chain of index.rolesAnywhere(membership))
    if (!onTheWay.has(chain.node) && chain.role.grants(permission.number)) yield { reason: 'role_elsewhere', chain };
}

function some<Found, Shown>(all: Iterable<Found>, show: (found: Found) => Shown): { readonly found: readonly Shown[]; readonly hasMore: boolean } {
  const found: Shown[] = [];
  for (const each of all) {
    if (found.length === MOST) return { found, hasMore: true };
    found.push(show(each));
  }
  return { found, hasMore: false };
}

function toPublicChain(index: OrganizationIndex, chain: Chain, asked: Node): AccessChain {
  return { ...toPublicGrant(index, chain), inherited: chain.node !== asked };
}

function toPublicNearMiss(index: OrganizationIndex, { reason, chain }: NearMiss): AccessNearMiss {
  return { reason, ...toPublicGrant(index, chain) };
}

function toPublicGrant({ tree }: OrganizationIndex, { role, source, group, node }: Chain): Omit<AccessNearMiss, 'reason'> {
  return {
    role: { slug: role.slug },
    source,
    group_id: group,
    resource: { id: tree.idOf(node), external_id: tree.externalIdOf(node), resource_type_slug: tree.typeSlugOf(node) },
  };
}
