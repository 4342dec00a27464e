import type { DirectoryGroupEvent } from '#apps/directory-sync/src/domain/directory-group.decider';
import type { DirectoryEvent } from '#apps/directory-sync/src/domain/directory.decider';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import type { MappingsChanged } from '../domain/organization-roles.decider.ts';
import type { KnownDirectory } from '../views/directories.views.ts';
import type { Role } from './environment-model.ts';
import { GroupMembers } from './group-members.ts';
import type { Managers } from './managers.ts';

const NONE = -1;

interface Directory {
  readonly id: string;
  /** Whether it is there, and roles follow it. */
  givesRoles: boolean;
}

/** A group of a directory that gives roles. */
interface MappedGroup {
  readonly directory: Directory;
  /** Whether it is there. */
  isAlive: boolean;
  /** By their ids: null until one is looked for and found. */
  readonly roles: Map<string, Role | null>;
}

interface Roles {
  roleById(id: string): Role | null;
  /** Whether somebody may have several. */
  mayBeSeveral(): boolean;
}

export type DirectoryFact =
  | FactOf<DirectoryEvent, 'directory.created' | 'directory.updated' | 'dsync.deleted'>
  | FactOf<DirectoryGroupEvent, 'dsync.group.created' | 'dsync.group.deleted' | 'directory_group.ended' | 'directory_group.members_changed'>;

/**
 * The roles that people of directories have by the groups that they are in, in one organization. Of groups that give none, nothing is kept: who is in one that is
 * mapped has to be read. People go by the numbers that they have among those who manage memberships, groups by their own.
 */
export class MappedRoles {
  /** Ids of groups whose members have to be read before anything is answered. */
  readonly unread = new Set<string>();
  private readonly directories = new Map<string, Directory>();
  private readonly numbers = new Map<string, number>();
  private readonly groups: MappedGroup[] = [];
  private readonly members = new GroupMembers();

  constructor(
    private readonly roles: Roles,
    private readonly managers: Managers,
  ) {}

  get bytes(): number {
    return this.members.bytes + 200 * this.directories.size + 500 * this.groups.length;
  }

  /** What the groups of whoever manages the membership give that lives, the one with the highest priority first; that one alone where nobody may have several. */
  of(membership: number): readonly Role[] {
    const person = this.managers.decider(membership);
    if (person === NONE) return [];
    const found: Role[] = [];
    for (let pair = this.members.firstPair(person); pair !== NONE; pair = this.members.nextPair(pair)) {
      const { directory, isAlive, roles } = this.groups[this.members.groupOf(pair)]!;
      if (!isAlive || !directory.givesRoles) continue;
      for (const [id, known] of roles) {
        const role = known ?? this.roles.roleById(id);
        if (role === null) continue;
        if (known === null) roles.set(id, role);
        if (role.isAlive && !found.includes(role)) found.push(role);
      }
    }
    if (found.length < 2) return found;
    found.sort((one, other) => one.place - other.place);
    return this.roles.mayBeSeveral() ? found : found.slice(0, 1);
  }

  /** As it is from now on: as a row has it, or a fact. */
  setDirectory({ id, follows }: Pick<KnownDirectory, 'id' | 'follows'>): void {
    this.directory(id).givesRoles = follows === 'memberships_and_roles';
  }

  /** What a change of mappings names that is not known here: the members of such groups have to be read before it is told. */
  unknownIn({ added }: MappingsChanged): readonly string[] {
    return [...new Set(added.map(({ group_id }) => group_id))].filter((id) => !this.numbers.has(id));
  }

  /** Groups that are going to give roles: their members have to be read. */
  expect(groupIds: Iterable<string>, directoryId: string): void {
    for (const id of groupIds) {
      if (this.numbers.has(id)) continue;
      this.numbers.set(id, this.groups.push({ directory: this.directory(directoryId), isAlive: false, roles: new Map() }) - 1);
      this.unread.add(id);
    }
  }

  change({ directory_id, added, removed }: MappingsChanged): void {
    this.expect(
      added.map(({ group_id }) => group_id),
      directory_id,
    );
    for (const { group_id, role_id } of added) {
      this.groups[this.numbers.get(group_id)!]!.roles.set(role_id, null);
    }
    for (const { group_id, role_id } of removed) {
      const number = this.numbers.get(group_id);
      if (number === undefined) continue;
      const { roles } = this.groups[number]!;
      roles.delete(role_id);
      if (roles.size === 0) this.forget(group_id, number);
    }
  }

  /** The group is there. What rows say of its members follows, or has been told. */
  revive(groupId: string): void {
    const number = this.numbers.get(groupId);
    if (number !== undefined) this.groups[number]!.isAlive = true;
  }

  addMember(groupId: string, directoryUserId: string): void {
    const number = this.numbers.get(groupId);
    if (number !== undefined) this.members.add(number, this.managers.person(directoryUserId, this.groups[number]!.directory.id));
  }

  apply({ type, data }: DirectoryFact): void {
    switch (type) {
      case 'directory.created':
        return this.setDirectory({ id: data.id, follows: data.policy?.follows ?? 'off' });
      case 'directory.updated':
        return data.policy === undefined ? undefined : this.setDirectory({ id: data.id, follows: data.policy.follows });
      case 'dsync.deleted':
        return this.setDirectory({ id: data.id, follows: 'off' });
      case 'dsync.group.created':
        return this.revive(data.id);
      case 'dsync.group.deleted':
      case 'directory_group.ended':
        return this.endGroup(data.id);
      case 'directory_group.members_changed': {
        for (const person of data.removed) this.removeMember(data.id, person);
        for (const person of data.added) this.addMember(data.id, person);
      }
    }
  }

  private endGroup(id: string): void {
    const number = this.numbers.get(id);
    if (number === undefined) return;
    this.groups[number]!.isAlive = false;
    this.members.removeGroup(number);
  }

  private removeMember(groupId: string, directoryUserId: string): void {
    const [group, person] = [this.numbers.get(groupId), this.managers.numberOf(directoryUserId)];
    if (group !== undefined && person !== NONE) this.members.remove(group, person);
  }

  /** Its number is never that of another group. */
  private forget(id: string, number: number): void {
    this.numbers.delete(id);
    this.unread.delete(id);
    this.members.removeGroup(number);
  }

  private directory(id: string): Directory {
    const known = this.directories.get(id);
    if (known !== undefined) return known;
    const directory = { id, givesRoles: false };
    this.directories.set(id, directory);
    return directory;
  }
}
