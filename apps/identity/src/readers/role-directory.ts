import { Injectable } from '@nestjs/common';
import { ORGANIZATION_TYPE } from '#libs/contracts/src/resource-types/resource-type';
import { effectiveRoles, type GivenRoles } from '#libs/contracts/src/roles/effective-roles.decider';
import { DEFAULT_ROLE } from '#libs/contracts/src/roles/seeds';
import type { ParentStatus } from '#libs/event-sourcing/src/deciding/guards/parent-status';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { DomainError, invalidField, refusedField } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { HeldRole } from '../domain/membership.decider.ts';
import { roleDirectoryView, seededRoles, type KnownRole, type RoleScope } from '../views/role-directory.view.ts';
import { EnvironmentSettingsReader } from './environment-settings-reader.ts';

/** Environments whose first roles are kept in memory. */
const MAX_DERIVED = 1_000;
const derived = new Map<string, RoleScope>();

/** Roles as a caller gives them: one of the two, or none. */
interface RequestedRoles {
  readonly role_slug?: string;
  readonly role_slugs?: readonly string[];
}

/** Which roles memberships may have and have: as identity itself knows them, since nothing of its own may fail with another service. */
@Injectable()
export class RoleDirectory {
  private readonly rows: Table<RoleScope>;

  constructor(
    private readonly settings: IdentitySettings,
    private readonly environments: EnvironmentSettingsReader,
    private readonly views: ReadYourWrites,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(roleDirectoryView));
  }

  /**
   * The roles that a request names, the one with the highest priority first; null where it names none.
   * @throws DomainError `invalid_role`, `multiple_roles_not_enabled`, `sub_resource_scoped_role_not_allowed`
   */
  async resolveRequestedRoles(context: RequestContext, organizationId: string, { role_slug, role_slugs }: RequestedRoles): Promise<readonly HeldRole[] | null> {
    if (role_slug !== undefined && role_slugs !== undefined) throw notTogether();
    const field = role_slug === undefined ? 'role_slugs' : 'role_slug';
    const slugs = new Set(role_slugs ?? (role_slug === undefined ? [] : [role_slug]));
    if (slugs.size === 0) return null;
    if (slugs.size > 1 && !(await this.mayBeSeveral(context))) throw refused('multiple_roles_not_enabled', field, 'Memberships have one role only.');
    const fallback = defaultRole(context.environment);
    if (slugs.size === 1 && slugs.has(DEFAULT_ROLE)) return [fallback];
    // A role of this slug may have been deleted and created again a moment ago: only the end of the log tells which one is meant.
    await this.views.waitForHead(context.deadline);
    const roles = await this.inOrganization(context.environment, organizationId);
    for (const slug of slugs) {
      const role = roles.named(slug);
      // One that somebody is about to delete is as good as gone: nobody would have it.
      if (role === undefined || roles.isClosed(role)) throw refused('invalid_role', field, `The organization has no role '${slug}'.`, slug);
      if (role.resource_type_slug !== ORGANIZATION_TYPE)
        throw refused('sub_resource_scoped_role_not_allowed', field, `The role '${slug}' is scoped to the resource type '${role.resource_type_slug}'.`, slug);
    }
    return roles.effectiveRoles({ manual: [...slugs].map((slug) => roles.named(slug)!), mapped: [] });
  }

  /** Of a membership that is created without any: what the settings say, while the environment has that role. */
  async ofNewcomer(context: RequestContext, organizationId: string): Promise<readonly HeldRole[]> {
    const { default_role } = await this.environments.settings(context);
    if (default_role !== DEFAULT_ROLE) {
      await this.views.waitForHead(context.deadline);
      const roles = await this.inOrganization(context.environment, organizationId);
      const role = roles.named(default_role);
      if (role !== undefined && !roles.isClosed(role)) return [{ id: role.id, slug: role.slug }];
    }
    return [defaultRole(context.environment)];
  }

  /** Of somebody who joins by an invitation: the role that it names, while that is left. */
  async ofInvited(context: RequestContext, organizationId: string, role: HeldRole | null): Promise<readonly HeldRole[]> {
    if (role === null) return this.ofNewcomer(context, organizationId);
    if (role.id === defaultRole(context.environment).id) return [role];
    await this.views.waitForHead(context.deadline);
    const roles = await this.inOrganization(context.environment, organizationId);
    return roles.isDeleted(role) || roles.isClosed(role) ? this.ofNewcomer(context, organizationId) : [role];
  }

  /** @throws DomainError `invalid_role` where the environment itself has no such role for organizations */
  async requireOfEnvironment({ environment, deadline }: RequestContext, slug: string, field: string): Promise<void> {
    if (slug === DEFAULT_ROLE) return;
    await this.views.waitForHead(deadline);
    const row = await this.rows.get(environment, environment);
    const { roles } = row === null ? firstRoles(environment) : contentOf(row);
    const role = roles.find((candidate) => candidate.slug === slug);
    if (role?.resource_type_slug !== ORGANIZATION_TYPE) throw refused('invalid_role', field, `The environment has no role '${slug}' for organizations.`, slug);
  }

  private async mayBeSeveral(context: RequestContext): Promise<boolean> {
    return (await this.environments.settings(context)).multiple_roles ?? this.settings.MULTIPLE_ROLES;
  }

  /**
   * How the organization's own roles among these stand, by everything that was recorded before the call: those of the environment are deleted with what they give.
   * @throws DomainError `service_unavailable`
   */
  async statuses({ environment, deadline }: RequestContext, organizationId: string, roles: readonly HeldRole[]): Promise<readonly ParentStatus[]> {
    await this.views.waitForHead(deadline, this.rows.definition.name);
    return this.knownStatuses(environment, organizationId, roles);
  }

  /** As `statuses`, as the rows are: for reactions, which have waited for them. */
  async knownStatuses(environment: string, organizationId: string, roles: readonly HeldRole[]): Promise<readonly ParentStatus[]> {
    const row = await this.rows.get(environment, organizationId);
    if (row === null) return [];
    const scope = contentOf(row);
    const stream = streamName('organization_roles', environment, organizationId);
    return roles
      .map(({ id }) => ({ id, isDeleted: scope.deleted.includes(id) }))
      .filter(({ id, isDeleted }) => isDeleted || scope.roles.some((role) => role.id === id))
      .map(({ id, isDeleted }) => ({ stream, id, allows: !isDeleted, closing: scope.closings?.[id] ?? null, since: row.position }));
  }

  async inOrganization(environment: string, organizationId: string): Promise<RolesOfOrganization> {
    return (await this.inOrganizations(environment, [organizationId])).get(organizationId)!;
  }

  /** For each of several organizations, which roles it has. */
  async inOrganizations(environment: string, organizationIds: readonly string[]): Promise<ReadonlyMap<string, RolesOfOrganization>> {
    const [shared, ...own] = await this.rows.getMany(environment, [environment, ...organizationIds]);
    const scope = shared == null ? firstRoles(environment) : contentOf(shared);
    const fallback = defaultRole(environment);
    return new Map(
      organizationIds.map((id, index) => {
        const row = own[index];
        return [id, new RolesOfOrganization([scope, ...(row == null ? [] : [contentOf(row)])], fallback)];
      }),
    );
  }
}

/** The role of whoever has no other: never deleted, and in every environment from the beginning. */
export function defaultRole(environment: string): HeldRole {
  const { id, slug } = firstRoles(environment).roles.find((role) => role.slug === DEFAULT_ROLE)!;
  return { id, slug };
}

/** Derived once for each environment: every token that is issued asks for them. */
function firstRoles(environment: string): RoleScope {
  let scope = derived.get(environment);
  if (scope !== undefined) return scope;
  if (derived.size >= MAX_DERIVED) derived.clear();
  derived.set(environment, (scope = seededRoles(environment)));
  return scope;
}

/** The environment's roles come before custom ones. */
class RolesOfOrganization {
  constructor(
    private readonly scopes: readonly RoleScope[],
    private readonly fallback: HeldRole,
  ) {}

  named(slug: string): KnownRole | undefined {
    return this.all().find((role) => role.slug === slug);
  }

  /** What is left of a membership's roles today, the one with the highest priority first. One that is not known here yet counts as living. */
  effectiveRoles(given: GivenRoles<HeldRole>): readonly HeldRole[] {
    const roles = effectiveRoles(given, (role) => this.isDeleted(role), this.fallback);
    const places = this.all().map(({ id }) => id);
    const placeOf = ({ id }: HeldRole): number => (places.includes(id) ? places.indexOf(id) : places.length);
    return roles.map(({ id, slug }) => ({ id, slug })).sort((one, other) => placeOf(one) - placeOf(other));
  }

  /** Those of these ids that are known here, the one with the highest priority first. */
  withIds(ids: readonly string[]): readonly HeldRole[] {
    return this.all().filter(({ id }) => ids.includes(id));
  }

  isClosed({ id }: HeldRole): boolean {
    return this.scopes.some(({ closings }) => closings?.[id] !== undefined);
  }

  isDeleted({ id }: HeldRole): boolean {
    return this.scopes.some(({ deleted }) => deleted.includes(id));
  }

  private all(): readonly KnownRole[] {
    return this.scopes.flatMap(({ roles }) => roles);
  }
}

type RoleRefusal = 'invalid_role' | 'multiple_roles_not_enabled' | 'sub_resource_scoped_role_not_allowed';

export function refused(code: RoleRefusal, field: string, message: string, role_slug?: string): DomainError {
  return refusedField('invalid', code, { field, message, ...(role_slug !== undefined && { role_slug }) });
}

function notTogether(): DomainError {
  return invalidField('not_together', 'role_slugs', 'Give `role_slug` or `role_slugs`, not both.');
}
