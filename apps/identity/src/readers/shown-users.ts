import { Injectable } from '@nestjs/common';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { User } from '#libs/contracts/src/users/user';
import { contentOf, type StoredRow } from '#libs/read-models/src/read-models';
import { Stamps, type Stamp } from '#libs/read-models/src/stamps';
import { toPublicUser, type StoredUser } from '../domain/user.decider.ts';

/** When a user signed in last: no fact, since a person who signs in is not changed by it. */
export const LAST_SIGN_IN: Stamp = { name: 'user.last_sign_in_at' };

const serialise = serialiserOf(User);

/** Users as every answer shows them: what the log says of them, and when they signed in last. */
@Injectable()
export class ShownUsers {
  constructor(private readonly stamps: Stamps) {}

  async one(environment: string, user: StoredUser): Promise<User> {
    const [shown] = await this.all(environment, [user]);
    return shown!;
  }

  /** In their order. */
  async all(environment: string, users: readonly StoredUser[]): Promise<readonly User[]> {
    const times = await this.stamps.latest(
      LAST_SIGN_IN,
      environment,
      users.map(({ id }) => id),
    );
    return users.map((user, index) => ({ ...toPublicUser(user), last_sign_in_at: times[index]! }));
  }

  async text(environment: string, row: StoredRow<StoredUser>): Promise<string> {
    return serialise(await this.one(environment, contentOf(row)));
  }

  /** In their order; null for what is not there. */
  async texts(environment: string, rows: readonly (StoredRow<StoredUser> | null)[]): Promise<readonly (string | null)[]> {
    const users = await this.all(
      environment,
      rows.flatMap((row) => (row === null ? [] : [contentOf(row)])),
    );
    let place = 0;
    return rows.map((row) => (row === null ? null : serialise(users[place++]!)));
  }
}
