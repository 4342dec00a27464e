import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { List } from '#libs/contracts/src/operation';
import {
  AddRolePermission,
  CreateRole,
  DeleteRole,
  GetRole,
  ListRoles,
  SetRolePermissions,
  SetRolePriority,
  UpdateRole,
} from '#libs/contracts/src/roles/operations';
import { CUSTOM_ROLE, type Role } from '#libs/contracts/src/roles/role';
import { DEFAULT_ROLE } from '#libs/contracts/src/roles/seeds';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { byId, roleBySlug, toPublicRole, toPublicRoles, type ModelDecision } from '../domain/authorization-model.decider.ts';
import { addRolePermission, createRole, deleteRole, setRolePermissions, setRolePriority, updateRole } from '../domain/roles.decider.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import { present, whole } from '../views/listed.ts';

/** The roles of an environment, which all of its organizations have. */
@Injectable()
export class Roles {
  constructor(
    private readonly models: AuthorizationModels,
    private readonly deletions: Deletions,
  ) {}

  @Handles(ListRoles)
  async list({ context }: ListRoles): Promise<List<Role>> {
    return whole(toPublicRoles(await this.models.of(context.environment)));
  }

  @Handles(CreateRole)
  async create(operation: CreateRole): Promise<Role> {
    const { context } = operation;
    const id = `role_${derivedId(context.commandId, 0)}`;
    const model = await this.models.transact(context, createRole(operation, CUSTOM_ROLE));
    return toPublicRole(model, present(byId(model.roles, id), 'Role', id));
  }

  @Handles(GetRole)
  async get({ context, slug }: GetRole): Promise<Role> {
    return this.models.found(context, (model) => toPublicRole(model, roleBySlug(model, slug)));
  }

  @Handles(UpdateRole)
  update({ context, slug, name, description }: UpdateRole): Promise<Role> {
    return this.changed(context, slug, updateRole(slug, { name, description }));
  }

  @Handles(SetRolePermissions)
  setPermissions({ context, role_slug, permissions }: SetRolePermissions): Promise<Role> {
    return this.changed(context, role_slug, setRolePermissions(role_slug, permissions));
  }

  @Handles(AddRolePermission)
  addPermission({ context, role_slug, slug }: AddRolePermission): Promise<Role> {
    return this.changed(context, role_slug, addRolePermission(role_slug, slug));
  }

  @Handles(SetRolePriority)
  async setPriority({ context, role_slugs }: SetRolePriority): Promise<List<Role>> {
    return whole(toPublicRoles(await this.models.transact(context, setRolePriority(role_slugs))));
  }

  @Handles(DeleteRole)
  async delete({ context, slug }: DeleteRole): Promise<void> {
    await this.deletions.once({ context, what: 'Role', id: slug }, async () => {
      const { id } = await this.models.found(context, (model) => roleBySlug(model, slug));
      return this.models.decide(context, deleteRole(id, DEFAULT_ROLE));
    });
  }

  private async changed(context: RequestContext, slug: string, decide: ModelDecision): Promise<Role> {
    const model = await this.models.transact(context, decide);
    return toPublicRole(model, roleBySlug(model, slug));
  }
}
