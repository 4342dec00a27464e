import { Injectable } from '@nestjs/common';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import type { EnvironmentEvent } from '#apps/identity/src/domain/environment.decider';
import type { AuthorizationModelEvent } from '../domain/authorization-model.decider.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import { dropPermission, organizationRolesDecider } from '../domain/organization-roles.decider.ts';
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
