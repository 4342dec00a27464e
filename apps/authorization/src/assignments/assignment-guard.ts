import { Injectable } from '@nestjs/common';
import { mayHang, refuseClosed, type ParentStatus } from '#libs/event-sourcing/src/deciding/guards/parent-status';
import { EventStore, type Position } from '#libs/event-sourcing/src/log/event-store';
import { Clock } from '#libs/platform/src/clock';
import { notFound, type DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { AccessIndex } from '../access/access-index.ts';
import type { OrganizationIndex } from '../access/organization-index.ts';
import type { AssignedResource, AssignedRole } from '../domain/assignments.decider.ts';
import { Reopening } from '../guards/reopening.ts';
import { unclosableStatus, resourceStatus, roleStatus } from '../guards/statuses.ts';

/** A role on a resource, and who is given it. */
interface Given {
  readonly organization_id: string;
  readonly role: AssignedRole;
  readonly resource: AssignedResource;
  readonly organization_membership_id?: string;
  readonly group_id?: string;
}

/** Sees to it that nobody is given what is being deleted: the role, or the resource. */
@Injectable()
export class AssignmentGuard {
  constructor(
    private readonly events: EventStore,
    private readonly access: AccessIndex,
    private readonly reopening: Reopening,
    private readonly clock: Clock,
  ) {}

  /** Carries out what `refuseClosed` refuses; what was left closed is reopened first. */
  past<Done>(context: RequestContext, work: () => Promise<Done>): Promise<Done> {
    return this.reopening.past(context, work);
  }

  /** @throws DomainError `entity_not_found` for what somebody is about to delete */
  refuseClosed(index: OrganizationIndex, given: Given): void {
    const statuses = statusesOf(index, given);
    refuseClosed(statuses, this.clock.now(), () => refusal(statuses, given));
  }

  /** What a command that comes again gave at its first time, or null. */
  async givenBy({ commandId }: RequestContext, stream: string): Promise<{ readonly id: string; readonly position: Position } | null> {
    const own = (await this.events.read(stream)).find(({ type, meta }) => type.endsWith('.created') && meta.commandId === commandId);
    return own === undefined ? null : { id: (own.data as { readonly id: string }).id, position: own.position };
  }

  /**
   * What was recorded at a position although something that it hangs on was gone, or being deleted, is taken back.
   * @throws DomainError `entity_not_found`; `service_unavailable` where it cannot be looked at in time
   */
  async settle(context: RequestContext, given: Given, position: Position, undo: (own: RequestContext) => Promise<unknown>): Promise<void> {
    const statuses = statusesOf(await this.access.ofOrganization(context, given.organization_id), given);
    if (await mayHang(this.events, statuses, position)) return;
    await undo(systemContext(context.environment, this.clock.now()));
    throw refusal(statuses, given);
  }
}

function statusesOf(index: OrganizationIndex, given: Given): readonly ParentStatus[] {
  const { role, resource, organization_membership_id, group_id } = given;
  return [
    roleStatus(index, role.id),
    resourceStatus(index, resource.id),
    ...(organization_membership_id === undefined
      ? []
      : [unclosableStatus(organization_membership_id, index.membershipNumber(organization_membership_id) !== -1)]),
    ...(group_id === undefined ? [] : [unclosableStatus(group_id, index.group(group_id) !== null)]),
  ];
}

/** As if it were gone already. */
function refusal(statuses: readonly ParentStatus[], { role, resource, organization_membership_id, group_id }: Given): DomainError {
  const { id } = statuses.find(({ allows, closing }) => !allows || closing !== null) ?? { id: role.id };
  switch (id) {
    case resource.id:
      return notFound('Resource', id);
    case organization_membership_id:
      return notFound('Organization membership', id);
    case group_id:
      return notFound('Group', id);
    default:
      return notFound('Role', role.slug);
  }
}
