import type { Group, GroupMember } from '#libs/contracts/src/groups/group';
import type { NewPublicEvent, Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, notFound } from '#libs/platform/src/domain-error';

import type { OrganizationEvent } from './organization.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type GroupEvent =
  | Fact<'group.created', Pick<Group, 'id' | 'organization_id' | 'name' | 'description'>>
  | Fact<'group.updated', { readonly id: string } & Partial<Pick<Group, 'name' | 'description'>>>
  | Fact<'group.deleted', { readonly id: string }>
  | Fact<'group.member_added', GroupMember>
  | Fact<'group.member_removed', GroupMember>;

export type GroupState = StoredGroup | DeletedGroup | null;

/** The group with its members, whom nobody else is shown. */
export interface StoredGroup extends Group {
  /** Ids of memberships, each with a space before it: a row of thousands is read and written as one text. */
  readonly members: string;
}

interface DeletedGroup extends Pick<Group, 'id' | 'organization_id'> {
  readonly object: 'deleted_group';
}

function evolve(state: GroupState, event: GroupEvent & { readonly at: string }): GroupState {
  if (event.type === 'group.created') return state ?? { object: 'group', ...event.data, created_at: event.at, updated_at: event.at, members: '' };
  if (state?.object !== 'group') return state;
  switch (event.type) {
    case 'group.updated':
      return { ...state, ...event.data, updated_at: event.at };
    case 'group.deleted':
      return { object: 'deleted_group', id: state.id, organization_id: state.organization_id };
    case 'group.member_added': {
      const { organization_membership_id } = event.data;
      return hasMember(state, organization_membership_id) ? state : { ...state, members: `${state.members} ${organization_membership_id}` };
    }
    case 'group.member_removed':
      return { ...state, members: state.members.replace(` ${event.data.organization_membership_id}`, '') };
  }
}

function toPublicEvent(event: GroupEvent, before: GroupState, after: GroupState): NewPublicEvent | null {
  const names = [event.type];
  switch (event.type) {
    case 'group.created':
    case 'group.updated':
      return { payload: toPublicGroup(after), names };
    case 'group.deleted':
      return { payload: toPublicGroup(before), names };
    case 'group.member_added':
    case 'group.member_removed':
      return { payload: event.data, names };
  }
}

export const groupDecider: Decider<GroupState, GroupEvent> = {
  category: 'group',
  foldVersion: 1,
  initial: null,
  sealed: { 'group.created': null, 'group.updated': null, 'group.deleted': null, 'group.member_added': null, 'group.member_removed': null },
  evolve,
  organization: (state) => state?.organization_id,
  toPublicEvent,
  hangsOn: {
    reaction: 'delete-groups-with-their-organization',
    parents: [{ ends: 'organization.deleted' satisfies OrganizationEvent['type'], index: 'organization', category: 'organization', field: 'organization_id' }],
    begins: ['group.created'],
    end: recordDeletion,
  },
};

type Decide = Decision<GroupState, GroupEvent>;

export function createGroup({ organization_id, name, description = null }: Pick<Group, 'organization_id' | 'name'> & Partial<Group>): Decide {
  return (state, context) => {
    const id = context.id('group');
    if (state === null) return [{ type: 'group.created', data: { id, organization_id, name, description } }];
    // A repeated command meets what it made; once that was deleted, it stays deleted.
    requireGroup(state, id);
    return [];
  };
}

export function updateGroup(id: string, given: Partial<Pick<Group, 'name' | 'description'>>): Decide {
  return (state) => {
    const group = requireGroup(state, id);
    const changed = (['name', 'description'] as const).filter((field) => given[field] !== undefined && given[field] !== group[field]);
    if (changed.length === 0) return [];
    return [{ type: 'group.updated', data: { id, ...Object.fromEntries(changed.map((field) => [field, given[field]])) } }];
  };
}

/** Its members are no members any more; no event tells of each. */
export function deleteGroup(id: string): Decide {
  return (state) => {
    if (state?.object === 'deleted_group') return [];
    requireGroup(state, id);
    return [{ type: 'group.deleted', data: { id } }];
  };
}

/** What follows where its organization is gone. */
export function recordDeletion(): Decide {
  return (state) => (state?.object === 'group' ? [{ type: 'group.deleted', data: { id: state.id } }] : []);
}

export function addMember(id: string, membershipId: string, limit: number): Decide {
  return changeMembers(id, { add: [membershipId], remove: [] }, limit);
}

/** Removals come first: they make room. No membership is in both lists. */
export function changeMembers(id: string, { add, remove }: { readonly add: readonly string[]; readonly remove: readonly string[] }, limit: number): Decide {
  return (state) => {
    const group = requireGroup(state, id);
    const added = add.filter((membership) => !hasMember(group, membership));
    const removed = remove.filter((membership) => hasMember(group, membership));
    if (added.length > 0 && memberCount(group) - removed.length + added.length > limit)
      throw new DomainError('invalid', 'group_membership_limit_exceeded', `A group has at most ${limit} members.`);
    const change = (type: 'group.member_added' | 'group.member_removed', memberships: readonly string[]): readonly GroupEvent[] =>
      memberships.map((organization_membership_id) => ({ type, data: { group_id: id, organization_membership_id } }));
    return [...change('group.member_removed', removed), ...change('group.member_added', added)];
  };
}

/** One that is not in the group, or whose group is gone, needs no removal. */
export function removeMember(id: string, membershipId: string): Decide {
  return (state) => {
    if (state?.object !== 'group' || !hasMember(state, membershipId)) return [];
    return [{ type: 'group.member_removed', data: { group_id: id, organization_membership_id: membershipId } }];
  };
}

/** @throws DomainError `entity_not_found` where it never was or is no more */
export function requireGroup(state: GroupState, id: string): StoredGroup {
  if (state?.object !== 'group') throw notFound('Group', id);
  return state;
}

function hasMember({ members }: StoredGroup, membershipId: string): boolean {
  return `${members} `.includes(` ${membershipId} `);
}

function memberCount({ members }: StoredGroup): number {
  return members.split(' ').length - 1;
}

/** Without its members. */
function toPublicGroup(state: GroupState): Group | null {
  if (state?.object !== 'group') return null;
  const { members: _, ...group } = state;
  return group;
}
