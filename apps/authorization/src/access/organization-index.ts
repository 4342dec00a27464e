import type { DirectoryUserEvent } from '#apps/directory-sync/src/domain/directory-user.decider';
import type { DirectoryLinkEvent } from '#apps/identity/src/domain/directory-link.decider';
import type { GroupEvent } from '#apps/identity/src/domain/group.decider';
import type { ManagedBy, MembershipEvent } from '#apps/identity/src/domain/membership.decider';
import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import { effectiveRoles } from '#libs/contracts/src/roles/effective-roles.decider';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { changesClosings } from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import { KnownClosings } from '#libs/event-sourcing/src/deciding/guards/known-closings';
import { START, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { GroupRoleAssignmentEvent } from '../domain/group-role-assignment.decider.ts';
import type { MappingsChanged, OrganizationRolesEvent } from '../domain/organization-roles.decider.ts';
import type { ResourceEvent } from '../domain/resource.events.ts';
import type { RoleAssignmentEvent } from '../domain/role-assignment.decider.ts';
import { ResourceTree, type Node } from '../domain/resource-tree.ts';
import type { MembershipRow, StoredSuccessor } from '../views/access.views.ts';
import { RoleTable, type EnvironmentModel, type Permission, type Role } from './environment-model.ts';
import { GrantTable, groupSubject, membershipSubject, type Subject } from './grant-table.ts';
import { GroupMembers } from './group-members.ts';
import { grown, IdTable, NO_INT32, NO_UINT8 } from './id-table.ts';
import { Managers } from './managers.ts';
import { MappedRoles, type DirectoryFact } from './mapped-roles.ts';
import { MembershipOrder } from './membership-order.ts';

const ROLE_MAPPINGS_CHANGED = 'role_mappings.changed' satisfies OrganizationRolesEvent['type'];
const STATUSES = ['ended', 'active', 'inactive', 'pending'] as const;
const [ENDED, ACTIVE] = [0, 1];
const NONE = -1;
/** In place of the number of a role: there are several, to be found elsewhere. */
const SEVERAL = -2;
/** In the order of priority, the roles of an organization come after those of its environment. */
const BELOW_SHARED_ROLES = 2 ** 40;

/** How a membership comes by a permission on a resource: by what is given on the resource itself, or on one above it. */
export type Way = 'direct' | 'indirect';

export interface Membership {
  readonly id: string;
  readonly user_id: string;
  readonly status: 'active' | 'inactive' | 'pending';
  /** Ids of the groups that it is in, also while it is not active. */
  readonly groups: readonly string[];
}

export interface Group {
  readonly id: string;
  /** Ids of the memberships that are in it, whatever their status. */
  readonly members: readonly string[];
}

/** One thing that gives a permission. */
export interface Chain {
  readonly role: Role;
  readonly source: 'organization_role' | 'direct' | 'group';
  /** Where the role comes through a group. */
  readonly group: string | null;
  /** Where the role was given. */
  readonly node: Node;
}

/** What is recorded of a role that was given on a resource. */
export interface GrantFact {
  readonly role: { readonly id: string };
  readonly resource: { readonly id: string };
}

/**
 * Everything that access in one organization depends on, in memory: its resources, memberships, groups and roles, and who was given what where. Numbers instead
 * of objects; the app's README says what that costs.
 *
 * Only what follows the log changes it (`AccessIndex`). Whoever asks for it uses it before the next `await`, and asks for it again after.
 */
export class OrganizationIndex {
  readonly tree: ResourceTree;
  /** Whether there is such an organization, and it was not deleted. */
  isAlive = false;
  /** Which of its resources and of its own roles somebody is about to delete unless they are used. */
  readonly closings = new KnownClosings(START);
  private readonly customRoles = new RoleTable(BELOW_SHARED_ROLES);
  private customRolesVersion = 0;
  /** Roles that somebody has, by the number that stands for each. */
  private readonly roles: Role[] = [];
  private readonly roleNumbers = new Map<string, number>();
  private readonly memberships = new IdTable('om');
  /** Of the numbers of memberships, by id. */
  readonly order = new MembershipOrder(this.memberships);
  private states = NO_UINT8;
  private gone = 0;
  /** The number of the organization role, NONE or SEVERAL. */
  private roleOf = NO_INT32;
  private readonly severalRoles = new Map<number, readonly number[]>();
  private readonly users = new IdTable('user');
  private userOf = NO_INT32;
  /** The latest membership of each user. */
  private membershipOf = NO_INT32;
  private readonly groups = new IdTable('group');
  private readonly endedGroups = new Set<number>();
  readonly members = new GroupMembers();
  /** People of directories who decide about memberships. */
  readonly managers = new Managers();
  readonly grants = new GrantTable();
  readonly mapped: MappedRoles;

  constructor(
    readonly id: string,
    readonly environment: string,
    readonly model: EnvironmentModel,
  ) {
    this.tree = new ResourceTree(id);
    this.mapped = new MappedRoles({ roleById: (role) => this.roleById(role), mayBeSeveral: () => this.model.mayBeSeveral }, this.managers);
    this.tree.onRemoved = (node) => this.grants.removeNode(node);
  }

  /** Memory that it takes up, nearly. */
  get bytes(): number {
    const { tree, memberships, states, roleOf, users, userOf, membershipOf, groups, members, managers, grants, mapped } = this;
    const numbers = states.byteLength + roleOf.byteLength + userOf.byteLength + membershipOf.byteLength;
    const few = 2_000 + 500 * this.roles.length + 100 * this.severalRoles.size + 40 * this.endedGroups.size;
    return (
      few +
      numbers +
      tree.bytes +
      memberships.bytes +
      users.bytes +
      groups.bytes +
      members.bytes +
      managers.bytes +
      grants.bytes +
      mapped.bytes +
      this.order.bytes
    );
  }

  /** How many there are of what takes up memory. */
  get sizes(): { readonly resources: number; readonly memberships: number; readonly members: number; readonly grants: number } {
    return { resources: this.tree.size, memberships: this.memberships.size, members: this.members.size, grants: this.grants.size };
  }

  /** Memberships and groups that are over keep their places. */
  get ended(): { readonly gone: number; readonly live: number } {
    const gone = this.gone + this.endedGroups.size;
    return { gone, live: this.memberships.size + this.groups.size - gone };
  }

  /** The numbers of all memberships that live. */
  *memberNumbers(): Generator<number> {
    for (let number = 0; number < this.memberships.size; number++) if (this.states[number] !== ENDED) yield number;
  }

  hashOfMembership(membership: number): number {
    return this.memberships.hashOf(membership);
  }

  /** A live role that can be given here: of the environment, or of this organization. */
  roleBySlug(slug: string): Role | null {
    return this.customRoles.bySlug(slug) ?? this.model.roleBySlug(slug);
  }

  roleById(id: string): Role | null {
    return this.customRoles.byId(id) ?? this.model.roleById(id);
  }

  /** Null where it never was, or it, its user or the organization is gone. */
  membership(id: string): Membership | null {
    const number = this.membershipNumber(id);
    if (number === NONE) return null;
    const recorded = STATUSES[this.states[number]!] as Membership['status'];
    const status = recorded === 'active' && !this.isActive(number) ? 'inactive' : recorded;
    return { id, user_id: this.users.idOf(this.userOf[number]!), status, groups: this.groupsOf(number).map((group) => this.groups.idOf(group)) };
  }

  /** Null where it never was, or is gone. */
  group(id: string): Group | null {
    const number = this.groupNumber(id);
    if (number === NONE) return null;
    return { id, members: [...this.members.of(number)].map((membership) => this.memberships.idOf(membership)) };
  }

  /** Whether a live membership or group has the role, on any live resource or as an organization role. */
  isAssigned(roleId: string): boolean {
    const number = this.roleNumbers.get(roleId);
    if (number === undefined) return false;
    for (let membership = 0; membership < this.memberships.size; membership++)
      if (this.states[membership] !== ENDED && this.rolesOf(membership).includes(number)) return true;
    return this.grants.hasRole(number);
  }

  /** Whether a live membership or group has a live role on the node itself. */
  hasAssignmentsOn(node: Node): boolean {
    const { grants } = this;
    for (let grant = grants.firstOn(node); grant !== NONE; grant = grants.nextOn(grant)) if (this.roles[grants.roleOf(grant)]!.isAlive) return true;
    return false;
  }

  /** The number of a live membership, or -1. */
  membershipNumber(id: string): number {
    return this.live(this.memberships.numberOf(id));
  }

  /** Of the id that `readId` read last. */
  membershipNumberOfRead(hash: number): number {
    return this.live(this.memberships.numberOfRead(hash));
  }

  /** As is recorded of it, and as its directory says, which is recorded of it later. */
  isActive(membership: number): boolean {
    return this.states[membership] === ACTIVE && this.managers.allow(membership);
  }

  membershipId(membership: number): string {
    return this.memberships.idOf(membership);
  }

  /** Walks from the node to the top, and at each step asks for what the membership and its groups have there. */
  allows(membership: number, permission: Permission, node: Node): boolean {
    if (!this.isActive(membership)) return false;
    if (this.holdsByRole(membership, permission)) return true;
    const { grants, members, roles, tree } = this;
    const { number } = permission;
    const subject = membershipSubject(membership);
    const hasGrants = grants.hasOf(subject);
    const firstPair = members.firstPair(membership);
    if (!hasGrants && firstPair === NONE) return false;
    for (let at = node; at >= 0; at = tree.parentOf(at)) {
      if (!grants.hasOn(at)) continue;
      if (hasGrants && grants.some(subject, at, roles, number)) return true;
      for (let pair = firstPair; pair !== NONE; pair = members.nextPair(pair))
        if (grants.some(groupSubject(members.groupOf(pair)), at, roles, number)) return true;
    }
    return false;
  }

  /** As `allows`, by one way alone. */
  allowsBy(way: Way, membership: number, permission: Permission, node: Node): boolean {
    if (!this.isActive(membership)) return false;
    const isRoot = node === this.tree.root;
    if (isRoot === (way === 'direct') && this.holdsByRole(membership, permission)) return true;
    if (way === 'direct') return this.isGrantedOn(membership, node, permission);
    const parent = this.tree.parentOf(node);
    return parent >= 0 && this.allows(membership, permission, parent);
  }

  /** Whether the membership or one of its groups was given a role with the permission on the very node. */
  isGrantedOn(membership: number, node: Node, { number }: Permission): boolean {
    const { grants, roles } = this;
    return grants.hasOn(node) && this.subjectsOf(membership).some((subject) => grants.some(subject, node, roles, number));
  }

  /** Whether the role that was given there holds the permission. */
  isGrantedBy(grant: number, { number }: Permission): boolean {
    return this.roles[this.grants.roleOf(grant)]!.grants(number);
  }

  /** Marks the active ones whose organization role holds the permission. */
  markByRole(marks: Uint8Array, permission: Permission): void {
    for (let membership = 0; membership < marks.length; membership++)
      if (this.isActive(membership) && this.holdsByRole(membership, permission)) marks[membership] = 1;
  }

  /** Who has what the membership has: itself and its groups. */
  subjectsOf(membership: number): Subject[] {
    return [membershipSubject(membership), ...this.groupsOf(membership).map(groupSubject)];
  }

  /** The permissions that a membership has on a node. */
  permissionsOn(membership: number, node: Node): Permission[] {
    return [...this.model.permissions()].filter((permission) => this.allows(membership, permission, node));
  }

  /** The roles that a membership has in the organization, and what they permit there: nothing where it is not active. Its role assignments do not count. */
  organizationAccess(membership: number): { readonly roles: readonly Role[]; readonly permissions: readonly Permission[] } {
    if (!this.isActive(membership)) return { roles: [], permissions: [] };
    const roles = this.effectiveRolesOf(membership);
    return { roles, permissions: [...this.model.permissions()].filter(({ number }) => roles.some((role) => role.grants(number))) };
  }

  /** What gives the permission, nearest first: none where the membership is not active. */
  *chains(membership: number, permission: Permission, node: Node): Generator<Chain> {
    if (!this.isActive(membership)) return;
    for (const chain of this.rolesOnTheWay(membership, node)) if (chain.role.grants(permission.number)) yield chain;
  }

  /** Every live role that the membership has on the node or above it, nearest first, whatever its status. */
  *rolesOnTheWay(membership: number, node: Node): Generator<Chain> {
    for (let at = node; at >= 0; at = this.tree.parentOf(at)) {
      if (at === this.tree.root) for (const role of this.effectiveRolesOf(membership)) yield { role, source: 'organization_role', group: null, node: at };
      for (const subject of this.subjectsOf(membership)) yield* this.chainsOf(subject, at);
    }
  }

  /** Every live role that the membership has anywhere, or its groups have. */
  *rolesAnywhere(membership: number): Generator<Chain> {
    for (const role of this.effectiveRolesOf(membership)) yield { role, source: 'organization_role', group: null, node: this.tree.root };
    for (const subject of this.subjectsOf(membership))
      for (let grant = this.grants.firstOf(subject); grant !== NONE; grant = this.grants.nextOf(grant)) {
        const role = this.roles[this.grants.roleOf(grant)]!;
        if (role.isAlive) yield this.chain(subject, role, this.grants.nodeOf(grant));
      }
  }

  // Changes: by what follows the log, and by loading.

  addMembership({ id, user_id, status, roles, managed_by }: MembershipRow): number {
    const { size } = this.memberships;
    const number = this.memberships.add(id);
    if (number === size) this.order.add();
    else if (this.states[number] === ENDED) this.gone--;
    this.states = grown(this.states, number + 1);
    this.roleOf = grown(this.roleOf, number + 1);
    this.userOf = grown(this.userOf, number + 1);
    const user = this.users.add(user_id);
    this.userOf[number] = user;
    this.membershipOf = grown(this.membershipOf, user + 1);
    this.membershipOf[user] = number;
    this.setStatus(number, status);
    this.setRoles(number, roles);
    this.managers.manages(managed_by, number);
    return number;
  }

  addSuccessor({ id, directory_id, membership_id }: Pick<StoredSuccessor, 'id' | 'directory_id' | 'membership_id'>): void {
    const membership = this.membershipNumber(membership_id);
    // What is not here has ended: nobody waits for what is recorded after.
    if (membership === NONE) this.managers.waitsNoMore(id);
    else this.managers.waits(id, directory_id, membership);
  }

  addGroup(id: string): void {
    this.endedGroups.delete(this.groups.add(id));
  }

  addMember(groupId: string, membershipId: string): void {
    const [group, membership] = [this.groupNumber(groupId), this.membershipNumber(membershipId)];
    if (group !== NONE && membership !== NONE) this.members.add(group, membership);
  }

  addGrant(of: 'membership' | 'group', id: string, { role, resource }: GrantFact): void {
    const subject = this.subjectOf(of, id);
    const node = this.tree.nodeById(resource.id);
    const number = this.numberOfRole(role.id);
    // What is not here is gone for ever: whatever is recorded of a thing comes after the thing.
    if (subject !== null && node !== undefined && number !== null) this.grants.add(subject, node, number);
  }

  endUser(id: string): void {
    const user = this.users.numberOf(id);
    if (user !== NONE) this.endMembership(this.membershipOf[user]!);
  }

  /** Folds the next event of this organization. */
  apply(record: RecordedEvent): void {
    // Types tell the data; a record of any other type is passed over.
    const event = record as Recorded<AccessFact>;
    switch (event.type) {
      case 'organization.created':
        this.isAlive = true;
        return;
      case 'organization.deleted':
        this.isAlive = false;
        return;
      case 'organization_membership.created': {
        const { roles, managed_by = null, ...membership } = event.data;
        this.addMembership({ ...membership, managed_by, roles: roles.map(({ id }) => id) });
        return;
      }
      case 'organization_membership.updated':
        return this.updateMembership(event.data);
      case 'organization_membership.deleted':
        return this.endMembership(this.memberships.numberOf(event.data.id));
      case 'directory.created':
      case 'directory.updated':
      case 'dsync.group.created':
      case 'dsync.group.deleted':
      case 'directory_group.ended':
      case 'directory_group.members_changed':
        return this.mapped.apply(event);
      case 'dsync.deleted':
        if (event.data.memberships === 'end') this.managers.endDirectory(event.data.id);
        return this.mapped.apply(event);
      case 'dsync.user.created':
      case 'dsync.user.updated': {
        const { id, directory_id, active } = event.data;
        return active ? this.managers.present(id) : this.managers.absent({ id, directory_id, is_gone: false });
      }
      case 'dsync.user.deleted': {
        const { id, directory_id } = event.data;
        return this.managers.absent({ id, directory_id, is_gone: true });
      }
      case 'directory_link.changed': {
        const { is_manager, membership_id, ...link } = event.data;
        return is_manager || membership_id === null ? this.managers.waitsNoMore(link.id) : this.addSuccessor({ ...link, membership_id });
      }
      case 'directory_link.ended':
        return this.managers.waitsNoMore(event.data.id);
      case 'group.created':
        return this.addGroup(event.data.id);
      case 'group.deleted':
        return this.endGroup(this.groups.numberOf(event.data.id));
      case 'group.member_added': {
        const { group_id, organization_membership_id } = event.data;
        return this.addMember(group_id, organization_membership_id);
      }
      case 'group.member_removed': {
        const { group_id, organization_membership_id } = event.data;
        const [group, membership] = [this.groups.numberOf(group_id), this.memberships.numberOf(organization_membership_id)];
        return group === NONE || membership === NONE ? undefined : this.members.remove(group, membership);
      }
      case 'role_assignment.created':
        return this.addGrant('membership', event.data.organization_membership_id, event.data);
      case 'group_role_assignment.created':
        return this.addGrant('group', event.data.group_id, event.data);
      case 'role_assignment.deleted':
        return this.removeGrant('membership', event);
      case 'group_role_assignment.deleted':
        return this.removeGrant('group', event);
      case 'organization_role.created':
      case 'organization_role.updated':
      case 'organization_role.deleted':
      case 'organization_role.closing':
      case 'organization_role.reopened':
      case 'role_mappings.changed':
        return this.applyRole(event);
      case 'resource.created':
      case 'resource.updated':
      case 'resource.moved':
      case 'resource.deleted':
      case 'resource.closing':
      case 'resource.reopened':
        if (changesClosings(event.type)) this.closings.apply(event);
        this.tree.apply(event, event.version);
    }
  }

  /** Groups of directories that give roles from this event on, and of which nothing is known: it is told once their members were read. */
  unknownGroupsIn({ type, data, version }: Pick<RecordedEvent, 'type' | 'data' | 'version'>): readonly string[] {
    return type === ROLE_MAPPINGS_CHANGED && version > this.customRolesVersion ? this.mapped.unknownIn(data as MappingsChanged) : [];
  }

  /** Rows were read, and what was recorded since is applied, up to a position. */
  loaded(position: Position = START): this {
    this.tree.loaded();
    this.closings.knownFrom(position);
    return this;
  }

  /** An event of this organization's roles, which are folded from their stream before everything else is read. */
  applyRole(event: Pick<RecordedEvent, 'type' | 'data' | 'version' | 'position' | 'meta'>): void {
    const { type, data, version } = event;
    if (version <= this.customRolesVersion) return;
    this.customRolesVersion = version;
    if (changesClosings(type)) this.closings.apply(event);
    if (type === ROLE_MAPPINGS_CHANGED) return this.mapped.change(data as MappingsChanged);
    if (type === 'organization_role.closing' || type === 'organization_role.reopened') return;
    this.customRoles.apply(type, data as { readonly id: string }, (permission) => this.model.numberOf(permission));
  }

  private updateMembership({
    id,
    status,
    roles,
    managed_by,
  }: {
    readonly id: string;
    readonly status?: string;
    readonly roles?: readonly { readonly id: string }[];
    readonly managed_by?: ManagedBy | null;
  }): void {
    const number = this.membershipNumber(id);
    if (number === NONE) return;
    if (status !== undefined) this.setStatus(number, status);
    if (managed_by !== undefined) this.managers.manages(managed_by, number);
    if (roles !== undefined)
      this.setRoles(
        number,
        roles.map((role) => role.id),
      );
  }

  private endMembership(number: number): void {
    if (number === NONE || this.states[number] === ENDED) return;
    this.states[number] = ENDED;
    this.gone++;
    this.setRoles(number, []);
    this.grants.removeSubject(membershipSubject(number));
    this.members.removeMembership(number);
    this.managers.manages(null, number);
  }

  private endGroup(number: number): void {
    if (number === NONE) return;
    this.endedGroups.add(number);
    this.grants.removeSubject(groupSubject(number));
    this.members.removeGroup(number);
  }

  private removeGrant(of: 'membership' | 'group', { stream }: RecordedEvent): void {
    // The key of its stream says what it was: <who>.<role>.<resource>.
    const [who, role, resource] = stream.slice(stream.lastIndexOf('-') + 1).split('.') as [string, string, string];
    const subject = this.subjectOf(of, who);
    const node = this.tree.nodeById(resource);
    const number = this.roleNumbers.get(role);
    if (subject !== null && node !== undefined && number !== undefined) this.grants.remove(subject, node, number);
  }

  private subjectOf(of: 'membership' | 'group', id: string): Subject | null {
    const number = of === 'membership' ? this.membershipNumber(id) : this.groupNumber(id);
    return number === NONE ? null : of === 'membership' ? membershipSubject(number) : groupSubject(number);
  }

  private live(number: number): number {
    return number === NONE || this.states[number] === ENDED ? NONE : number;
  }

  private groupNumber(id: string): number {
    const number = this.groups.numberOf(id);
    return number === NONE || this.endedGroups.has(number) ? NONE : number;
  }

  private groupsOf(membership: number): number[] {
    const groups: number[] = [];
    for (let pair = this.members.firstPair(membership); pair !== NONE; pair = this.members.nextPair(pair)) groups.push(this.members.groupOf(pair));
    return groups;
  }

  private *chainsOf(subject: Subject, node: Node): Generator<Chain> {
    for (const number of this.grants.rolesOf(subject, node)) {
      const role = this.roles[number]!;
      if (role.isAlive) yield this.chain(subject, role, node);
    }
  }

  private chain(subject: Subject, role: Role, node: Node): Chain {
    const isGroup = (subject & 1) === 1;
    return { role, source: isGroup ? 'group' : 'direct', group: isGroup ? this.groups.idOf(subject >> 1) : null, node };
  }

  private setStatus(membership: number, status: string): void {
    this.states[membership] = Math.max(ENDED, STATUSES.indexOf(status as (typeof STATUSES)[number]));
  }

  private setRoles(membership: number, ids: readonly string[]): void {
    const numbers = ids.map((id) => this.numberOfRole(id)).filter((number) => number !== null);
    if (numbers.length > 1) this.severalRoles.set(membership, numbers);
    else this.severalRoles.delete(membership);
    this.roleOf[membership] = numbers.length > 1 ? SEVERAL : (numbers[0] ?? NONE);
  }

  private rolesOf(membership: number): readonly number[] {
    const role = this.roleOf[membership]!;
    return role === SEVERAL ? this.severalRoles.get(membership)! : role === NONE ? [] : [role];
  }

  /** Whose last role is gone has the default one, from then on. */
  private effectiveRolesOf(membership: number): readonly Role[] {
    const manual = this.rolesOf(membership).map((role) => this.roles[role]!);
    return effectiveRoles({ manual, mapped: this.mapped.of(membership) }, ({ isAlive }) => !isAlive, this.model.defaultRole);
  }

  private holdsByRole(membership: number, { number }: Permission): boolean {
    const mapped = this.mapped.of(membership);
    if (mapped.length > 0) return mapped.some((each) => each.grants(number));
    const role = this.roleOf[membership]!;
    if (role === NONE) return this.model.defaultRole.grants(number);
    if (role !== SEVERAL && this.roles[role]!.isAlive) return this.roles[role]!.grants(number);
    return this.effectiveRolesOf(membership).some((each) => each.grants(number));
  }

  /** Null for a role that is gone, as far as is known. */
  private numberOfRole(id: string): number | null {
    const known = this.roleNumbers.get(id);
    if (known !== undefined) return known;
    const role = this.roleById(id);
    if (role === null) return null;
    const number = this.roles.push(role) - 1;
    this.roleNumbers.set(id, number);
    return number;
  }
}

/** What access depends on. */
type AccessFact =
  | FactOf<OrganizationEvent, 'organization.created' | 'organization.deleted'>
  | MembershipEvent
  | DirectoryFact
  | FactOf<DirectoryUserEvent, 'dsync.user.created' | 'dsync.user.updated' | 'dsync.user.deleted'>
  | DirectoryLinkEvent
  | FactOf<GroupEvent, 'group.created' | 'group.deleted' | 'group.member_added' | 'group.member_removed'>
  | RoleAssignmentEvent
  | GroupRoleAssignmentEvent
  | OrganizationRolesEvent
  | ResourceEvent;
