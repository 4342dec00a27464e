import { primaryView } from '#libs/event-sourcing/src/views/view';
import type { Index } from '#libs/read-models/src/read-models';
import {
  directoryUserDecider,
  directoryUserOfHolder,
  emailOf,
  emailsOf,
  holderOfDirectoryUser,
  idpIdOf,
  PERSONAL,
  type DirectoryUserEvent,
  type DirectoryUserState,
  type StoredDirectoryUser,
} from '../domain/directory-user.decider.ts';
import { foldedValue, textOf } from '../domain/scim-values.decider.ts';
import { beginningsOf, datesOf, inDirectory } from './index-keys.ts';

/** Once a person is erased, nothing of them is found. */
const keysOf = (
  { directory_id, attributes }: StoredDirectoryUser,
  of: (attributes: NonNullable<StoredDirectoryUser['attributes']>) => readonly (string | null)[],
): readonly string[] =>
  attributes === null ? [] : [...new Set(of(attributes))].flatMap((value) => (value === null ? [] : [inDirectory(directory_id, value)]));
const foldedOf = (value: unknown): string | null => {
  const text = textOf(value);
  return text === null ? null : foldedValue(text);
};

const indexes: readonly Index<StoredDirectoryUser>[] = [
  { name: 'directory', keys: ({ directory_id }) => [directory_id] },
  { name: 'idp_id', keys: (row) => (row.attributes === null ? [] : [inDirectory(row.directory_id, idpIdOf(row))]) },
  { name: 'user_name', keys: (row) => keysOf(row, ({ userName }) => [foldedOf(userName)]) },
  { name: 'user_name_beginning', keys: (row) => keysOf(row, ({ userName }) => beginningsOf(userName)) },
  { name: 'display_name', keys: (row) => keysOf(row, ({ displayName }) => [foldedOf(displayName)]) },
  { name: 'display_name_beginning', keys: (row) => keysOf(row, ({ displayName }) => beginningsOf(displayName)) },
  { name: 'email', keys: (row) => keysOf(row, (attributes) => [emailOf(attributes), ...emailsOf(attributes).map(({ value }) => value)].map(foldedOf)) },
  { name: 'active', keys: ({ directory_id, active }) => [inDirectory(directory_id, String(active))] },
  { name: 'modified', keys: ({ directory_id, updated_at }) => datesOf(updated_at).map((date) => inDirectory(directory_id, date)) },
];

/** Every person of a directory who was not deleted; they are dead once their directory is. */
export const directoryUsersView = primaryView<DirectoryUserState, DirectoryUserEvent, StoredDirectoryUser>({
  name: 'directory_users',
  noun: 'Directory user',
  version: 1,
  decider: directoryUserDecider,
  indexes,
  personal: {
    holders: ({ id }) => [holderOfDirectoryUser(id)],
    columns: () => PERSONAL,
    idsOf: (holder) => {
      const id = directoryUserOfHolder(holder);
      return id === null ? [] : [id];
    },
  },
  rowOf: (state) => (state?.object === 'directory_user' ? state : null),
});
