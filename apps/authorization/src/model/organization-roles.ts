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
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { narrow } from '#libs/event-sourcing/src/deciding/guards/narrowing';
import { mayHang, refuseClosed } from '#libs/event-sourcing/src/deciding/guards/parent-status';
import { Repository, type Transacted } from '#libs/event-sourcing/src/deciding/repository';
import { EventStore, type Position } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, isNotFound } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { AccessIndex } from '../access/access-index.ts';
import {
  badRequest,
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
  type PermissionReference,
  type TypeReference,
} from '../domain/authorization-model.decider.ts';
import {
  addOrganizationRolePermission,
  closeOrganizationRole,
  createOrganizationRole,
  deleteOrganizationRole,
  organizationRoleBySlug,
  organizationRolesDecider,
  removeOrganizationRolePermission,
  roleHasAssignments,
  setOrganizationRolePermissions,
  toPublicOrganizationRole,
  undoOrganizationRole,
  updateOrganizationRole,
  type OrganizationRolesEvent,
  type OrganizationRolesState,
} from '../domain/organization-roles.decider.ts';
import { Reopening } from '../guards/reopening.ts';
import { typeStatus } from '../guards/statuses.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import { present, whole } from '../views/listed.ts';
import { organizationRolesView } from '../views/organization-roles.view.ts';
import { customRoleSlug } from './custom-role-slug.ts';

type Decide = Decision<OrganizationRolesState | null, OrganizationRolesEvent>;

/** What came of a command on the organization's own roles, and the model that it was decided by. */
interface CarriedOut extends Transacted<OrganizationRolesState | null, OrganizationRolesEvent> {
  readonly model: AuthorizationModel;
}

interface KnownRoles {
  readonly model: AuthorizationModel;
  /** Null where the organization never had any. */
  readonly own: OrganizationRolesState | null;
}

/** The roles that an organization has: those of its environment, which are only read here, and its own. */
@Injectable()
export class OrganizationRoles {
  private readonly rows: Table<OrganizationRolesState>;

  constructor(
    private readonly repository: Repository,
    private readonly models: AuthorizationModels,
    private readonly access: AccessIndex,
    private readonly reopening: Reopening,
    private readonly events: EventStore,
    private readonly clock: Clock,
    private readonly deletions: Deletions,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(organizationRolesView));
  }

  @Handles(ListOrganizationRoles)
  async list({ context, organization_id }: ListOrganizationRoles): Promise<List<Role>> {
    const { model, own } = await this.of(context, organization_id);
    const slugs = permissionSlugs(model);
    return whole([...toPublicRoles(model), ...(own?.roles ?? []).map((role) => toPublicOrganizationRole(role, slugs))]);
  }

  @Handles(CreateOrganizationRole)
  async create(operation: CreateOrganizationRole): Promise<Role> {
    const { context, organization_id, name, slug = customRoleSlug(name, context.commandId), description } = operation;
    const id = `role_${derivedId(context.commandId, 0)}`;
    const { model, type, own } = await this.found(context, organization_id, ({ model, own }) => ({
      model,
      type: typeNamed(model, operation.resource_type_slug ?? BUILT_IN_TYPE.slug),
      own,
    }));
    const created = await this.reopening.past(context, async () => {
      if (type.id !== null && byId(own?.roles ?? [], id) === undefined) await this.refuseClosed(context, organization_id, type);
      return this.repository.transact(
        organizationRolesDecider,
        context,
        organization_id,
        createOrganizationRole(organization_id, { slug, name, description, type }),
      );
    });
    if (type.id !== null) await this.settle(context, organization_id, { id, type }, created);
    const { state } = created;
    return toPublicOrganizationRole(present(byId(state?.roles ?? [], id), 'Role', id), permissionSlugs(model));
  }

  @Handles(GetOrganizationRole)
  async get({ context, organization_id, slug }: GetOrganizationRole): Promise<Role> {
    return this.found(context, organization_id, (known) => publicRoleIn(known, slug));
  }

  @Handles(UpdateOrganizationRole)
  update({ context, organization_id, slug, name, description }: UpdateOrganizationRole): Promise<Role> {
    return this.changed(context, { organization_id, slug }, (model) => updateOrganizationRole(slug, { name, description }, permissionExists(model)));
  }

  @Handles(SetOrganizationRolePermissions)
  setPermissions({ context, organization_id, role_slug, permissions }: SetOrganizationRolePermissions): Promise<Role> {
    return this.changed(context, { organization_id, slug: role_slug }, (model) =>
      setOrganizationRolePermissions(role_slug, permissionsNamed(model, permissions)),
    );
  }

  @Handles(AddOrganizationRolePermission)
  addPermission({ context, organization_id, role_slug, slug }: AddOrganizationRolePermission): Promise<Role> {
    return this.changed(context, { organization_id, slug: role_slug }, (model) =>
      addOrganizationRolePermission(role_slug, permissionsNamed(model, [slug])[0]!, permissionExists(model)),
    );
  }

  @Handles(RemoveOrganizationRolePermission)
  async removePermission({ context, organization_id, role_slug: slug, permission_slug }: RemoveOrganizationRolePermission): Promise<Role> {
    const removed = await this.deletions.once({ context, what: 'Permission', id: permission_slug }, () =>
      this.carriedOut(context, { organization_id, slug }, (model) =>
        removeOrganizationRolePermission(slug, permissionBySlug(model, permission_slug).id, permissionExists(model)),
      ),
    );
    return removed === null ? this.found(context, organization_id, (known) => publicRoleIn(known, slug)) : publicRoleAfter(removed, slug);
  }

  @Handles(DeleteOrganizationRole)
  async delete({ context, organization_id, slug }: DeleteOrganizationRole): Promise<void> {
    await this.deletions.once({ context, what: 'Role', id: slug }, async () => {
      const { id } = await this.found(context, organization_id, ({ model, own }) => {
        refuseShared(model, slug);
        return organizationRoleBySlug(own, slug);
      });
      return this.remove(context, organization_id, { id, slug });
    });
  }

  /** What has the role lies in other streams, of another service too: whoever deletes it says so first, looks, and only then does it. */
  private async remove(
    context: RequestContext,
    organizationId: string,
    { id, slug }: PermissionReference,
  ): Promise<Transacted<OrganizationRolesState | null, OrganizationRolesEvent>> {
    const isUsed = async (): Promise<boolean> => (await this.access.ofOrganization(context, organizationId)).isAssigned(id);
    const refusal = (): DomainError => roleHasAssignments(slug);
    // Nobody is kept waiting for what can be told at once.
    if (await isUsed()) throw refusal();
    const decide = (decision: Decide) => this.repository.transact(organizationRolesDecider, context, organizationId, decision);
    return narrow(context, this.clock, {
      isUsed,
      refusal,
      close: async (intent) => {
        const { state, position } = await decide(closeOrganizationRole({ id, intent, now: this.clock.now() }));
        return state?.closings?.[id]?.intent === intent ? position : null;
      },
      reached: (position) => this.access.reached(position, context.deadline),
      change: async (intent) => {
        const removed = await decide(deleteOrganizationRole(id, intent));
        return removed.facts.length > 0 || byId(removed.state?.roles ?? [], id) === undefined ? removed : null;
      },
      reopen: (intent) => this.reopening.ofRole(context.environment, organizationId, id, intent),
    });
  }

  /** A type that somebody is about to narrow takes in nothing. @throws DomainError `resource_type_update_in_progress` */
  private async refuseClosed(context: RequestContext, organizationId: string, type: TypeReference): Promise<void> {
    const index = await this.access.ofOrganization(context, organizationId);
    refuseClosed([typeStatus(index, type.id!, true)], this.clock.now(), () => typeChanged(type));
  }

  /**
   * What was recorded although its type was being taken away is taken back.
   * @throws DomainError `resource_type_update_in_progress`; `service_unavailable` where it cannot be looked at in time
   */
  private async settle(
    context: RequestContext,
    organizationId: string,
    { id, type }: { readonly id: string; readonly type: TypeReference },
    { facts, position }: Transacted<OrganizationRolesState | null, OrganizationRolesEvent>,
  ): Promise<void> {
    const { environment } = context;
    const added = facts.length > 0 ? position : await this.positionOf(environment, organizationId, id);
    if (added === null) return;
    const index = await this.access.ofOrganization(context, organizationId);
    if (await mayHang(this.events, [typeStatus(index, type.id!, index.model.resourceTypeById(type.id) !== null)], added)) return;
    await this.repository.transact(organizationRolesDecider, systemContext(environment, this.clock.now()), organizationId, undoOrganizationRole(id));
    throw typeChanged(type);
  }

  /** Where a role was recorded that was made before: for commands that come again. */
  private async positionOf(environment: string, organizationId: string, roleId: string): Promise<Position | null> {
    const records = await this.events.read(streamName(organizationRolesDecider.category, environment, organizationId));
    return records.find(({ type, data }) => type === 'organization_role.created' && (data as { readonly id: string }).id === roleId)?.position ?? null;
  }

  private async changed(
    context: RequestContext,
    { organization_id, slug }: { readonly organization_id: string; readonly slug: string },
    decisionOf: (model: AuthorizationModel) => Decide,
  ): Promise<Role> {
    return publicRoleAfter(await this.carriedOut(context, { organization_id, slug }, decisionOf), slug);
  }

  private async carriedOut(
    context: RequestContext,
    { organization_id, slug }: { readonly organization_id: string; readonly slug: string },
    decisionOf: (model: AuthorizationModel) => Decide,
  ): Promise<CarriedOut> {
    const { model, decision } = await this.found(context, organization_id, ({ model }) => {
      refuseShared(model, slug);
      return { model, decision: decisionOf(model) };
    });
    return { ...(await this.transact(context, organization_id, decision)), model };
  }

  private transact(
    context: RequestContext,
    organizationId: string,
    decide: Decide,
  ): Promise<Transacted<OrganizationRolesState | null, OrganizationRolesEvent>> {
    return this.repository.transact(organizationRolesDecider, context, organizationId, decide);
  }

  /** What is looked for in the roles; once more in what the log has, as in `AuthorizationModels`. @throws DomainError as `of`, and as `look` */
  private async found<Found>(context: RequestContext, organizationId: string, look: (known: KnownRoles) => Found): Promise<Found> {
    const known = await this.of(context, organizationId);
    try {
      return look(known);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const { environment } = context;
      return look({
        model: await this.models.seeded(environment),
        own: await this.repository.load(organizationRolesDecider, environment, organizationId),
      });
    }
  }

  /** Read anew for every request: what lives is what the model says now. @throws DomainError `entity_not_found` where there is no such organization */
  private async of(context: RequestContext, organizationId: string): Promise<KnownRoles> {
    const [row, model] = await Promise.all([
      this.rows.get(context.environment, organizationId),
      this.models.of(context.environment),
      this.access.requireOrganization(context, organizationId),
    ]);
    return { model, own: row === null ? null : contentOf(row) };
  }
}

/** @throws DomainError `entity_not_found` */
function publicRoleAfter({ state, model }: CarriedOut, slug: string): Role {
  return toPublicOrganizationRole(organizationRoleBySlug(state, slug), permissionSlugs(model));
}

/** @throws DomainError `entity_not_found` */
function publicRoleIn({ model, own }: KnownRoles, slug: string): Role {
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

function typeChanged({ slug }: TypeReference): DomainError {
  return new DomainError('conflict', 'resource_type_update_in_progress', `The type '${slug}' is being taken away; nothing happened, try again.`);
}
