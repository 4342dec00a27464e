import type { DirectoryGroup } from '#libs/contracts/src/directories/directory-group';
import type { Claim, Decider, Decision, Fact, NewPublicEvent } from '#libs/event-sourcing/src/deciding/decider';
import { requireVersion, type ExpectedVersion } from './directory-user.decider.ts';
import type { DirectoryEvent } from './directory.decider.ts';
import { noSuchResource, ScimError } from './scim-domain-error.ts';
import { foldedValue, isSameValue, previousOf, textOf, type Attributes } from './scim-values.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type DirectoryGroupEvent =
  | Fact<'dsync.group.created', DirectoryGroupCreated>
  | Fact<'dsync.group.updated', Ended & { readonly attributes: Attributes }>
  | Fact<'dsync.group.deleted', Ended>
  /** Its directory is gone: nobody is told of each group. */
  | Fact<'directory_group.ended', Ended>
  /** One record for many people; what is told of each follows in their own streams. After the end of the group: what is left of its rows goes. */
  | Fact<'directory_group.members_changed', MembersChanged>;

interface Ended {
  readonly id: string;
  readonly directory_id: string;
}

/** `attributes`: as SCIM has them, without members. */
type DirectoryGroupCreated = Pick<DirectoryGroup, 'id' | 'directory_id' | 'organization_id'> & { readonly attributes: Attributes };

export interface MembersChanged extends Ended, MembersChange {}

/** Ids of people, each in one of the two. */
export interface MembersChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

export interface StoredDirectoryGroup extends DirectoryGroupCreated {
  readonly object: 'directory_group';
  /** Counts its changes, those of its members too: the version that SCIM shows. */
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
  /** As SCIM has it: changes of its members count. */
  readonly modified_at: string;
}

interface EndedDirectoryGroup extends Pick<DirectoryGroup, 'id' | 'directory_id' | 'organization_id'> {
  readonly object: 'ended_directory_group';
}

export type DirectoryGroupState = StoredDirectoryGroup | EndedDirectoryGroup | null;

function evolve(state: DirectoryGroupState, event: DirectoryGroupEvent & { readonly at: string }): DirectoryGroupState {
  const { at } = event;
  if (event.type === 'dsync.group.created')
    return state ?? { object: 'directory_group', ...event.data, version: 1, created_at: at, updated_at: at, modified_at: at };
  if (state?.object !== 'directory_group') return state;
  switch (event.type) {
    case 'dsync.group.updated':
      return { ...state, attributes: event.data.attributes, version: state.version + 1, updated_at: at, modified_at: at };
    case 'directory_group.members_changed':
      return { ...state, version: state.version + 1, modified_at: at };
    case 'dsync.group.deleted':
    case 'directory_group.ended':
      return { object: 'ended_directory_group', id: state.id, directory_id: state.directory_id, organization_id: state.organization_id };
  }
}

function claims(state: DirectoryGroupState): readonly Claim[] {
  if (state?.object !== 'directory_group') return [];
  const refusal = (): ScimError => new ScimError(409, 'uniqueness', 'Another Group of this directory has this displayName.');
  return [{ kind: 'directory_group.display_name', value: `${state.directory_id} ${foldedValue(textOf(state.attributes['displayName']) ?? '')}`, refusal }];
}

function toPublicEvent(event: DirectoryGroupEvent, before: DirectoryGroupState, after: DirectoryGroupState): NewPublicEvent | null {
  const names = [event.type];
  switch (event.type) {
    case 'dsync.group.created':
      return { payload: announced(after), names };
    case 'dsync.group.updated': {
      const [earlier, later] = [announced(before), announced(after)];
      return earlier === null || later === null ? null : { payload: { ...later, previous_attributes: previousAttributes(earlier, later) }, names };
    }
    case 'dsync.group.deleted':
      return { payload: announced(before), names };
    case 'directory_group.ended':
    case 'directory_group.members_changed':
      return null;
  }
}

function previousAttributes(before: DirectoryGroup, after: DirectoryGroup): Attributes {
  const { updated_at: _, raw_attributes: earlier, ...one } = before;
  const { updated_at: __, raw_attributes: later, ...other } = after;
  return { ...previousOf({ ...one }, { ...other }), raw_attributes: previousOf(earlier, later) };
}

function announced(state: DirectoryGroupState): DirectoryGroup | null {
  return state?.object === 'directory_group' ? toPublicGroup(state) : null;
}

export function toPublicGroup({ id, directory_id, organization_id, attributes, created_at, updated_at }: StoredDirectoryGroup): DirectoryGroup {
  return {
    object: 'directory_group',
    id,
    idp_id: textOf(attributes['externalId']) ?? id,
    directory_id,
    organization_id,
    name: textOf(attributes['displayName']) ?? '',
    raw_attributes: attributes,
    created_at,
    updated_at,
  };
}

export const directoryGroupDecider: Decider<DirectoryGroupState, DirectoryGroupEvent> = {
  category: 'directory_group',
  foldVersion: 1,
  initial: null,
  sealed: {
    'dsync.group.created': null,
    'dsync.group.updated': null,
    'dsync.group.deleted': null,
    'directory_group.ended': null,
    'directory_group.members_changed': null,
  },
  evolve,
  claims,
  organization: (state) => state?.organization_id,
  toPublicEvent,
  hangsOn: {
    reaction: 'end-directory-groups-with-their-directory',
    parents: [{ ends: 'dsync.deleted' satisfies DirectoryEvent['type'], index: 'directory', category: 'directory', field: 'directory_id' }],
    begins: ['dsync.group.created'],
    end: recordEnd,
  },
};

type Decide = Decision<DirectoryGroupState, DirectoryGroupEvent>;

/** Another change came between the look at the members and the decision on them: whoever asks looks again. */
export class MembersOutrun extends Error {}

/** Members as they are at a version of the group. */
export interface SeenMembers {
  readonly version: number;
  readonly change: MembersChange;
}

/** `members`: those that it begins with, who are there. */
export function createDirectoryGroup(
  directory: Pick<DirectoryGroup, 'organization_id'> & { readonly id: string },
  attributes: Attributes,
  members: readonly string[],
): Decide {
  return (state, context) => {
    const id = context.id('directory_group');
    if (state === null) {
      const ended = { id, directory_id: directory.id };
      return [
        { type: 'dsync.group.created', data: { ...ended, organization_id: directory.organization_id, attributes } },
        ...(members.length === 0 ? [] : [{ type: 'directory_group.members_changed', data: { ...ended, added: members, removed: [] } } as const]),
      ];
    }
    // A repeated command meets what it made; once that was deleted, it stays deleted.
    requireScimGroup(state);
    return [];
  };
}

/**
 * Attributes as `change` makes them, and members as they were seen to have to change.
 * @throws MembersOutrun where somebody was faster; ScimError where `change` refuses, or another version is there than was expected
 */
export function changeDirectoryGroup(expected: ExpectedVersion, change: (attributes: Attributes) => Attributes, seen: SeenMembers | null): Decide {
  return (state) => {
    const group = requireScimGroup(state);
    requireVersion(group, expected);
    const attributes = change(group.attributes);
    const ended = { id: group.id, directory_id: group.directory_id };
    const events: DirectoryGroupEvent[] = [];
    if (!isSameValue(attributes, group.attributes)) events.push({ type: 'dsync.group.updated', data: { ...ended, attributes } });
    if (seen !== null && seen.change.added.length + seen.change.removed.length > 0) {
      if (seen.version !== group.version) throw new MembersOutrun();
      events.push({ type: 'directory_group.members_changed', data: { ...ended, ...seen.change } });
    }
    return events;
  };
}

/** Nothing where it is gone. @throws ScimError where it never was, or another version is there than was expected */
export function deleteDirectoryGroup(expected: ExpectedVersion): Decide {
  return (state) => {
    if (state?.object === 'ended_directory_group') return [];
    const group = requireScimGroup(state);
    requireVersion(group, expected);
    return [{ type: 'dsync.group.deleted', data: { id: group.id, directory_id: group.directory_id } }];
  };
}

/** Somebody who is gone is in no group any more, nor anybody in a group that is gone. */
export function dropMembers(removed: readonly string[]): Decide {
  return (state) =>
    state === null || removed.length === 0
      ? []
      : [{ type: 'directory_group.members_changed', data: { id: state.id, directory_id: state.directory_id, added: [], removed } }];
}

/** What follows where its directory is gone. */
function recordEnd(id: string): Decide {
  return (state) => (state?.object === 'directory_group' ? [{ type: 'directory_group.ended', data: { id, directory_id: state.directory_id } }] : []);
}

/** @throws ScimError where it never was or is no more */
export function requireScimGroup(state: DirectoryGroupState): StoredDirectoryGroup {
  if (state?.object !== 'directory_group') throw noSuchResource('Group');
  return state;
}
