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
  readonly naive: NaiveMappedRoles;
  private readonly endedUsers = new Set<string>();

  constructor(
    readonly index: OrganizationIndex,
    readonly model: EnvironmentModel,
  ) {
    this.naive = new NaiveMappedRoles(index.id, index.environment);
  }

  hear(record: RecordedEvent): void {
    const { type, stream, data, meta } = record;
    // Who is in a group that was not mapped before is read elsewhere: here it is known.
    for (const id of this.index.unknownGroupsIn(record)) this.naive.teach(this.index, id, (data as Said).directory_id);
    this.naive.hear(record);
    if (stream.startsWith('environment_settings-')) return this.model.applySettings(record);
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

interface Mapping {
  readonly group_id: string;
  readonly role_id: string;
}

/** What groups of directories give, as a few maps: nothing is left out, and nothing counted in advance. */
export class NaiveMappedRoles {
  private mayBeSeveral = true;
  private readonly directories = new Map<string, string>();
  private readonly groups = new Map<string, string>();
  private readonly members = new Map<string, Set<string>>();
  private readonly managers = new Map<string, string>();
  /** Memberships that people wait for. */
  private readonly waiting = new Map<string, string>();
  /** People who may not work; true where they are gone for good. */
  private readonly absent = new Map<string, boolean>();
  private readonly directoryOf = new Map<string, string>();
  /** Directories whose memberships ended with them. */
  private readonly ended = new Set<string>();
  private mappings: readonly Mapping[] = [];
  /** In the order of their priority. */
  private shared: readonly string[];
  private own: readonly string[] = [];

  constructor(
    private readonly organization: string,
    environment: string,
  ) {
    this.shared = seedsOf(environment).roles.map(({ id }) => id);
  }

  /** The ids of roles that a membership has by the groups of whoever manages it. */
  of(membership: string): readonly string[] {
    const manager = this.managers.get(membership) ?? '';
    const isGone = (id: string): boolean => this.absent.get(id) === true || this.ended.has(this.directoryOf.get(id) ?? '');
    const successors = [...this.waiting].filter(([id, waitsFor]) => waitsFor === membership && !this.absent.has(id) && !isGone(id)).map(([id]) => id);
    const person = isGone(manager) ? (successors.sort()[0] ?? '') : manager;
    const given = this.mappings.filter(({ group_id }) => {
      const isFollowed = this.directories.get(this.groups.get(group_id) ?? '') === 'memberships_and_roles';
      return isFollowed && this.members.get(group_id)?.has(person) === true;
    });
    const roles = [...this.shared, ...this.own].filter((id) => given.some(({ role_id }) => role_id === id));
    return this.mayBeSeveral ? roles : roles.slice(0, 1);
  }

  /** What reading the rows of a group would do. */
  teach({ mapped }: OrganizationIndex, group: string, directory: string): void {
    mapped.expect([group], directory);
    if (this.groups.has(group)) mapped.revive(group);
    for (const person of this.members.get(group) ?? []) mapped.addMember(group, person);
    mapped.unread.delete(group);
  }

  hear({ type, data, meta }: RecordedEvent): void {
    const told = data as never as Said;
    if (type === 'role.created') this.shared = [...this.shared, told.id];
    if (type === 'roles.reordered') this.shared = [...told.role_ids, ...this.shared.filter((id) => !told.role_ids.includes(id))];
    if (type === 'environment_settings.changed') this.mayBeSeveral = told.multiple_roles ?? true;
    if (meta.organization !== this.organization) return;
    if (type === 'organization_role.created') this.own = [...this.own, told.id];
    if (type === 'organization_role.deleted') this.own = this.own.filter((id) => id !== told.id);
    if (type === 'directory.created' || type === 'directory.updated') this.directories.set(told.id, told.policy.follows);
    if (type === 'dsync.deleted') this.directories.delete(told.id);
    if (type === 'dsync.group.created') this.groups.set(told.id, told.directory_id);
    if (type === 'dsync.group.deleted') this.groups.delete(told.id);
    if (type === 'dsync.user.updated' && told.active) this.absent.delete(told.id);
    if (type === 'dsync.user.deleted' || (type === 'dsync.user.updated' && !told.active)) this.absent.set(told.id, type === 'dsync.user.deleted');
    if (type === 'dsync.deleted' && told.memberships === 'end') this.ended.add(told.id);
    if (type === 'directory_link.changed') this.directoryOf.set(told.id, told.directory_id);
    if (type === 'directory_link.changed') this.waiting.set(told.id, told.membership_id);
    if (type === 'directory_link.ended') this.waiting.delete(told.id);
    if (type === 'directory_group.members_changed') {
      const members = [...(this.members.get(told.id) ?? [])].filter((person) => !told.removed.includes(person as never));
      this.members.set(told.id, new Set([...members, ...(told.added as readonly never[])]));
    }
    if (type === 'role_mappings.changed') {
      const removed = told.removed as readonly Mapping[];
      const left = this.mappings.filter((held) => !removed.some(({ group_id, role_id }) => group_id === held.group_id && role_id === held.role_id));
      this.mappings = [...left, ...(told.added as readonly Mapping[])];
    }
    if (type === 'organization_membership.updated' && told.managed_by !== undefined) {
      if (told.managed_by === null) this.managers.delete(told.id);
      else {
        const { directory_id, directory_user_id } = told.managed_by;
        this.managers.set(told.id, directory_user_id);
        this.directoryOf.set(directory_user_id, directory_id);
      }
    }
  }
}

interface Said {
  readonly id: string;
  readonly active: boolean;
  readonly membership_id: string;
  readonly role_ids: readonly string[];
  readonly multiple_roles: boolean | null;
  readonly policy: { readonly follows: string };
  readonly directory_id: string;
  readonly added: readonly unknown[];
  readonly removed: readonly unknown[];
  readonly managed_by?: { readonly directory_id: string; readonly directory_user_id: string } | null;
  readonly memberships?: string;
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
  private readonly directories: string[] = [];
  private readonly people: string[] = [];
  private readonly peopleOf = new Map<string, readonly string[]>();
  private readonly directoryGroups = new Map<string, { readonly directory: string; readonly members: Set<string>; readonly roles: Set<string> }>();

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
    if (this.next(4) === 0) return this.ofDirectories();
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

  private ofDirectories(): Told | null {
    const directory = this.existing(this.directories);
    const group = this.existingOrDeleted([...this.directoryGroups.keys()]);
    switch (directory === null ? 0 : this.next(16)) {
      case 0: {
        if (this.directories.filter((id) => !this.ended.has(id)).length > 1) return null;
        const id = this.id('directory');
        this.directories.push(id);
        this.peopleOf.set(
          id,
          Array.from({ length: 4 }, () => this.id('directory_user')),
        );
        this.people.push(...this.peopleOf.get(id)!);
        return this.told('directory', id, 'directory.created', { id, organization_id: this.organization, policy: this.policy() });
      }
      case 1:
        return this.told('directory', directory!, 'directory.updated', { id: directory, policy: this.policy() });
      case 2:
        return this.next(6) > 0
          ? null
          : this.ending(directory!, this.told('directory', directory!, 'dsync.deleted', { id: directory, memberships: ['end', 'release'][this.next(2)] }));
      case 3: {
        if (group !== null && this.next(4) === 0) return this.ending(group, this.told('directory_group', group, 'dsync.group.deleted', { id: group }));
        const id = this.id('directory_group');
        this.directoryGroups.set(id, { directory: directory!, members: new Set(), roles: new Set() });
        return this.told('directory_group', id, 'dsync.group.created', { id, directory_id: directory });
      }
      case 4:
        return this.ofModel('roles.reordered', { role_ids: [...this.roles.slice(0, 4)].sort(() => this.next(3) - 1) });
      case 5: {
        const stream = `environment_settings-${this.environment}-${this.environment}`;
        return { stream, type: 'environment_settings.changed', data: { multiple_roles: [true, false, null][this.next(3)] } };
      }
      case 6:
      case 7:
      case 8:
        return this.withMembership((id, key) => {
          const directory_user_id = this.people[this.next(this.people.length)]!;
          const managed_by = this.next(4) === 0 ? null : { directory_id: this.directoryOf(directory_user_id), directory_user_id };
          return this.told('organization_membership', key, 'organization_membership.updated', { id, managed_by });
        });
      case 9:
      case 10:
      case 11:
        return group === null ? null : this.mapping(group);
      case 12:
        return this.ofPerson();
      default:
        return group === null ? null : this.directoryMembers(group);
    }
  }

  private ofPerson(): Told | null {
    const id = this.existing(this.people);
    if (id === null) return null;
    const person = { id, directory_id: this.directoryOf(id) };
    switch (this.next(8)) {
      case 0:
        return this.ending(id, this.told('directory_user', id, 'dsync.user.deleted', person));
      case 1:
        return this.told('directory_link', id, 'directory_link.ended', person);
      case 2:
      case 3:
        return this.withMembership((membership_id) =>
          this.told('directory_link', id, 'directory_link.changed', { ...person, organization_id: this.organization, membership_id, is_manager: false }),
        );
      default:
        return this.told('directory_user', id, 'dsync.user.updated', { ...person, active: this.next(3) > 0 });
    }
  }

  private directoryOf(person: string): string {
    return this.directories.find((directory) => this.peopleOf.get(directory)!.includes(person))!;
  }

  private policy(): object {
    return { follows: ['off', 'memberships', 'memberships_and_roles', 'memberships_and_roles', 'memberships_and_roles'][this.next(5)] };
  }

  private directoryMembers(group: string): Told {
    const { directory, members } = this.directoryGroups.get(group)!;
    const some = this.peopleOf.get(directory)!.filter(() => this.next(2) === 0);
    const [added, removed] = [some.filter((id) => !members.has(id)), some.filter((id) => members.has(id))];
    for (const id of added) members.add(id);
    for (const id of removed) members.delete(id);
    return this.told('directory_group', group, 'directory_group.members_changed', { id: group, directory_id: directory, added, removed });
  }

  private mapping(group: string): Told {
    const { directory, roles } = this.directoryGroups.get(group)!;
    const role = this.existingOrDeleted(this.roles)!;
    const mapping = [{ group_id: group, role_id: role }];
    const [added, removed] = roles.has(role) ? [[], mapping] : [mapping, []];
    if (!roles.delete(role)) roles.add(role);
    return this.told('organization_roles', this.organization, 'role_mappings.changed', {
      organization_id: this.organization,
      directory_id: directory,
      added,
      removed,
    });
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
    const isOfEnvironment = ['authorization_model-', 'environment_settings-', 'user-'].some((start) => stream.startsWith(start));
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
export function* lived(
  seed: number,
  steps: number,
  times = 1,
): Generator<{ readonly index: OrganizationIndex; readonly history: GivenHistory; readonly naive: NaiveMappedRoles }> {
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
    yield { index, history, naive: follower.naive };
  }
}
