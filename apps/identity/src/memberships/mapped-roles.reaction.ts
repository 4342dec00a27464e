import { Injectable } from '@nestjs/common';
import type { OrganizationRolesEvent } from '#apps/authorization/src/domain/organization-roles.decider';
import type { AuthorizationModelEvent } from '#apps/authorization/src/domain/authorization-model.decider';
import type { DirectoryGroupEvent } from '#apps/directory-sync/src/domain/directory-group.decider';
import type { DirectoryEvent } from '#apps/directory-sync/src/domain/directory.decider';
import { FindMappedRoles } from '#libs/contracts/src/access-checks/operations';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { decidedWhile } from '#libs/event-sourcing/src/deciding/decided-while';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import { leaseOf, type Reaction } from '#libs/event-sourcing/src/following/reaction';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { allDone } from '#libs/platform/src/all-done';
import { Clock } from '#libs/platform/src/clock';
import { isNotFound } from '#libs/platform/src/domain-error';
import { systemContext } from '#libs/platform/src/system-context';
import { Leases } from '#libs/read-models/src/leases';
import { contentOf, ReadModels, type PageRequest, type Table } from '#libs/read-models/src/read-models';
import type { EnvironmentSettingsEvent } from '../domain/environment-settings.decider.ts';
import {
  membershipDecider,
  membershipKey,
  sameRoles,
  setMappedRoles,
  type HeldRole,
  type MembershipEvent,
  type StoredMembership,
} from '../domain/membership.decider.ts';
import { RoleDirectory } from '../readers/role-directory.ts';
import { membershipsView } from '../views/memberships.view.ts';
import { roleMappingsView, type MappedDirectory } from '../views/role-mappings.view.ts';

/** They share the flushes of the log, and leave room for requests. */
const AT_ONCE = 25;

type MayChangeMappedRoles =
  | FactOf<DirectoryGroupEvent, 'directory_group.members_changed'>
  | FactOf<DirectoryEvent, 'directory.updated'>
  | FactOf<OrganizationRolesEvent, 'role_mappings.changed'>
  | FactOf<AuthorizationModelEvent, 'roles.reordered'>
  | EnvironmentSettingsEvent
  | FactOf<MembershipEvent, 'organization_membership.created' | 'organization_membership.updated'>;

/** What is followed under one lease. */
interface Scope {
  readonly environment: string;
  /** @throws where another may follow it since */
  readonly held: () => void;
}

/**
 * Records of each membership what roles groups of its directory give it, as authorization says that they do now: it may be asked again for anything. Whoever recorded something asks once more, so
 * that what is recorded last is what is so, whoever else did the same meanwhile.
 */
@Injectable()
export class FollowMappedRoles implements Reaction<MayChangeMappedRoles> {
  readonly name = 'follow-mapped-roles';
  readonly handles = [
    'directory_group.members_changed',
    'directory.updated',
    'role_mappings.changed',
    'roles.reordered',
    'environment_settings.changed',
    'organization_membership.created',
    'organization_membership.updated',
  ] as const;
  private readonly memberships: Table<StoredMembership>;
  private readonly mapped: Table<MappedDirectory>;

  constructor(
    private readonly repository: Repository,
    private readonly cascade: Cascade,
    private readonly roles: RoleDirectory,
    private readonly transport: OperationTransport,
    private readonly leases: Leases,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.memberships = readModels.table(tableOf(membershipsView));
    this.mapped = readModels.table(tableOf(roleMappingsView));
  }

  async react(event: Recorded<MayChangeMappedRoles>): Promise<void> {
    const { environment } = event.meta;
    const scope: Scope = { environment, held: this.leases.holding(leaseOf(this)) };
    switch (event.type) {
      case 'directory_group.members_changed': {
        const { id, directory_id, added, removed } = event.data;
        await this.cascade.reached(event);
        const directory = await this.mapped.get(environment, directory_id);
        if (directory === null || contentOf(directory).groups[id] === undefined) return;
        const people = [...removed, ...added];
        for (let place = 0; place < people.length; place += AT_ONCE)
          await this.followEach(scope, { index: 'directory_user', values: people.slice(place, place + AT_ONCE) });
        return;
      }
      case 'directory.updated':
        return event.data.policy === undefined ? undefined : this.followDirectory(scope, event);
      case 'role_mappings.changed':
        await this.cascade.reached(event);
        return this.followEach(scope, { index: 'directory', values: [event.data.directory_id] });
      case 'roles.reordered':
        return this.followEnvironment(scope, event);
      case 'environment_settings.changed':
        return event.data.multiple_roles === undefined ? undefined : this.followEnvironment(scope, event);
      case 'organization_membership.created':
      case 'organization_membership.updated': {
        const { id, managed_by } = event.data;
        if (managed_by == null) return;
        await this.cascade.reached(event);
        const [directory, membership] = await Promise.all([this.mapped.get(environment, managed_by.directory_id), this.memberships.get(environment, id)]);
        // What another directory gave may have been recorded of it.
        if (membership !== null && (directory !== null || contentOf(membership).mapped_roles.length > 0)) await this.follow(scope, [contentOf(membership)]);
      }
    }
  }

  private async followDirectory(scope: Scope, event: Recorded<FactOf<DirectoryEvent, 'directory.updated'>>): Promise<void> {
    await this.cascade.reached(event);
    const { id } = event.data;
    if ((await this.mapped.get(scope.environment, id)) !== null) await this.followEach(scope, { index: 'directory', values: [id] });
  }

  private async followEnvironment(scope: Scope, event: Recorded<MayChangeMappedRoles>): Promise<void> {
    await this.cascade.reached(event);
    for (let after: string | undefined, more = true; more;) {
      const page = await this.mapped.page(scope.environment, { order: 'asc', limit: AT_ONCE, after });
      for (const { id } of page.rows) await this.followEach(scope, { index: 'directory', values: [id] });
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }

  /** A page at a time, however many there are. */
  private async followEach(scope: Scope, where: NonNullable<PageRequest['where']>): Promise<void> {
    for (let after: string | undefined, more = true; more;) {
      const page = await this.memberships.page(scope.environment, { where, order: 'asc', limit: AT_ONCE, after });
      await this.follow(scope, page.rows.map(contentOf));
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }

  /** Memberships that one directory manages, so of one organization. */
  private async follow({ environment, held }: Scope, memberships: readonly StoredMembership[]): Promise<void> {
    let left = memberships;
    // What is recorded here is seen to its end, also where another does this since.
    for (let scope: Scope = { environment, held }; left.length > 0; scope = { environment, held: () => {} })
      left = await this.recordedOf(scope, left[0]!.organization_id, left);
  }

  /** Those that something was recorded of. */
  private async recordedOf(
    { environment, held }: Scope,
    organizationId: string,
    memberships: readonly StoredMembership[],
  ): Promise<readonly StoredMembership[]> {
    const given = await this.given(
      environment,
      organizationId,
      memberships.map(({ id }) => id),
    );
    const record = async (membership: StoredMembership): Promise<readonly StoredMembership[]> => {
      const roles = given.get(membership.id);
      if (roles === undefined || sameRoles(roles, membership.mapped_roles)) return [];
      const key = membershipKey(organizationId, membership.user_id);
      const context = systemContext(environment, this.clock.now());
      const { facts } = await this.repository.transact(membershipDecider, context, key, decidedWhile(held, setMappedRoles(membership.id, roles)));
      return facts.length === 0 ? [] : [{ ...membership, mapped_roles: roles }];
    };
    return (await allDone(memberships.map(record))).flat();
  }

  /** By the ids of memberships; nothing of those that are gone. */
  private async given(
    environment: string,
    organization_id: string,
    organization_membership_ids: readonly string[],
  ): Promise<ReadonlyMap<string, readonly HeldRole[]>> {
    const context = systemContext(environment, this.clock.now());
    try {
      const found = await this.transport.call(Object.assign(new FindMappedRoles(), { context, organization_id, organization_membership_ids }));
      const known = await this.roles.inOrganization(environment, organization_id);
      return new Map(
        found.map(({ organization_membership_id, role_ids }) => [organization_membership_id, known.withIds(role_ids).map(({ id, slug }) => ({ id, slug }))]),
      );
    } catch (error) {
      // Of an organization that is gone nothing follows.
      if (isNotFound(error)) return new Map();
      throw error;
    }
  }
}
