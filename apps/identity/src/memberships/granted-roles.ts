import { Injectable } from '@nestjs/common';
import type { Hanging } from '#libs/event-sourcing/src/deciding/guards/hanging';
import { mayHang } from '#libs/event-sourcing/src/deciding/guards/parent-status';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { factsOf, stateAfter } from '#libs/event-sourcing/src/deciding/records';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { membershipDecider, recordDeletion, takeRolesBack, type HeldRole, type MembershipEvent, type StoredMembership } from '../domain/membership.decider.ts';
import { defaultRole, refused, RoleDirectory } from '../readers/role-directory.ts';
import { membershipsView } from '../views/memberships.view.ts';

interface Given {
  readonly organizationId: string;
  /** Of the membership's stream. */
  readonly key: string;
  readonly roles: readonly HeldRole[];
}

type RolesGiven = FactOf<MembershipEvent, 'organization_membership.created' | 'organization_membership.updated'>;

/** Sees to it that nobody has a custom role that is deleted because nobody has it: authorization, which does that, says so before it looks. */
@Injectable()
export class GrantedRoles {
  private readonly rows: Table<StoredMembership>;

  constructor(
    private readonly repository: Repository,
    private readonly roles: RoleDirectory,
    private readonly events: EventStore,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(membershipsView));
  }

  /**
   * Takes back what was recorded of a membership where one of its roles was gone by then, or being deleted; also what was recorded before, by somebody who may not
   * have looked yet.
   * @throws DomainError `invalid_role`; `service_unavailable` where it cannot be looked at in time
   */
  async settle(context: RequestContext, { organizationId, key, roles }: Given): Promise<void> {
    const fallback = defaultRole(context.environment);
    if (roles.every(({ id }) => id === fallback.id)) return;
    const statuses = await this.roles.statuses(context, organizationId, roles);
    if (statuses.length === 0) return;
    const giving = (await factsOf(this.events, membershipDecider, context.environment, key)).filter(givesRoles);
    // Of a command that comes again, what it recorded itself, which may have been taken back since.
    const given = giving.find(({ meta }) => meta.commandId === context.commandId) ?? giving.at(-1);
    if (given === undefined || (await mayHang(this.events, statuses, given.position))) return;
    await this.undo(given);
    const { id } = statuses.find(({ allows, closing }) => !allows || closing !== null) ?? statuses[0]!;
    const { slug } = roles.find((role) => role.id === id)!;
    throw refused('invalid_role', 'role_slug', `The organization has no role '${slug}'.`, slug);
  }

  /** Memberships hang on the custom roles that they still have. */
  hanging(): Hanging<RolesGiven> {
    return {
      begins: ['organization_membership.created', 'organization_membership.updated'],
      hangsOn: async ({ data, meta: { environment, organization } }) => {
        const { id, roles = [] } = data;
        const fallback = defaultRole(environment);
        if (roles.every((role) => role.id === fallback.id)) return [];
        const row = await this.rows.get(environment, id);
        const held = row === null ? [] : contentOf(row).roles;
        const kept = roles.filter((role) => held.some((other) => other.id === role.id));
        return this.roles.knownStatuses(environment, organization!, kept);
      },
      undo: (event) => this.undo(event),
    };
  }

  private async undo({ stream, type, version, data, meta }: Recorded<RolesGiven>): Promise<void> {
    const { environment, actor } = meta;
    const { id, roles: given = [] } = data;
    const own = systemContext(environment, this.clock.now());
    const key = streamKeyOf(stream);
    if (type === 'organization_membership.created') {
      await this.repository.transact(membershipDecider, own, key, recordDeletion(id));
      return;
    }
    const facts = await factsOf(this.events, membershipDecider, environment, key);
    if (facts.some((fact) => fact.version > version && givesRoles(fact))) return;
    const before = stateAfter(
      membershipDecider,
      facts.filter((fact) => fact.version < version),
    );
    if (before?.object !== 'organization_membership') return;
    // What was taken back, and cannot stay either, ends with the role that everybody has.
    const { roles, status } = actor.source === 'system' ? { ...before, roles: [defaultRole(environment)] } : before;
    await this.repository.transact(membershipDecider, own, key, takeRolesBack(id, given, { roles, status }));
  }
}

function givesRoles(fact: Recorded<MembershipEvent>): fact is Recorded<RolesGiven> {
  return fact.type !== 'organization_membership.deleted' && fact.data.roles !== undefined;
}
