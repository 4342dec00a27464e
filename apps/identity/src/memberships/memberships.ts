import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import { FullOrganizationMembership, type OrganizationMembershipWithUser } from '#libs/contracts/src/organization-memberships/organization-membership';
import {
  CreateOrganizationMembership,
  DeactivateOrganizationMembership,
  DeleteOrganizationMembership,
  FindOrganizationMemberships,
  GetOrganizationMembership,
  ListOrganizationMemberships,
  ReactivateOrganizationMembership,
  UpdateOrganizationMembership,
} from '#libs/contracts/src/organization-memberships/operations';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { notFound, refusedField, type DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { filteredPage } from '#libs/read-models/src/pages';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import {
  createMembership,
  deactivate,
  deleteMembership,
  membershipDecider,
  membershipKey,
  reactivate,
  setRoles,
  type MembershipEvent,
  type MembershipState,
  type StoredMembership,
} from '../domain/membership.decider.ts';
import { MembershipReader } from '../readers/membership-reader.ts';
import { ParentReader } from '../readers/parent-reader.ts';
import { RoleDirectory } from '../readers/role-directory.ts';
import { membershipsOf, membershipsView } from '../views/memberships.view.ts';
import { GrantedRoles } from './granted-roles.ts';

const serialise = serialiserOf(FullOrganizationMembership);

@Injectable()
export class Memberships {
  private readonly rows: Table<StoredMembership>;

  constructor(
    private readonly repository: Repository,
    private readonly roles: RoleDirectory,
    private readonly reader: MembershipReader,
    private readonly parents: ParentReader,
    private readonly given: GrantedRoles,
    private readonly deletions: Deletions,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(membershipsView));
  }

  @Handles(CreateOrganizationMembership)
  async create(operation: CreateOrganizationMembership): Promise<FullOrganizationMembership> {
    const { context, user_id, organization_id } = operation;
    await this.parents.requireUser(context, user_id);
    await this.parents.requireOrganization(context, organization_id);
    const roles = (await this.roles.resolveRequestedRoles(context, organization_id, operation)) ?? (await this.roles.ofNewcomer(context, organization_id));
    const key = membershipKey(organization_id, user_id);
    const membership = await this.transact(context, key, createMembership({ user_id, organization_id, roles }));
    await this.given.settle(context, { organizationId: organization_id, key, roles });
    return membership;
  }

  @Handles(GetOrganizationMembership)
  async get({ context, id }: GetOrganizationMembership): Promise<FullOrganizationMembership> {
    return this.reader.withId(context, id);
  }

  @Handles(ListOrganizationMemberships)
  async list(query: ListOrganizationMemberships): Promise<Serialised<List<FullOrganizationMembership>>> {
    const { context, user_id, organization_id, statuses = ['active'] } = query;
    if (user_id === undefined && organization_id === undefined) throw missing();
    if (user_id !== undefined) await this.parents.requireUser(context, user_id);
    if (organization_id !== undefined) await this.parents.requireOrganization(context, organization_id);
    return filteredPage(this.rows, query, {
      idPrefix: 'om',
      where: membershipsOf({ user_id, organization_id }, statuses),
      textsOf: async (rows) => (await this.reader.ofRows(context.environment, rows)).map((membership) => (membership === null ? null : serialise(membership))),
    });
  }

  @Handles(UpdateOrganizationMembership)
  async update(operation: UpdateOrganizationMembership): Promise<FullOrganizationMembership> {
    const { context, id } = operation;
    const { organization_id, user_id } = await this.reader.require(context, id);
    const roles = await this.roles.resolveRequestedRoles(context, organization_id, operation);
    if (roles === null) return this.reader.withId(context, id);
    const key = membershipKey(organization_id, user_id);
    const membership = await this.transact(context, key, setRoles(id, roles));
    await this.given.settle(context, { organizationId: organization_id, key, roles });
    return membership;
  }

  @Handles(DeactivateOrganizationMembership)
  deactivate({ context, id }: DeactivateOrganizationMembership): Promise<FullOrganizationMembership> {
    return this.decide(context, id, deactivate(id));
  }

  @Handles(ReactivateOrganizationMembership)
  reactivate({ context, id }: ReactivateOrganizationMembership): Promise<FullOrganizationMembership> {
    return this.decide(context, id, reactivate(id));
  }

  @Handles(DeleteOrganizationMembership)
  async delete({ context, id }: DeleteOrganizationMembership): Promise<void> {
    await this.deletions.once({ context, what: 'Organization membership', id }, async () => {
      const { organization_id, user_id } = await this.reader.require(context, id);
      return this.repository.transact(membershipDecider, context, membershipKey(organization_id, user_id), deleteMembership(id));
    });
  }

  @Handles(FindOrganizationMemberships)
  async find({ context, ids }: FindOrganizationMemberships): Promise<readonly OrganizationMembershipWithUser[]> {
    return (await this.reader.withIds(context.environment, ids)).filter((membership) => membership !== null);
  }

  private async decide(context: RequestContext, id: string, decision: Decision<MembershipState, MembershipEvent>): Promise<FullOrganizationMembership> {
    const { organization_id, user_id } = await this.reader.require(context, id);
    return this.transact(context, membershipKey(organization_id, user_id), decision);
  }

  private async transact(context: RequestContext, key: string, decision: Decision<MembershipState, MembershipEvent>): Promise<FullOrganizationMembership> {
    const { state } = await this.repository.transact(membershipDecider, context, key, decision);
    if (state?.object !== 'organization_membership') throw notFound('Organization membership', state?.id ?? '');
    return this.reader.full(context, state);
  }
}

function missing(): DomainError {
  const message = 'Give `user_id`, `organization_id`, or both.';
  return refusedField('invalid', 'missing_user_id_or_organization_id', { field: 'organization_id', message });
}
