import { serialiserOf } from '#libs/contracts/src/serialiser';
import { User } from '#libs/contracts/src/users/user';
import { primaryView } from '#libs/event-sourcing/src/views/view';
import { contentOf, type Index, type StoredRow } from '#libs/read-models/src/read-models';
import { foldedEmail, holderOfUser, PERSONAL, toPublicUser, userDecider, type StoredUser, type UserEvent, type UserState } from '../domain/user.decider.ts';

/** Once a person is erased, what the log said of them reads as null. */
const keysOf = (text: string | null): readonly string[] => (text === null ? [] : [text]);

const indexes: readonly Index<StoredUser>[] = [
  { name: 'email', keys: ({ email }) => keysOf(email).map(foldedEmail) },
  { name: 'external_id', keys: ({ external_id }) => keysOf(external_id) },
];

/** Every living user. Rows hold what no answer shows: they are answered through `toPublicUserText`. */
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

const serialise = serialiserOf(User);

/** What is answered of a row. */
export function toPublicUserText(row: StoredRow<StoredUser>): string {
  return serialise(toPublicUser(contentOf(row)));
}
