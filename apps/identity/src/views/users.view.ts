import { primaryView } from '#libs/event-sourcing/src/views/view';
import type { Index } from '#libs/read-models/src/read-models';
import { foldedEmail, holderOfUser, PERSONAL, userDecider, type StoredUser, type UserEvent, type UserState } from '../domain/user.decider.ts';

/** Once a person is erased, what the log said of them reads as null. */
const keysOf = (text: string | null): readonly string[] => (text === null ? [] : [text]);

const indexes: readonly Index<StoredUser>[] = [
  { name: 'email', keys: ({ email }) => keysOf(email).map(foldedEmail) },
  { name: 'external_id', keys: ({ external_id }) => keysOf(external_id) },
];

/** Every living user. Rows hold what no answer shows: they are answered through `ShownUsers`. */
export const usersView = primaryView<UserState, UserEvent, StoredUser>({
  name: 'users',
  noun: 'User',
  version: 2,
  decider: userDecider,
  indexes,
  personal: {
    holders: ({ id }) => [holderOfUser(id)],
    columns: () => PERSONAL,
    idsOf: (holder) => (holder.startsWith(holderOfUser('')) ? [holder.slice(holderOfUser('').length)] : []),
  },
  rowOf: (state) => (state?.object === 'user' ? state : null),
});
