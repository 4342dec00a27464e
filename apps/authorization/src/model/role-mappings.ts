import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { List } from '#libs/contracts/src/operation';
import { ListRoleMappings, SetRoleMappings } from '#libs/contracts/src/role-mappings/operations';
import type { RoleMapping } from '#libs/contracts/src/role-mappings/role-mapping';
import { isNotFound, notFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { mappingsOf, setRoleMappings, type OrganizationRolesState, type StoredRoleMapping } from '../domain/organization-roles.decider.ts';
import { DirectoryRows } from '../repositories/directory-rows.ts';
import { OrganizationRoleSets, type RoleSet } from '../repositories/organization-role-sets.ts';
import type { KnownDirectory } from '../views/directories.views.ts';
import { whole } from '../views/listed.ts';

/** Which roles the groups of a directory give. */
@Injectable()
export class RoleMappings {
  constructor(
    private readonly roles: OrganizationRoleSets,
    private readonly directories: DirectoryRows,
  ) {}

  @Handles(ListRoleMappings)
  async list({ context, id }: ListRoleMappings): Promise<List<RoleMapping>> {
    const directory = await this.directories.require(context, id);
    const { own } = await this.rolesOf(context, directory);
    return whole(shown(mappingsOf(own, id), await this.livingOf(context, directory, own)));
  }

  @Handles(SetRoleMappings)
  async set({ context, id, role_mappings }: SetRoleMappings): Promise<List<RoleMapping>> {
    const directory = await this.directories.require(context, id);
    const { model } = await this.rolesOf(context, directory);
    const groups = await this.directories.groupsIn(
      context,
      id,
      role_mappings.map(({ group_id }) => group_id),
    );
    const unknown = role_mappings.find(({ group_id }) => !groups.has(group_id));
    if (unknown !== undefined) throw notFound('Directory group', unknown.group_id);
    const { state } = await this.roles.transact(context, directory.organization_id, setRoleMappings(directory, role_mappings, model.roles));
    // What a mapping names may have been deleted while it was made; what is left of it goes.
    const { groups: alive, slugs } = await this.livingOf(context, directory, state);
    for (const { group_id, role_slug } of role_mappings) {
      if (!alive.has(group_id)) throw notFound('Directory group', group_id);
      if (![...slugs.values()].includes(role_slug)) throw notFound('Role', role_slug);
    }
    return whole(shown(mappingsOf(state, id), { groups: alive, slugs }));
  }

  /** @throws DomainError `entity_not_found`, also where its organization was deleted and its own deletion is still to be recorded */
  private async rolesOf(context: RequestContext, { id, organization_id }: KnownDirectory): Promise<RoleSet> {
    return this.roles.of(context, organization_id).catch((error: unknown) => {
      throw isNotFound(error) ? notFound('Directory', id) : error;
    });
  }

  private async livingOf(context: RequestContext, { id, organization_id }: KnownDirectory, own: OrganizationRolesState | null): Promise<Living> {
    const ids = mappingsOf(own, id).map(({ group_id }) => group_id);
    const [{ model }, groups] = await Promise.all([this.roles.of(context, organization_id), this.directories.groupsIn(context, id, ids)]);
    return { groups, slugs: new Map([...model.roles, ...(own?.roles ?? [])].map((role) => [role.id, role.slug])) };
  }
}

/** What lives of that which mappings name. */
interface Living {
  readonly groups: ReadonlySet<string>;
  /** Of roles, by their ids. */
  readonly slugs: ReadonlyMap<string, string>;
}

function shown(mappings: readonly StoredRoleMapping[], { groups, slugs }: Living): readonly RoleMapping[] {
  return mappings.flatMap(({ group_id, role_id }) => {
    const role_slug = slugs.get(role_id);
    return role_slug === undefined || !groups.has(group_id) ? [] : [{ object: 'role_mapping', group_id, role_slug }];
  });
}
