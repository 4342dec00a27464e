import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { CreatePermission, DeletePermission, GetPermission, ListPermissions, UpdatePermission } from '#libs/contracts/src/permissions/operations';
import { Permission } from '#libs/contracts/src/permissions/permission';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { derivedId } from '#libs/platform/src/ids';
import { byId, permissionBySlug, toPublicPermission } from '../domain/authorization-model.decider.ts';
import { createPermission, deletePermission, updatePermission } from '../domain/permissions.decider.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import { listedBy, present } from '../views/listed.ts';

@Injectable()
export class Permissions {
  constructor(
    private readonly models: AuthorizationModels,
    private readonly deletions: Deletions,
  ) {}

  @Handles(ListPermissions)
  async list(query: ListPermissions): Promise<Serialised<List<Permission>>> {
    const { permissions, ended_ids } = await this.models.of(query.context.environment);
    return listedBy(query, { idPrefix: 'perm', of: Permission, all: permissions.map(toPublicPermission), endedIds: ended_ids });
  }

  @Handles(CreatePermission)
  async create(operation: CreatePermission): Promise<Permission> {
    const { context } = operation;
    const id = `perm_${derivedId(context.commandId, 0)}`;
    const { permissions } = await this.models.transact(context, createPermission(operation));
    return toPublicPermission(present(byId(permissions, id), 'Permission', id));
  }

  @Handles(GetPermission)
  async get({ context, slug }: GetPermission): Promise<Permission> {
    return this.models.found(context, (model) => toPublicPermission(permissionBySlug(model, slug)));
  }

  @Handles(UpdatePermission)
  async update({ context, slug, name, description }: UpdatePermission): Promise<Permission> {
    return toPublicPermission(permissionBySlug(await this.models.transact(context, updatePermission(slug, { name, description })), slug));
  }

  @Handles(DeletePermission)
  async delete({ context, slug }: DeletePermission): Promise<void> {
    await this.deletions.once({ context, what: 'Permission', id: slug }, async () => {
      const { id } = await this.models.found(context, (model) => permissionBySlug(model, slug));
      return this.models.decide(context, deletePermission(id));
    });
  }
}
