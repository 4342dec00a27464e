import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { CreatePermission, DeletePermission, GetPermission, ListPermissions, UpdatePermission } from '#libs/contracts/src/permissions/operations';
import { Permission } from '#libs/contracts/src/permissions/permission';
import { derivedId } from '#libs/platform/src/ids';
import { AuthorizationModels } from './authorization-models.ts';
import { byId, permissionBySlug, shownPermission } from './authorization-model.decider.ts';
import { listedBy, present } from './listed.ts';
import { createPermission, deletePermission, updatePermission } from './permissions.decider.ts';

@Injectable()
export class Permissions {
  constructor(private readonly models: AuthorizationModels) {}

  @Handles(ListPermissions)
  async list(query: ListPermissions): Promise<Serialised<List<Permission>>> {
    const { permissions, ended_ids } = await this.models.of(query.context.environment);
    return listedBy(query, { idPrefix: 'perm', of: Permission, all: permissions.map(shownPermission), endedIds: ended_ids });
  }

  @Handles(CreatePermission)
  async create(operation: CreatePermission): Promise<Permission> {
    const { context } = operation;
    const id = `perm_${derivedId(context.commandId, 0)}`;
    const { permissions } = await this.models.transact(context, createPermission(operation));
    return shownPermission(present(byId(permissions, id), 'Permission', id));
  }

  @Handles(GetPermission)
  async get({ context, slug }: GetPermission): Promise<Permission> {
    return shownPermission(permissionBySlug(await this.models.of(context.environment), slug));
  }

  @Handles(UpdatePermission)
  async update({ context, slug, name, description }: UpdatePermission): Promise<Permission> {
    return shownPermission(permissionBySlug(await this.models.transact(context, updatePermission(slug, { name, description })), slug));
  }

  @Handles(DeletePermission)
  async delete({ context, slug }: DeletePermission): Promise<void> {
    // The decision takes a repeated command for done; another one is told that there is nothing to delete.
    const { id } = permissionBySlug(await this.models.of(context.environment), slug);
    await this.models.transact(context, deletePermission(id));
  }
}
