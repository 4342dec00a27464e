import { DEFAULT_ROLE, seedsOf } from '#libs/contracts/src/roles/seeds';
import type { NewEvent, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { newUlid } from '#libs/platform/src/ids';
import { EnvironmentModel } from '../access/environment-model.ts';
import { OrganizationIndex } from '../access/organization-index.ts';

/** The same numbers in every run with the same seed. */
export function chance(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return Math.floor(((state ^ (state >>> 13)) >>> 0) / (2 ** 32 / below));
  };
}

/** Whatever is recorded is told to an index and the model that it asks, in order. Memberships of users who were deleted before are dead. */
export class Follower {
  private readonly endedUsers = new Set<string>();

  constructor(
    readonly index: OrganizationIndex,
    readonly model: EnvironmentModel,
  ) {}

  hear(record: RecordedEvent): void {
    const { type, stream, data, meta } = record;
    if (stream.startsWith('authorization_model-')) return this.model.apply(record);
    if (type === 'user.deleted') {
      const { id } = data as { readonly id: string };
      this.endedUsers.add(id);
      return this.index.endUser(id);
    }
    if (meta.organization !== this.index.id) return;
    this.index.apply(record);
    const user = (data as { readonly user_id?: string }).user_id;
    if (user !== undefined && this.endedUsers.has(user)) this.index.endUser(user);
  }
}

interface Told {
  readonly stream: string;
  readonly type: string;
  readonly data: object;
}

/**
 * What might be recorded of one organization: valid in that whatever is told of a thing comes after the thing, as the services that write see to; also after its
 * end, where both happened at once. Sweeps of what hangs under something deleted come later, or never.
 */
export class GivenHistory {
  readonly environment: string;
  readonly organization: string;
  /** Permission slugs of the environment's model, of which some may be gone at a time. */
  readonly permissions: { id: string; readonly slug: string }[];
  readonly memberships: string[] = [];
  readonly resources: string[] = [];
  private time;
  private readonly root: string;
  private readonly users: string[];
  private readonly endedUsers: Set<string>;
  private readonly userOf = new Map<string, string>();
  private readonly groups: string[] = [];
  private readonly types: readonly { readonly id: string; readonly slug: string }[];
  /** The default one, those of the environment, then those of the organization. */
  private readonly roles: string[];
  private readonly ended: Set<string>;
  private readonly parents = new Map<string, string>();
  private readonly pairs = new Set<string>();
  private readonly grants = new Map<string, string>();
  private readonly model: Told[] = [];
  private readonly streams = new Map<string, string>();

  /** `neighbour`: another organization of the same environment, which says what roles there are. */
  constructor(
    private readonly next: (below: number) => number,
    neighbour: GivenHistory | null = null,
  ) {
    this.time = 1_700_000_000_000 + next(1_000_000_000);
    this.environment = neighbour?.environment ?? `environment_${newUlid(1)}`;
    this.users = neighbour?.users ?? [];
    this.endedUsers = neighbour?.endedUsers ?? new Set();
    this.ended = new Set(neighbour?.ended);
    this.organization = this.id('org');
    this.root = `authz_resource_${this.organization.slice(-26)}`;
    this.resources.push(this.root);
    this.permissions = neighbour?.permissions ?? [0, 1, 2].map((number) => ({ id: this.id('perm'), slug: `permission-${number}` }));
    this.types = neighbour?.types ?? [0, 1].map((number) => ({ id: this.id('resource_type'), slug: `type-${number}` }));
    this.roles = neighbour === null ? [seedsOf(this.environment).roles.find(({ slug }) => slug === DEFAULT_ROLE)!.id] : neighbour.roles.slice(0, 4);
    if (neighbour !== null) return;
    for (const type of this.types) this.tellModel('resource_type.created', { ...type, parents: [] });
    for (const permission of this.permissions) this.tellModel('permission.created', { ...permission });
    for (const number of [0, 1, 2]) {
      const id = this.id('role');
      this.roles.push(id);
      this.tellModel('role.created', {
        id,
        slug: `role-${number}`,
        resource_type_id: null,
        resource_type_slug: 'organization',
        permissions: [{ ...this.permissions[number]! }],
      });
    }
  }

  /** What comes before everything else. */
  beginning(): readonly NewEvent[][] {
    return [...this.model, this.told('organization', this.organization, 'organization.created', { id: this.organization, name: 'Acme' })].map((told) => [
      this.event(told),
    ]);
  }

  /** What happens next, at once; nothing where chance chose what cannot be. */
  step(): NewEvent[] {
    const told = this.something();
    return told === null ? [] : [told].flat().map((each) => this.event(each));
  }

  /** The end of the organization. */
  end(): NewEvent[] {
    return [this.event(this.told('organization', this.organization, 'organization.deleted', { id: this.organization }))];
  }

  streamOf(event: NewEvent): string {
    return this.streams.get(event.id)!;
  }

  private something(): Told | readonly Told[] | null {
    switch (this.next(22)) {
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
          : this.withMembership((id, key) => this.ending(id, this.told('organization_membership', key, 'organization_membership.deleted', { id })));
      case 4:
        return this.next(8) > 0 ? null : this.endUser();
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
        return this.next(3) > 0 ? null : this.endResource();
      case 12:
        return this.role();
      case 13:
        return this.next(2) > 0 ? null : this.sharedRole();
      default:
        return this.grant();
    }
  }

  private join(): Told {
    const known = this.users.length > 0 && this.next(2) === 0 ? this.users[this.next(this.users.length)]! : null;
    // One who was deleted just now, too: nobody looked again.
    const isFree = known !== null && ![...this.userOf].some(([membership, user]) => user === known && !this.ended.has(membership));
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
    const existing = this.groups.filter((id) => !this.ended.has(id));
    if (existing.length > 4) {
      const id = existing[this.next(existing.length)]!;
      return this.ending(id, this.told('group', id, 'group.deleted', { id }));
    }
    const id = this.id('group');
    this.groups.push(id);
    return this.told('group', id, 'group.created', { id, organization_id: this.organization, name: 'Group' });
  }

  private pair(): Told | null {
    const [group, membership] = [this.existing(this.groups), this.existingOrDeleted(this.memberships)];
    if (group === null || membership === null) return null;
    const [key, data] = [`${group} ${membership}`, { group_id: group, organization_membership_id: membership }];
    if (this.pairs.delete(key)) return this.told('group', group, 'group.member_removed', data);
    this.pairs.add(key);
    return this.told('group', group, 'group.member_added', data);
  }

  private resource(): Told {
    const parent = this.existing(this.resources)!;
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
    const [id, parent] = [this.existing(this.resources)!, this.existing(this.resources)!];
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
    const own = this.roles.slice(4).filter((id) => !this.ended.has(id));
    const permissions = this.somePermissions();
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
    return this.ending(id, this.told('organization_roles', this.organization, 'organization_role.deleted', { id }));
  }

  /** What the environment has for all of its organizations. */
  private sharedRole(): Told | readonly Told[] {
    const [place, permissions] = [this.next(4), this.somePermissions()];
    if (this.next(3) > 0) return this.ofModel('role.updated', { id: this.roles[place], permissions });
    const permission = this.permissions[this.next(this.permissions.length)]!;
    const holders = this.roles.slice(0, 4).map((id) => this.ofModel('role.updated', { id }));
    const gone = this.ofModel('permission.deleted', { id: permission.id });
    permission.id = this.id('perm');
    // Another one of the same name: who held the one before does not hold it.
    return [gone, ...holders, this.ofModel('permission.created', { ...permission })];
  }

  private grant(): Told | null {
    if (this.grants.size > 0 && this.next(3) === 0) {
      const [stream, id] = [...this.grants][this.next(this.grants.size)]!;
      this.grants.delete(stream);
      return { stream, type: `${stream.slice(0, stream.indexOf('-'))}.deleted`, data: { id } };
    }
    const ofGroup = this.next(3) === 0;
    const whose = this.existingOrDeleted(ofGroup ? this.groups : this.memberships);
    const [role, resource] = [this.existingOrDeleted(this.roles)!, this.existingOrDeleted(this.resources)!];
    if (whose === null) return null;
    const category = ofGroup ? 'group_role_assignment' : 'role_assignment';
    const stream = `${category}-${this.environment}-${whose}.${role}.${resource}`;
    if (this.grants.has(stream)) return null;
    const id = this.id(ofGroup ? 'gra' : 'role_assignment');
    this.grants.set(stream, id);
    return {
      stream,
      type: `${category}.created`,
      data: {
        id,
        organization_id: this.organization,
        ...(ofGroup ? { group_id: whose } : { organization_membership_id: whose }),
        role: { id: role, slug: '' },
        resource: { id: resource, external_id: '', resource_type_slug: '' },
      },
    };
  }

  private withMembership(tell: (id: string, key: string) => Told): Told | null {
    const id = this.existing(this.memberships);
    return id === null ? null : tell(id, `${this.organization}.${this.userOf.get(id)!}`);
  }

  private someRoles(): { id: string; slug: string }[] {
    const roles = new Set(Array.from({ length: this.next(3) }, () => this.existingOrDeleted(this.roles)!));
    return [...roles].map((id) => ({ id, slug: '' }));
  }

  private somePermissions(): { readonly id: string; readonly slug: string }[] {
    return this.permissions.filter(() => this.next(3) > 0).map((permission) => ({ ...permission }));
  }

  private isUnder(id: string, ancestor: string): boolean {
    for (let at: string | undefined = id; at !== undefined; at = this.parents.get(at)) if (at === ancestor) return true;
    return false;
  }

  private existing(ids: readonly string[]): string | null {
    const existing = ids.filter((id) => !this.ended.has(id));
    return existing.length === 0 ? null : existing[this.next(existing.length)]!;
  }

  /** Mostly what lives: what ended at the same moment slips in. */
  private existingOrDeleted(ids: readonly string[]): string | null {
    return this.next(8) > 0 ? this.existing(ids) : (ids[this.next(ids.length || 1)] ?? null);
  }

  private ending(id: string, told: Told): Told {
    this.ended.add(id);
    return told;
  }

  private tellModel(type: string, data: object): void {
    this.model.push(this.ofModel(type, data));
  }

  private ofModel(type: string, data: object): Told {
    return { stream: `authorization_model-${this.environment}-${this.environment}`, type, data };
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

/** An index that hears a history, each time after so many steps more. */
export function* lived(seed: number, steps: number, times = 1): Generator<{ readonly index: OrganizationIndex; readonly history: GivenHistory }> {
  const history = new GivenHistory(chance(seed));
  const versions = new Map<string, number>();
  const model = new EnvironmentModel(history.environment);
  const index = new OrganizationIndex(history.organization, history.environment, model).loaded();
  const follower = new Follower(index, model);
  const hear = (told: readonly NewEvent[]): void => {
    for (const event of told) {
      const stream = history.streamOf(event);
      const version = (versions.get(stream) ?? 0) + 1;
      versions.set(stream, version);
      follower.hear({ ...event, stream, version, position: '' });
    }
  };
  for (const told of history.beginning()) hear(told);
  for (let time = 0; time < times; time++) {
    for (let step = 0; step < steps; step++) hear(history.step());
    yield { index, history };
  }
}
