import { badRequest } from '#libs/platform/src/domain-error';
import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { List } from '#libs/contracts/src/operation';
import {
  AddOrganizationRolePermission,
  CreateOrganizationRole,
  DeleteOrganizationRole,
  GetOrganizationRole,
  ListOrganizationRoles,
  RemoveOrganizationRolePermission,
  SetOrganizationRolePermissions,
  UpdateOrganizationRole,
} from '#libs/contracts/src/roles/operations';
import { CUSTOM_ROLE, type Role } from '#libs/contracts/src/roles/role';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import {
  BUILT_IN_TYPE,
  byId,
  bySlug,
  permissionBySlug,
  permissionSlugs,
  permissionsNamed,
  toPublicRole,
  toPublicRoles,
  typeNamed,
  type AuthorizationModel,
} from '../domain/authorization-model.decider.ts';
import {
  addOrganizationRolePermission,
  createOrganizationRole,
  organizationRoleBySlug,
  removeOrganizationRolePermission,
  setOrganizationRolePermissions,
  toPublicOrganizationRole,
  updateOrganizationRole,
} from '../domain/organization-roles.decider.ts';
import { OrganizationRoleSets, type RoleSet, type RolesDecision, type RolesTransacted } from '../repositories/organization-role-sets.ts';
import { present, whole } from '../views/listed.ts';
import { customRoleSlug } from './custom-role-slug.ts';
import { OrganizationRoleGuard } from './organization-role-guard.ts';

/** One of an organization's own roles. */
interface NamedRole {
  readonly organization_id: string;
  readonly slug: string;
}

/** What came of a command on one of them, and the model that it was decided by. */
interface Changed extends RolesTransacted {
  readonly model: AuthorizationModel;
}

/** The roles that an organization has: those of its environment, which are only read here, and its own. */
@Injectable()
export class OrganizationRoles {
  constructor(
    private readonly roles: OrganizationRoleSets,
    private readonly guard: OrganizationRoleGuard,
    private readonly deletions: Deletions,
  ) {}

  @Handles(ListOrganizationRoles)
  async list({ context, organization_id }: ListOrganizationRoles): Promise<List<Role>> {
    const { model, own } = await this.roles.of(context, organization_id);
    const slugs = permissionSlugs(model);
    return whole([...toPublicRoles(model), ...(own?.roles ?? []).map((role) => toPublicOrganizationRole(role, slugs))]);
  }

  @Handles(CreateOrganizationRole)
  async create(operation: CreateOrganizationRole): Promise<Role> {
    const { context, organization_id, name, slug = customRoleSlug(name, context.commandId), description } = operation;
    const { resource_type_slug = BUILT_IN_TYPE.slug } = operation;
    const id = `role_${derivedId(context.commandId, 0)}`;
    const { model, type } = await this.roles.found(context, organization_id, ({ model }) => ({ model, type: typeNamed(model, resource_type_slug) }));
    const decision = createOrganizationRole(organization_id, { slug, name, description, type });
    const { state } = await this.guard.create(context, organization_id, { id, type }, decision);
    return toPublicOrganizationRole(present(byId(state?.roles ?? [], id), 'Role', id), permissionSlugs(model));
  }

  @Handles(GetOrganizationRole)
  get({ context, organization_id, slug }: GetOrganizationRole): Promise<Role> {
    return this.roles.found(context, organization_id, (roles) => publicRoleIn(roles, slug));
  }

  @Handles(UpdateOrganizationRole)
  async update({ context, organization_id, slug, name, description }: UpdateOrganizationRole): Promise<Role> {
    const role = { organization_id, slug };
    return publicRoleAfter(await this.change(context, role, (model) => updateOrganizationRole(slug, { name, description }, permissionExists(model))), slug);
  }

  @Handles(SetOrganizationRolePermissions)
  async setPermissions({ context, organization_id, role_slug: slug, permissions }: SetOrganizationRolePermissions): Promise<Role> {
    const role = { organization_id, slug };
    return publicRoleAfter(await this.change(context, role, (model) => setOrganizationRolePermissions(slug, permissionsNamed(model, permissions))), slug);
  }

  @Handles(AddOrganizationRolePermission)
  async addPermission({ context, organization_id, role_slug: slug, slug: permission }: AddOrganizationRolePermission): Promise<Role> {
    const role = { organization_id, slug };
    const add = (model: AuthorizationModel) => addOrganizationRolePermission(slug, permissionsNamed(model, [permission])[0]!, permissionExists(model));
    return publicRoleAfter(await this.change(context, role, add), slug);
  }

  @Handles(RemoveOrganizationRolePermission)
  async removePermission({ context, organization_id, role_slug: slug, permission_slug }: RemoveOrganizationRolePermission): Promise<Role> {
    const role = { organization_id, slug };
    const remove = (model: AuthorizationModel) => removeOrganizationRolePermission(slug, permissionBySlug(model, permission_slug).id, permissionExists(model));
    const removed = await this.deletions.once({ context, what: 'Permission', id: permission_slug }, () => this.change(context, role, remove));
    return removed === null ? this.roles.found(context, organization_id, (roles) => publicRoleIn(roles, slug)) : publicRoleAfter(removed, slug);
  }

  @Handles(DeleteOrganizationRole)
  async delete({ context, organization_id, slug }: DeleteOrganizationRole): Promise<void> {
    await this.deletions.once({ context, what: 'Role', id: slug }, async () => {
      const { id } = await this.roles.found(context, organization_id, ({ model, own }) => {
        refuseShared(model, slug);
        return organizationRoleBySlug(own, slug);
      });
      return this.guard.delete(context, organization_id, { id, slug });
    });
  }

  /** @throws DomainError `bad_request` for a role of the environment */
  private async change(
    context: RequestContext,
    { organization_id, slug }: NamedRole,
    decisionOf: (model: AuthorizationModel) => RolesDecision,
  ): Promise<Changed> {
    const { model, decision } = await this.roles.found(context, organization_id, ({ model }) => {
      refuseShared(model, slug);
      return { model, decision: decisionOf(model) };
    });
    return { ...(await this.roles.transact(context, organization_id, decision)), model };
  }
}

/** @throws DomainError `entity_not_found` */
function publicRoleAfter({ state, model }: Changed, slug: string): Role {
  return toPublicOrganizationRole(organizationRoleBySlug(state, slug), permissionSlugs(model));
}

/** @throws DomainError `entity_not_found` */
function publicRoleIn({ model, own }: RoleSet, slug: string): Role {
  const shared = bySlug(model.roles, slug);
  return shared === undefined ? toPublicOrganizationRole(organizationRoleBySlug(own, slug), permissionSlugs(model)) : toPublicRole(model, shared);
}

function permissionExists(model: AuthorizationModel): (permissionId: string) => boolean {
  const slugs = permissionSlugs(model);
  return (id) => slugs.has(id);
}

/** @throws DomainError `bad_request` */
function refuseShared({ roles }: AuthorizationModel, slug: string): void {
  if (bySlug(roles, slug) !== undefined)
    throw badRequest(`'${slug}' is a role of the environment: only roles that begin with '${CUSTOM_ROLE}' can be changed here.`);
}
