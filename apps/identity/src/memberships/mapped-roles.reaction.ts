import { Injectable } from '@nestjs/common';
import type { OrganizationRolesEvent } from '#apps/authorization/src/domain/organization-roles.decider';
import type { AuthorizationModelEvent } from '#apps/authorization/src/domain/authorization-model.decider';
import type { DirectoryGroupEvent } from '#apps/directory-sync/src/domain/directory-group.decider';
import type { DirectoryEvent } from '#apps/directory-sync/src/domain/directory.decider';
import { FindMappedRoles } from '#libs/contracts/src/access-checks/operations';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { isNotFound } from '#libs/platform/src/domain-error';
import { systemContext } from '#libs/platform/src/system-context';
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
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.memberships = readModels.table(tableOf(membershipsView));
    this.mapped = readModels.table(tableOf(roleMappingsView));
  }

  async react(event: Recorded<MayChangeMappedRoles>): Promise<void> {
    const { environment } = event.meta;
    switch (event.type) {
      case 'directory_group.members_changed': {
        const { id, directory_id, added, removed } = event.data;
        await this.cascade.reached(event);
        const directory = await this.mapped.get(environment, directory_id);
        if (directory === null || contentOf(directory).groups[id] === undefined) return;
        const people = [...removed, ...added];
        for (let place = 0; place < people.length; place += AT_ONCE)
          await this.followEach(environment, { index: 'directory_user', values: people.slice(place, place + AT_ONCE) });
        return;
      }
      case 'directory.updated':
        return event.data.policy === undefined ? undefined : this.followDirectory(event, event.data.id);
      case 'role_mappings.changed':
        await this.cascade.reached(event);
        return this.followEach(environment, { index: 'directory', values: [event.data.directory_id] });
      case 'roles.reordered':
        return this.followEnvironment(event);
      case 'environment_settings.changed':
        return event.data.multiple_roles === undefined ? undefined : this.followEnvironment(event);
      case 'organization_membership.created':
      case 'organization_membership.updated': {
        const { id, managed_by } = event.data;
        if (managed_by == null) return;
        await this.cascade.reached(event);
        const [directory, membership] = await Promise.all([this.mapped.get(environment, managed_by.directory_id), this.memberships.get(environment, id)]);
        // What another directory gave may have been recorded of it.
        if (membership !== null && (directory !== null || contentOf(membership).mapped_roles.length > 0))
          await this.follow(environment, [contentOf(membership)]);
      }
    }
  }

  private async followDirectory(event: Recorded<MayChangeMappedRoles>, directoryId: string): Promise<void> {
    await this.cascade.reached(event);
    const { environment } = event.meta;
    if ((await this.mapped.get(environment, directoryId)) !== null) await this.followEach(environment, { index: 'directory', values: [directoryId] });
  }

  private async followEnvironment(event: Recorded<MayChangeMappedRoles>): Promise<void> {
    await this.cascade.reached(event);
    const { environment } = event.meta;
    for (let after: string | undefined, more = true; more;) {
      const page = await this.mapped.page(environment, { order: 'asc', limit: AT_ONCE, after });
      for (const { id } of page.rows) await this.followEach(environment, { index: 'directory', values: [id] });
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }

  /** A page at a time, however many there are. */
  private async followEach(environment: string, where: NonNullable<PageRequest['where']>): Promise<void> {
    for (let after: string | undefined, more = true; more;) {
      const page = await this.memberships.page(environment, { where, order: 'asc', limit: AT_ONCE, after });
      await this.follow(environment, page.rows.map(contentOf));
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }

  /** Memberships that one directory manages, so of one organization. */
  private async follow(environment: string, memberships: readonly StoredMembership[]): Promise<void> {
    for (let left = memberships; left.length > 0;) left = await this.recordedOf(environment, left[0]!.organization_id, left);
  }

  /** Those that something was recorded of. */
  private async recordedOf(environment: string, organizationId: string, memberships: readonly StoredMembership[]): Promise<readonly StoredMembership[]> {
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
      const { facts } = await this.repository.transact(membershipDecider, context, key, setMappedRoles(membership.id, roles));
      return facts.length === 0 ? [] : [{ ...membership, mapped_roles: roles }];
    };
    return (await Promise.all(memberships.map(record))).flat();
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
