import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import type { LinkState } from '#libs/contracts/src/directories/directory-user';
import type { ManagedBy } from './membership.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

/** What has become of a person of a directory here: which user and membership are theirs. */
export type DirectoryLinkEvent =
  | Fact<'directory_link.changed', DirectoryLink>
  /** The person, or the directory, is gone. */
  | Fact<'directory_link.ended', { readonly id: string; readonly version: number }>;

/** As it is from now on. */
export interface DirectoryLink {
  /** Of the person in the directory: the key of the stream. */
  readonly id: string;
  readonly directory_id: string;
  readonly organization_id: string;
  /** Null while nothing has come of the person. */
  readonly link_state: LinkState | null;
  /** Of the membership, or who was deleted. */
  readonly user_id: string | null;
  /** Another user, who has the address. */
  readonly waits_for_user_id: string | null;
  /** The membership of that user in the organization. */
  readonly membership_id: string | null;
  /** Whether the person manages that membership; where not, and another person does, this one waits for it. */
  readonly is_manager: boolean;
  /** The invitation that was sent for the person. */
  readonly invitation_id: string | null;
  /** Which version of the person's stream this follows from. */
  readonly version: number;
}

export interface StoredDirectoryLink extends DirectoryLink {
  readonly object: 'directory_link';
  /** Counts what was recorded of it. */
  readonly revision: number;
}

interface EndedDirectoryLink extends Pick<DirectoryLink, 'id' | 'organization_id'> {
  readonly object: 'ended_directory_link';
  readonly revision: number;
}

export type DirectoryLinkState = StoredDirectoryLink | EndedDirectoryLink | null;

function evolve(state: DirectoryLinkState, event: DirectoryLinkEvent): DirectoryLinkState {
  const revision = (state?.revision ?? 0) + 1;
  switch (event.type) {
    case 'directory_link.changed':
      return { object: 'directory_link', ...event.data, revision };
    case 'directory_link.ended':
      return state && { object: 'ended_directory_link', id: state.id, organization_id: state.organization_id, revision };
  }
}

export const directoryLinkDecider: Decider<DirectoryLinkState, DirectoryLinkEvent> = {
  category: 'directory_link',
  foldVersion: 1,
  initial: null,
  sealed: { 'directory_link.changed': null, 'directory_link.ended': null },
  evolve,
  organization: (state) => state?.organization_id,
  toPublicEvent: () => null,
};

type Decide = Decision<DirectoryLinkState, DirectoryLinkEvent>;

/** Nothing where somebody else has recorded something since `revision`: whoever finds that begins anew. */
export function changeLink(revision: number, link: DirectoryLink): Decide {
  return (state) => {
    if ((state?.revision ?? 0) !== revision || (state?.object === 'directory_link' && isSameLink(state, link))) return [];
    return [{ type: 'directory_link.changed', data: link }];
  };
}

/** Nothing where there was none, or it has ended. */
export function endLink(id: string, version: number): Decide {
  return (state) => (state?.object === 'directory_link' ? [{ type: 'directory_link.ended', data: { id, version } }] : []);
}

export function isSameLink(stored: StoredDirectoryLink, link: DirectoryLink): boolean {
  return Object.entries(link).every(([field, value]) => stored[field as keyof DirectoryLink] === value);
}

export function managedByOf({ id, directory_id }: Pick<DirectoryLink, 'id' | 'directory_id'>): ManagedBy {
  return { directory_id, directory_user_id: id };
}
