import type { EnvironmentSettingsEvent } from '#apps/identity/src/domain/environment-settings.decider';
import { DEFAULT_ROLE, seedsOf } from '#libs/contracts/src/roles/seeds';
import { KnownClosings } from '#libs/event-sourcing/src/deciding/guards/known-closings';
import { START, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';

/** A set of permissions by their numbers: one bit each. */
class PermissionSet {
  private bits = new Uint32Array(1);

  has(number: number): boolean {
    return (((this.bits[number >> 5] ?? 0) >>> (number & 31)) & 1) === 1;
  }

  replace(numbers: readonly number[]): void {
    this.bits = new Uint32Array(1 + (Math.max(0, ...numbers) >> 5));
    for (const number of numbers) this.bits[number >> 5]! |= 1 << (number & 31);
  }
}

/** A role of the environment, or one that an organization made for itself. Whoever keeps it sees it change: once deleted, it grants nothing. */
export class Role {
  isAlive = true;
  /** In the order of priority: less is higher. */
  place = 0;
  readonly permissions = new PermissionSet();

  constructor(
    readonly id: string,
    readonly slug: string,
    /** Null for a role of the environment. */
    readonly organization_id: string | null,
    /** Null for the built-in type `organization`. */
    readonly resource_type_id: string | null,
    readonly resource_type_slug: string,
  ) {}

  end(): void {
    this.isAlive = false;
    this.permissions.replace([]);
  }

  /** Whether it holds the permission of that number: no role that is dead does. */
  grants(permission: number): boolean {
    return this.permissions.has(permission);
  }
}

export interface Permission {
  readonly id: string;
  readonly slug: string;
  /** Stands for its id wherever there are many; never used again for another. */
  readonly number: number;
}

export interface ResourceType {
  /** Null for the built-in type `organization`. */
  readonly id: string | null;
  readonly slug: string;
  readonly parents: readonly { readonly id: string | null; readonly slug: string }[];
}

interface Named {
  readonly id: string;
  readonly slug: string;
}

interface RoleFact extends Named {
  readonly resource_type_id: string | null;
  readonly resource_type_slug: string;
  readonly permissions: readonly Named[];
  readonly organization_id?: string;
}

/** What is recorded of an environment's model and of an organization's roles; what a fact leaves out stays as it was. */
type ModelFact = Partial<RoleFact> & { readonly id: string; readonly parents?: ResourceType['parents'] };

const ORGANIZATION: ResourceType = { id: null, slug: 'organization', parents: [] };

/** The live roles, permissions and resource types of an environment, as checks and validations need them. Names and times are told by rows. */
export class EnvironmentModel {
  /** Of the stream that it is folded from. */
  version = 0;
  /** Which of its resource types somebody is about to narrow. */
  readonly closings = new KnownClosings(START);
  private readonly roles = new RoleTable();
  private readonly permissionsById = new Map<string, Permission>();
  private readonly permissionsBySlug = new Map<string, Permission>();
  private readonly typesById = new Map<string | null, ResourceType>([[null, ORGANIZATION]]);
  private readonly typesBySlug = new Map<string, ResourceType>([[ORGANIZATION.slug, ORGANIZATION]]);
  /** Numbers of permissions by id, also of those that are gone. */
  private readonly numbers = new Map<string, number>();
  /** What a membership has whose last role is gone: it is there from the beginning, and never deleted. */
  readonly defaultRole: Role;

  /** Of the stream of the environment's settings. */
  private settingsVersion = 0;
  /** Whether somebody may have several roles in an organization. */
  mayBeSeveral: boolean;

  /** `mayBeSeveral`: while the settings of the environment say nothing of it. */
  constructor(
    readonly environment: string,
    private readonly isSeveralByDefault = true,
  ) {
    this.mayBeSeveral = isSeveralByDefault;
    const { permissions, roles } = seedsOf(environment);
    this.seed(permissions, roles);
    this.defaultRole = this.roles.bySlug(DEFAULT_ROLE)!;
  }

  /** A live role of the environment. */
  roleBySlug(slug: string): Role | null {
    return this.roles.bySlug(slug);
  }

  roleById(id: string): Role | null {
    return this.roles.byId(id);
  }

  permissionBySlug(slug: string): Permission | null {
    return this.permissionsBySlug.get(slug) ?? null;
  }

  permissions(): Iterable<Permission> {
    return this.permissionsById.values();
  }

  resourceTypes(): Iterable<ResourceType> {
    return this.typesById.values();
  }

  resourceTypeBySlug(slug: string): ResourceType | null {
    return this.typesBySlug.get(slug) ?? null;
  }

  resourceTypeById(id: string | null): ResourceType | null {
    return this.typesById.get(id) ?? null;
  }

  /** The number of a permission, whether it is known already or not. */
  numberOf(permissionId: string): number {
    let number = this.numbers.get(permissionId);
    if (number === undefined) this.numbers.set(permissionId, (number = this.numbers.size));
    return number;
  }

  /** Folds the next event of its stream; one that it knows already changes nothing. */
  apply(event: Pick<RecordedEvent, 'type' | 'data' | 'version' | 'position' | 'meta'>): void {
    const { type, data, version } = event;
    if (version <= this.version) return;
    this.version = version;
    const fact = data as ModelFact;
    switch (type) {
      case 'authorization_model.seeded': {
        const { permissions, roles } = data as { readonly permissions: readonly Named[]; readonly roles: readonly RoleFact[] };
        return this.seed(permissions, roles);
      }
      case 'resource_type.created':
      case 'resource_type.updated':
        return this.setType({ ...(this.typesById.get(fact.id) ?? { id: fact.id, slug: '', parents: [] }), ...picked(fact) });
      case 'resource_type.deleted':
        this.closings.apply(event);
        return this.forgetType(fact.id);
      case 'resource_type.closing':
      case 'resource_type.reopened':
        return this.closings.apply(event);
      case 'permission.created':
        return this.setPermission(fact as Named);
      case 'permission.deleted':
        return this.forgetPermission(fact.id);
      case 'roles.reordered':
        return this.roles.reorder((data as { readonly role_ids: readonly string[] }).role_ids);
      case 'role.created':
      case 'role.updated':
      case 'role.deleted':
        return this.roles.apply(type, fact, (id) => this.numberOf(id));
    }
  }

  /** Folds the next event of the environment's settings, as `apply` does. */
  applySettings({ data, version }: Pick<RecordedEvent, 'data' | 'version'>): void {
    if (version <= this.settingsVersion) return;
    this.settingsVersion = version;
    const { multiple_roles } = data as EnvironmentSettingsEvent['data'];
    if (multiple_roles !== undefined) this.mayBeSeveral = multiple_roles ?? this.isSeveralByDefault;
  }

  private seed(permissions: readonly Named[], roles: readonly RoleFact[]): void {
    for (const permission of permissions) this.setPermission(permission);
    for (const role of roles) this.roles.apply('role.created', role, (id) => this.numberOf(id));
  }

  private setType(type: ResourceType): void {
    this.typesById.set(type.id, type);
    this.typesBySlug.set(type.slug, type);
  }

  private forgetType(id: string): void {
    const type = this.typesById.get(id);
    this.typesById.delete(id);
    if (type !== undefined && this.typesBySlug.get(type.slug)?.id === id) this.typesBySlug.delete(type.slug);
  }

  private setPermission({ id, slug }: Named): void {
    const permission = { id, slug, number: this.numberOf(id) };
    this.permissionsById.set(id, permission);
    this.permissionsBySlug.set(slug, permission);
  }

  private forgetPermission(id: string): void {
    const permission = this.permissionsById.get(id);
    this.permissionsById.delete(id);
    if (permission !== undefined && this.permissionsBySlug.get(permission.slug)?.id === id) this.permissionsBySlug.delete(permission.slug);
  }
}

function picked({ slug, parents }: ModelFact): Partial<ResourceType> {
  return { ...(slug !== undefined && { slug }), ...(parents !== undefined && { parents }) };
}

/** The live roles of an environment, or those that one organization made. */
export class RoleTable {
  private readonly ids = new Map<string, Role>();
  private readonly slugs = new Map<string, Role>();

  /** `nextPlace`: of the first that comes, in the order of priority. */
  constructor(private nextPlace = 0) {}

  byId(id: string): Role | null {
    return this.ids.get(id) ?? null;
  }

  bySlug(slug: string): Role | null {
    return this.slugs.get(slug) ?? null;
  }

  /** Folds `<…role>.created`, `.updated` or `.deleted`; `numberOf` numbers permissions. */
  apply(type: string, fact: ModelFact, numberOf: (permissionId: string) => number): void {
    const { id } = fact;
    // What an environment begins with is known before it is recorded.
    if (type.endsWith('.created') && !this.ids.has(id)) {
      const { slug, organization_id = null, resource_type_id, resource_type_slug } = fact as RoleFact;
      const role = new Role(id, slug, organization_id, resource_type_id, resource_type_slug);
      role.place = this.nextPlace++;
      this.ids.set(id, role);
      this.slugs.set(slug, role);
    }
    const role = this.ids.get(id);
    if (role === undefined) return;
    if (type.endsWith('.deleted')) {
      this.ids.delete(id);
      if (this.slugs.get(role.slug) === role) this.slugs.delete(role.slug);
      role.end();
    } else if (fact.permissions !== undefined) role.permissions.replace(fact.permissions.map((permission) => numberOf(permission.id)));
  }

  /** Those first, in this order; the others keep theirs behind them. */
  reorder(ids: readonly string[]): void {
    const first = new Set(ids.flatMap((id) => this.ids.get(id) ?? []));
    const others = [...this.ids.values()].filter((role) => !first.has(role)).sort((one, other) => one.place - other.place);
    for (const role of [...first, ...others]) role.place = this.nextPlace++;
  }
}
