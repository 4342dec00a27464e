import { Injectable } from '@nestjs/common';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import type { DirectoryGroupEvent } from '#apps/directory-sync/src/domain/directory-group.decider';
import type { DirectoryEvent } from '#apps/directory-sync/src/domain/directory.decider';
import type { EnvironmentEvent } from '#apps/identity/src/domain/environment.decider';
import type { AuthorizationModelEvent } from '../domain/authorization-model.decider.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import {
  dropPermission,
  dropRoleMappings,
  organizationRolesDecider,
  type GoneOfMapping,
  type MappingsChanged,
  type OrganizationRolesEvent,
} from '../domain/organization-roles.decider.ts';
import { DirectoryRows } from '../repositories/directory-rows.ts';
import { ParentRows } from '../repositories/parent-rows.ts';
import { organizationRolesView } from '../views/organization-roles.view.ts';

type EnvironmentCreated = FactOf<EnvironmentEvent, 'environment.created'>;
type PermissionDeleted = FactOf<AuthorizationModelEvent, 'permission.deleted'>;
type RolesChanged = PermissionDeleted | FactOf<AuthorizationModelEvent, 'roles.reordered'>;

/** A request that comes first finds the seeds anyway and seldom waits because of this. Follows the whole log, so that environments older than the seeds get theirs. */
@Injectable()
export class SeedModelOfEnvironment implements Reaction<EnvironmentCreated> {
  readonly name = 'seed-authorization-model-when-environment-created';
  readonly handles = ['environment.created'] as const;

  constructor(private readonly models: AuthorizationModels) {}

  async react({ data }: Recorded<EnvironmentCreated>): Promise<void> {
    await this.models.seeded(data.id);
  }
}

/** A permission is dead in every role with its own event; this records so of each role that an organization made. */
@Injectable()
export class DropDeletedPermission implements Reaction<PermissionDeleted> {
  readonly name = 'drop-permission-when-permission-deleted';
  readonly handles = ['permission.deleted'] as const;

  constructor(private readonly cascade: Cascade) {}

  async react(event: Recorded<PermissionDeleted>): Promise<void> {
    const { id } = event.data;
    await this.cascade.each(event, organizationRolesView, { index: 'permission', values: [id] }, (row) =>
      this.cascade.decide(event, organizationRolesDecider, row.id, dropPermission(id)),
    );
  }
}

/** Records the roles of the environment that changed with a permission or with the order, where they were too many to be recorded with it. */
@Injectable()
export class TellOfChangedRoles implements Reaction<RolesChanged> {
  readonly name = 'tell-of-changed-roles';
  readonly handles = ['permission.deleted', 'roles.reordered'] as const;

  constructor(private readonly models: AuthorizationModels) {}

  async react({ meta: { environment } }: Recorded<RolesChanged>): Promise<void> {
    while (await this.models.tellOfRoles(environment));
  }
}

type MayEndMappings =
  | FactOf<AuthorizationModelEvent, 'role.deleted'>
  | FactOf<DirectoryEvent, 'dsync.deleted'>
  | FactOf<DirectoryGroupEvent, 'dsync.group.deleted'>
  | FactOf<OrganizationRolesEvent, 'role_mappings.changed'>;

/**
 * A mapping is dead once its directory, its group or its role is: this records so, also of what was mapped while it was deleted. An organization's own roles are not
 * deleted while a group gives them.
 */
@Injectable()
export class DropMappingsOfWhatIsGone implements Reaction<MayEndMappings> {
  readonly name = 'drop-role-mappings-of-what-is-gone';
  readonly handles = ['role.deleted', 'dsync.deleted', 'dsync.group.deleted', 'role_mappings.changed'] as const;

  constructor(
    private readonly cascade: Cascade,
    private readonly directories: DirectoryRows,
    private readonly parents: ParentRows,
  ) {}

  async react(event: Recorded<MayEndMappings>): Promise<void> {
    const { environment, organization } = event.meta;
    switch (event.type) {
      case 'role.deleted': {
        const { id } = event.data;
        return this.cascade.each(event, organizationRolesView, { index: 'mapped_role', values: [id] }, (row) => this.drop(event, row.id, { role_id: id }));
      }
      case 'dsync.deleted':
        return this.drop(event, organization!, { directory_id: event.data.id });
      case 'dsync.group.deleted':
        return this.drop(event, organization!, { group_id: event.data.id });
      case 'role_mappings.changed': {
        await this.cascade.reached(event);
        for (const gone of await this.goneOf(environment, event.data)) await this.drop(event, organization!, gone);
      }
    }
  }

  private async goneOf(environment: string, { organization_id, directory_id, added }: MappingsChanged): Promise<readonly GoneOfMapping[]> {
    if (added.length === 0) return [];
    if (!(await this.directories.isKnown(environment, directory_id))) return [{ directory_id }];
    const groups = new Set(added.map(({ group_id }) => group_id));
    const known = await this.directories.knownGroupsIn(environment, directory_id, [...groups]);
    const roles = await Promise.all([...new Set(added.map(({ role_id }) => role_id))].map((id) => this.parents.role(environment, organization_id, id)));
    return [
      ...[...groups].filter((id) => !known.has(id)).map((group_id) => ({ group_id })),
      ...roles.filter(({ allows }) => !allows).map(({ id }) => ({ role_id: id })),
    ];
  }

  private drop({ meta }: Recorded<MayEndMappings>, organizationId: string, gone: GoneOfMapping): Promise<void> {
    return this.cascade.decide({ meta }, organizationRolesDecider, organizationId, dropRoleMappings(gone));
  }
}
