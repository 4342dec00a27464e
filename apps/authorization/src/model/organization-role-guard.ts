import { Injectable } from '@nestjs/common';
import { narrow } from '#libs/event-sourcing/src/deciding/guards/narrowing';
import { mayHang, refuseClosed } from '#libs/event-sourcing/src/deciding/guards/parent-status';
import { factsOf } from '#libs/event-sourcing/src/deciding/records';
import { EventStore, type Position } from '#libs/event-sourcing/src/log/event-store';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { AccessIndex } from '../access/access-index.ts';
import { byId, type TypeReference } from '../domain/authorization-model.decider.ts';
import {
  closeOrganizationRole,
  deleteOrganizationRole,
  organizationRolesDecider,
  roleHasAssignments,
  undoOrganizationRole,
} from '../domain/organization-roles.decider.ts';
import { Reopening } from '../guards/reopening.ts';
import { typeStatus } from '../guards/statuses.ts';
import { OrganizationRoleSets, type RolesDecision, type RolesTransacted } from '../repositories/organization-role-sets.ts';

/** A role of an organization, and the type of resources that it is for. */
interface TypedRole {
  readonly id: string;
  readonly type: TypeReference;
}

/** Sees to it that no role of an organization outlives the type that it is for, and that none is deleted while somebody has it. */
@Injectable()
export class OrganizationRoleGuard {
  constructor(
    private readonly roles: OrganizationRoleSets,
    private readonly access: AccessIndex,
    private readonly reopening: Reopening,
    private readonly events: EventStore,
    private readonly clock: Clock,
  ) {}

  /**
   * Creates a role, unless its type is being taken away. The built-in type, which has no id, stays for ever.
   * @throws DomainError `resource_type_update_in_progress`; `service_unavailable` where it cannot be looked at in time
   */
  async create(context: RequestContext, organizationId: string, role: TypedRole, decision: RolesDecision): Promise<RolesTransacted> {
    const { id, type } = role;
    if (type.id === null) return this.roles.transact(context, organizationId, decision);
    const created = await this.reopening.past(context, async () => {
      const { own } = await this.roles.of(context, organizationId);
      // A repeated command finds its role, whatever became of the type since.
      if (byId(own?.roles ?? [], id) === undefined) await this.refuseClosed(context, organizationId, type);
      return this.roles.transact(context, organizationId, decision);
    });
    await this.settle(context, organizationId, role, created);
    return created;
  }

  /**
   * Deletes a role unless somebody has it. What has it lies in other streams, of another service too: whoever deletes it says so first, looks, and only then does it.
   * @throws DomainError `role_has_assignments`
   */
  async delete(context: RequestContext, organizationId: string, { id, slug }: { readonly id: string; readonly slug: string }): Promise<RolesTransacted> {
    const isUsed = async (): Promise<boolean> => (await this.access.ofOrganization(context, organizationId)).isAssigned(id);
    const refusal = (): DomainError => roleHasAssignments(slug);
    // Nobody is kept waiting for what can be told at once.
    if (await isUsed()) throw refusal();
    return narrow(context, this.clock, {
      isUsed,
      refusal,
      close: async (intent) => {
        const { state, position } = await this.roles.transact(context, organizationId, closeOrganizationRole({ id, intent, now: this.clock.now() }));
        return state?.closings?.[id]?.intent === intent ? position : null;
      },
      reached: (position) => this.access.reached(position, context.deadline),
      change: async (intent) => {
        const removed = await this.roles.transact(context, organizationId, deleteOrganizationRole(id, intent));
        return removed.facts.length > 0 || byId(removed.state?.roles ?? [], id) === undefined ? removed : null;
      },
      reopen: (intent) => this.reopening.ofRole(context.environment, organizationId, id, intent),
    });
  }

  /** A type that somebody is about to narrow takes in nothing. @throws DomainError `resource_type_update_in_progress` */
  private async refuseClosed(context: RequestContext, organizationId: string, type: TypeReference): Promise<void> {
    const index = await this.access.ofOrganization(context, organizationId);
    refuseClosed([typeStatus(index, type.id!, true)], this.clock.now(), () => typeChanged(type));
  }

  /** What was recorded although its type was being taken away is taken back. */
  private async settle(context: RequestContext, organizationId: string, { id, type }: TypedRole, { facts, position }: RolesTransacted): Promise<void> {
    const { environment } = context;
    const added = facts.length > 0 ? position : await this.positionOf(environment, organizationId, id);
    if (added === null) return;
    const index = await this.access.ofOrganization(context, organizationId);
    if (await mayHang(this.events, [typeStatus(index, type.id!, index.model.resourceTypeById(type.id) !== null)], added)) return;
    await this.roles.transact(systemContext(environment, this.clock.now()), organizationId, undoOrganizationRole(id));
    throw typeChanged(type);
  }

  /** Where a role was recorded that was made before: for commands that come again. */
  private async positionOf(environment: string, organizationId: string, roleId: string): Promise<Position | null> {
    const facts = await factsOf(this.events, organizationRolesDecider, environment, organizationId);
    return facts.find(({ type, data }) => type === 'organization_role.created' && data.id === roleId)?.position ?? null;
  }
}

function typeChanged({ slug }: TypeReference): DomainError {
  return new DomainError('conflict', 'resource_type_update_in_progress', `The type '${slug}' is being taken away; nothing happened, try again.`);
}
