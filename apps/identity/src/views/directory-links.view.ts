import type { DirectoryUserEvent } from '#apps/directory-sync/src/domain/directory-user.decider';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import { primaryView, type View } from '#libs/event-sourcing/src/views/view';
import { directoryLinkDecider, type DirectoryLinkEvent, type DirectoryLinkState, type StoredDirectoryLink } from '../domain/directory-link.decider.ts';

const keysOf = (id: string | null): readonly string[] => (id === null ? [] : [id]);

/** What has become of the people of directories. */
export const directoryLinksView = primaryView<DirectoryLinkState, DirectoryLinkEvent, StoredDirectoryLink>({
  name: 'directory_links',
  version: 1,
  decider: directoryLinkDecider,
  indexes: [
    { name: 'directory', keys: ({ directory_id }) => [directory_id] },
    { name: 'membership', keys: ({ membership_id }) => keysOf(membership_id) },
    { name: 'user', keys: ({ user_id, waits_for_user_id }) => [...new Set([...keysOf(user_id), ...keysOf(waits_for_user_id)])] },
    { name: 'invitation', keys: ({ invitation_id }) => keysOf(invitation_id) },
    { name: 'unverified', keys: ({ organization_id, link_state }) => (link_state === 'domain_not_verified' ? [organization_id] : []) },
  ],
  rowOf: (state) => (state?.object === 'directory_link' ? state : null),
});

/** A person who is in a directory. */
export interface PersonOfDirectory {
  readonly id: string;
  readonly directory_id: string;
}

type Fact = FactOf<DirectoryUserEvent, 'dsync.user.created' | 'dsync.user.deleted' | 'directory_user.ended'>;

/** Who is in which directory: a policy that is switched on or off goes through them. */
export const peopleOfDirectoriesView: View<PersonOfDirectory, Fact> = {
  name: 'people_of_directories',
  version: 1,
  awaited: false,
  personal: null,
  handles: ['dsync.user.created', 'dsync.user.deleted', 'directory_user.ended'],
  indexes: [{ name: 'directory', keys: ({ directory_id }) => [directory_id] }],
  idsOf: ({ data }) => [data.id],
  evolve: (_row, { type, data: { directory_id } }, id) => (type === 'dsync.user.created' ? { id, directory_id } : null),
};
