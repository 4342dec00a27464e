import type { NewEvent } from '#libs/event-sourcing/src/event-store';
import { newUlid } from '#libs/platform/src/ids';

/** The same numbers in every run with the same seed. */
export function chance(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return Math.floor(((state ^ (state >>> 13)) >>> 0) / (2 ** 32 / below));
  };
}

interface Told {
  readonly stream: string;
  readonly type: string;
  readonly data: object;
}

/**
 * What might be recorded of one organization: valid in that whatever is told of a thing comes after the thing, as the services that write see to. Sweeps of what
 * hangs under something deleted come later, or never.
 */
export class GivenHistory {
  readonly environment = `environment_${newUlid(1)}`;
  readonly organization: string;
  /** Permission slugs of the environment's model. */
  readonly permissions: readonly { readonly id: string; readonly slug: string }[];
  readonly memberships: string[] = [];
  readonly resources: string[] = [];
  private time = 1_700_000_000_000;
  private readonly root: string;
  private readonly users: string[] = [];
  private readonly endedUsers = new Set<string>();
  private readonly userOf = new Map<string, string>();
  private readonly groups: string[] = [];
  private readonly types: readonly { readonly id: string; readonly slug: string }[];
  private readonly roles: string[] = [];
  private readonly ended = new Set<string>();
  private readonly parents = new Map<string, string>();
  private readonly pairs = new Set<string>();
  private readonly grants = new Map<string, string>();
  private readonly model: Told[] = [];

  constructor(private readonly next: (below: number) => number) {
    this.organization = this.id('org');
    this.root = `authz_resource_${this.organization.slice(-26)}`;
    this.permissions = [0, 1, 2].map((number) => ({ id: this.id('perm'), slug: `permission-${number}` }));
    this.types = [0, 1].map((number) => ({ id: this.id('resource_type'), slug: `type-${number}` }));
    for (const type of this.types) this.tellModel('resource_type.created', { ...type, parents: [] });
    for (const permission of this.permissions) this.tellModel('permission.created', permission);
    for (const number of [0, 1, 2]) {
      const id = this.id('role');
      this.roles.push(id);
      this.tellModel('role.created', {
        id,
        slug: `role-${number}`,
        resource_type_id: null,
        resource_type_slug: 'organization',
        permissions: [this.permissions[number]],
      });
    }
    this.resources.push(this.root);
  }

  /** What comes before everything else. */
  beginning(): readonly NewEvent[][] {
    return [...this.model, this.told('organization', this.organization, 'organization.created', { id: this.organization, name: 'Acme' })].map((told) => [
      this.event(told),
    ]);
  }

  /** What happens next; nothing where chance chose what cannot be. */
  step(): NewEvent[] {
    const told = this.something();
    return told === null ? [] : [this.event(told)];
  }

  streamOf(event: NewEvent): string {
    return this.streams.get(event.id)!;
  }

  private readonly streams = new Map<string, string>();

  private something(): Told | null {
    switch (this.next(16)) {
      case 0:
      case 1:
        return this.join();
      case 2:
        return this.withMembership((id, key) => {
          const roles = this.someRoles();
          const changes = this.next(2) === 0 ? { status: ['active', 'inactive'][this.next(2)] } : { roles };
          return this.told('organization_membership', key, 'organization_membership.updated', { id, ...changes });
        });
      case 3:
        return this.next(3) > 0
          ? null
          : this.withMembership((id, key) => this.end(id, this.told('organization_membership', key, 'organization_membership.deleted', { id })));
      case 4:
        return this.next(6) > 0 ? null : this.endUser();
      case 5:
        return this.group();
      case 6:
      case 7:
        return this.pair();
      case 8:
      case 9:
        return this.resource();
      case 10:
        return this.move();
      case 11:
        return this.next(2) > 0 ? null : this.endResource();
      case 12:
        return this.role();
      default:
        return this.grant();
    }
  }

  private join(): Told {
    const known = this.users.length > 0 && this.next(2) === 0 ? this.users[this.next(this.users.length)]! : null;
    const isFree =
      known !== null && !this.endedUsers.has(known) && ![...this.userOf].some(([membership, user]) => user === known && !this.ended.has(membership));
    const user = isFree ? known : this.id('user');
    if (!isFree) this.users.push(user);
    const id = this.id('om');
    this.memberships.push(id);
    this.userOf.set(id, user);
    const data = { id, organization_id: this.organization, user_id: user, status: ['active', 'active', 'pending'][this.next(3)], roles: this.someRoles() };
    return this.told('organization_membership', `${this.organization}.${user}`, 'organization_membership.created', data);
  }

  private endUser(): Told | null {
    const user = this.users[this.next(this.users.length || 1)];
    if (user === undefined || this.endedUsers.has(user)) return null;
    this.endedUsers.add(user);
    // Its memberships may still be told of: they are dead all the same.
    return { stream: `user-${this.environment}-${user}`, type: 'user.deleted', data: { id: user } };
  }

  private group(): Told | null {
    const living = this.groups.filter((id) => !this.ended.has(id));
    if (living.length > 4) {
      const id = living[this.next(living.length)]!;
      return this.end(id, this.told('group', id, 'group.deleted', { id }));
    }
    const id = this.id('group');
    this.groups.push(id);
    return this.told('group', id, 'group.created', { id, organization_id: this.organization, name: 'Group' });
  }

  private pair(): Told | null {
    const [group, membership] = [this.living(this.groups), this.living(this.memberships)];
    if (group === null || membership === null) return null;
    const [key, data] = [`${group} ${membership}`, { group_id: group, organization_membership_id: membership }];
    if (this.pairs.delete(key)) return this.told('group', group, 'group.member_removed', data);
    this.pairs.add(key);
    return this.told('group', group, 'group.member_added', data);
  }

  private resource(): Told {
    const parent = this.living(this.resources)!;
    const [id, type] = [this.id('authz_resource'), this.types[this.next(2)]!];
    this.resources.push(id);
    this.parents.set(id, parent);
    const named = {
      external_id: `${this.next(30)}-${id.slice(-9)}`,
      resource_type_id: type.id,
      resource_type_slug: type.slug,
      name: 'A resource',
      description: null,
    };
    return this.told('resource_tree', this.organization, 'resource.created', { id, organization_id: this.organization, parent_resource_id: parent, ...named });
  }

  private move(): Told | null {
    const [id, parent] = [this.living(this.resources)!, this.living(this.resources)!];
    if (id === this.root || this.isUnder(parent, id)) return null;
    this.parents.set(id, parent);
    return this.told('resource_tree', this.organization, 'resource.moved', { id, parent_resource_id: parent });
  }

  private endResource(): Told | null {
    const id = this.resources[1 + this.next(this.resources.length - 1 || 1)];
    if (id === undefined) return null;
    // Also what hangs under something deleted: the sweep of it.
    for (const other of this.resources) if (this.isUnder(other, id)) this.ended.add(other);
    return this.told('resource_tree', this.organization, 'resource.deleted', { id });
  }

  private role(): Told | null {
    const own = this.roles.slice(3).filter((id) => !this.ended.has(id));
    const permissions = this.permissions.filter(() => this.next(2) === 0);
    if (own.length < 3) {
      const id = this.id('role');
      this.roles.push(id);
      const data = {
        id,
        organization_id: this.organization,
        slug: `org-${this.roles.length}`,
        resource_type_id: null,
        resource_type_slug: 'organization',
        permissions,
      };
      return this.told('organization_roles', this.organization, 'organization_role.created', data);
    }
    const id = own[this.next(own.length)]!;
    if (this.next(3) > 0) return this.told('organization_roles', this.organization, 'organization_role.updated', { id, permissions });
    return this.end(id, this.told('organization_roles', this.organization, 'organization_role.deleted', { id }));
  }

  private grant(): Told | null {
    if (this.grants.size > 0 && this.next(3) === 0) {
      const [stream, id] = [...this.grants][this.next(this.grants.size)]!;
      this.grants.delete(stream);
      return { stream, type: `${stream.slice(0, stream.indexOf('-'))}.deleted`, data: { id } };
    }
    const ofGroup = this.next(3) === 0;
    const [who, role, resource] = [this.living(ofGroup ? this.groups : this.memberships), this.living(this.roles)!, this.living(this.resources)!];
    if (who === null) return null;
    const category = ofGroup ? 'group_role_assignment' : 'role_assignment';
    const stream = `${category}-${this.environment}-${who}.${role}.${resource}`;
    if (this.grants.has(stream)) return null;
    const id = this.id(ofGroup ? 'gra' : 'role_assignment');
    this.grants.set(stream, id);
    const whose = ofGroup ? { group_id: who } : { organization_membership_id: who };
    return {
      stream,
      type: `${category}.created`,
      data: {
        id,
        organization_id: this.organization,
        ...whose,
        role: { id: role, slug: '' },
        resource: { id: resource, external_id: '', resource_type_slug: '' },
      },
    };
  }

  private withMembership(tell: (id: string, key: string) => Told): Told | null {
    const id = this.living(this.memberships);
    return id === null ? null : tell(id, `${this.organization}.${this.userOf.get(id)!}`);
  }

  private someRoles(): { id: string; slug: string }[] {
    const roles = new Set(Array.from({ length: this.next(3) }, () => this.living(this.roles)!));
    return [...roles].map((id) => ({ id, slug: '' }));
  }

  private isUnder(id: string, ancestor: string): boolean {
    for (let at: string | undefined = id; at !== undefined; at = this.parents.get(at)) if (at === ancestor) return true;
    return false;
  }

  private living(ids: readonly string[]): string | null {
    const living = ids.filter((id) => !this.ended.has(id));
    return living.length === 0 ? null : living[this.next(living.length)]!;
  }

  private end(id: string, told: Told): Told {
    this.ended.add(id);
    return told;
  }

  private tellModel(type: string, data: object): void {
    this.model.push({ stream: `authorization_model-${this.environment}-${this.environment}`, type, data });
  }

  private told(category: string, key: string, type: string, data: object): Told {
    return { stream: `${category}-${this.environment}-${key}`, type, data };
  }

  private event({ stream, type, data }: Told): NewEvent {
    const id = newUlid(++this.time);
    this.streams.set(id, stream);
    const isOfEnvironment = stream.startsWith('authorization_model-') || stream.startsWith('user-');
    const meta = {
      environment: this.environment,
      ...(!isOfEnvironment && { organization: this.organization }),
      ...{ actor: { id: 'a', source: 'system', name: null }, requestId: 'r', commandId: 'c', at: this.time },
    };
    return { id, type, shape: 1, data, subject: null, public: [], meta };
  }

  private id(prefix: string): string {
    return `${prefix}_${newUlid(++this.time)}`;
  }
}
