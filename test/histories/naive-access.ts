import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';

type Thing = Readonly<Record<string, unknown>>;
type Named = { readonly id: string; readonly slug: string };

interface Membership extends Thing {
  readonly id: string;
  readonly organization_id: string;
  readonly user_id: string;
  readonly status: string;
  readonly roles: readonly Named[];
}

interface Resource extends Thing {
  readonly id: string;
  readonly organization_id: string;
  readonly parent_resource_id: string | null;
}

interface Role extends Thing {
  readonly id: string;
  readonly slug: string;
  readonly permissions: readonly Named[];
}

interface Assignment extends Thing {
  readonly id: string;
  readonly role: Named;
  readonly resource: { readonly id: string };
  readonly organization_membership_id?: string;
  readonly group_id?: string;
}

/** How a membership comes by a permission: by an assignment on the very resource, or by one further up. */
export type Way = 'direct' | 'indirect';

/**
 * Who may do what, found out the slow way: everything that was recorded of an environment is folded anew for each state that is asked about. Shares nothing with
 * the index that it is compared with.
 */
export class NaiveAccess {
  private readonly things = new Map<string, Thing>();
  private readonly dead = new Set<string>();
  private readonly members = new Set<string>();

  constructor(records: readonly RecordedEvent[]) {
    for (const record of records) this.fold(record);
  }

  /** Null where it is to be answered that there is no such membership, permission or resource. */
  allows(membership: string, permission: string, resource: string): boolean | null {
    const asked = this.membership(membership);
    const permissionId = this.permissionBySlug(permission);
    if (asked === null || permissionId === null || this.organizationOf(resource) !== asked.organization_id) return null;
    return this.ways(asked, permissionId, resource).length > 0;
  }

  /** The children of a resource on which a membership has a permission; null as for `allows`. */
  children(membership: string, permission: string, parent: string): readonly string[] | null {
    if (this.allows(membership, permission, parent) === null) return null;
    return this.resources().filter((id) => this.resource(id)?.parent_resource_id === parent && this.allows(membership, permission, id) === true);
  }

  /** Who has a permission on a resource; null where there is no such resource or permission. */
  holders(permission: string, resource: string, way?: Way): readonly string[] | null {
    const organization = this.organizationOf(resource);
    const permissionId = this.permissionBySlug(permission);
    if (organization === null || permissionId === null) return null;
    return this.ofKind<Membership>('om_')
      .filter(({ id, organization_id }) => organization_id === organization && this.membership(id) !== null)
      .filter((membership) => this.ways(membership, permissionId, resource).some((found) => way === undefined || found === way))
      .map(({ id }) => id);
  }

  /** The slugs of everything that a membership may do on a resource; null as for `allows`. */
  permissions(membership: string, resource: string): readonly string[] | null {
    const asked = this.membership(membership);
    if (asked === null || this.organizationOf(resource) !== asked.organization_id) return null;
    return this.ofKind<Named>('perm_')
      .filter(({ id }) => !this.dead.has(id) && this.ways(asked, id, resource).length > 0)
      .map(({ slug }) => slug);
  }

  isAlive(id: string): boolean {
    return this.things.has(id) && !this.dead.has(id);
  }

  private fold({ type, data, meta }: RecordedEvent): void {
    const fact = data as Thing;
    const [kind, happening] = type.split('.');
    const id = fact['id'] as string;
    if (kind === 'authorization_model') return this.seed(fact);
    switch (happening) {
      case 'created':
        // The keys of an environment's trail have no ids, and grant nothing.
        if (kind === 'audit_key') break;
        this.things.set(id, { ...(meta.organization !== undefined && { organization_id: meta.organization }), ...fact });
        break;
      case 'updated':
      case 'moved':
        this.things.set(id, { ...this.things.get(id), ...fact });
        break;
      case 'deleted':
        this.dead.add(id);
        break;
      case 'member_added':
        this.members.add(pairOf(fact));
        break;
      case 'member_removed':
        this.members.delete(pairOf(fact));
        break;
      default:
    }
  }

  private seed(fact: Thing): void {
    for (const list of Object.values(fact)) if (Array.isArray(list)) for (const thing of list as readonly Named[]) this.things.set(thing.id, { ...thing });
  }

  /** A living one, of a living user and organization, whatever its status. */
  private membership(id: string): Membership | null {
    const found = this.things.get(id) as Membership | undefined;
    return found !== undefined && [id, found.user_id, found.organization_id].every((part) => this.isAlive(part)) ? found : null;
  }

  private permissionBySlug(slug: string): string | null {
    return this.ofKind<Named>('perm_').find((permission) => permission.slug === slug && !this.dead.has(permission.id))?.id ?? null;
  }

  private resource(id: string): Resource | null {
    return this.dead.has(id) ? null : ((this.things.get(id) as Resource | undefined) ?? null);
  }

  private resources(): readonly string[] {
    return this.ofKind<Resource>('authz_resource_').map(({ id }) => id);
  }

  private ofKind<Kind extends Thing | Named>(prefix: string): readonly Kind[] {
    return [...this.things].filter(([id]) => id.startsWith(prefix)).map(([, thing]) => thing as Kind);
  }

  /** The resource and everything above it, up to the organization's own; null where any of it is gone. */
  private chain(resource: string): readonly string[] | null {
    const chain: string[] = [];
    for (let id = resource; ;) {
      chain.push(id);
      if (this.isAlive(`org_${id.slice('authz_resource_'.length)}`)) return chain;
      const above = this.resource(id)?.parent_resource_id ?? null;
      if (above === null) return null;
      id = above;
    }
  }

  private organizationOf(resource: string): string | null {
    const root = this.chain(resource)?.at(-1);
    return root === undefined ? null : `org_${root.slice('authz_resource_'.length)}`;
  }

  /** Of each role that gives the permission: whether it lies on the resource itself. */
  private ways(membership: Membership, permission: string, resource: string): readonly Way[] {
    if (membership.status !== 'active') return [];
    const chain = this.chain(resource) ?? [];
    return chain.flatMap((node, index) =>
      this.rolesOn(membership, node, index === chain.length - 1)
        .filter((role) => this.isAlive(role) && (this.things.get(role) as Role).permissions.some(({ id }) => id === permission && !this.dead.has(id)))
        .map((): Way => (index === 0 ? 'direct' : 'indirect')),
    );
  }

  private rolesOn(membership: Membership, node: string, isOrganization: boolean): readonly string[] {
    const holds = ({ organization_membership_id, group_id }: Assignment): boolean =>
      organization_membership_id === membership.id || (group_id !== undefined && this.isAlive(group_id) && this.members.has(`${group_id} ${membership.id}`));
    const assigned = [...this.ofKind<Assignment>('role_assignment_'), ...this.ofKind<Assignment>('gra_')]
      .filter((assignment) => !this.dead.has(assignment.id) && assignment.resource.id === node && holds(assignment))
      .map(({ role }) => role.id);
    return isOrganization ? [...this.organizationRoles(membership), ...assigned] : assigned;
  }

  /** Whose last role was deleted has the default one. */
  private organizationRoles({ roles }: Membership): readonly string[] {
    const living = roles.map(({ id }) => id).filter((id) => this.isAlive(id));
    return living.length > 0 ? living : this.ofKind<Role>('role_').flatMap(({ id, slug }) => (slug === 'member' && !this.dead.has(id) ? [id] : []));
  }
}

function pairOf(fact: Thing): string {
  return `${String(fact['group_id'])} ${String(fact['organization_membership_id'])}`;
}
