import { Injectable } from '@nestjs/common';
import type { Erasable } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Log } from '#libs/platform/src/log';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { StoredPassword } from '../domain/stored-password.ts';
import { rehashPassword, userDecider, type PasswordSet, type StoredUser } from '../domain/user.decider.ts';
import { Passwords } from '../passwords/passwords.ts';

/** Records that are read at a time, backwards from the last. */
const SLICE = 50;

/** Whether a password is that of a user. Where there is no user, or no password, it takes as long as where it is wrong. */
@Injectable()
export class PasswordCheck {
  constructor(
    private readonly events: EventStore,
    private readonly passwords: Passwords,
    private readonly repository: Repository,
    private readonly log: Log,
  ) {}

  /** @throws DomainError `service_unavailable` where too many are checked already */
  async isRight({ environment, deadline }: RequestContext, user: StoredUser | null, password: string): Promise<boolean> {
    const stored = user === null ? null : await this.storedOf(environment, user);
    const isRight = await this.passwords.matches(stored ?? this.passwords.ofNobody(), password, deadline);
    return stored !== null && isRight;
  }

  /** Takes the place of a hash that came from elsewhere, once the password is known that it is of. What cannot be done now is done at the next sign-in. */
  async rehash(context: RequestContext, user: StoredUser, password: string): Promise<void> {
    try {
      const stored = await this.storedOf(context.environment, user);
      if (stored === null || stored.type === 'bcrypt-hmac') return;
      const rehashed = await this.passwords.hashed(password, context.deadline);
      await this.repository.transact(userDecider, context, user.id, rehashPassword(user.id, user.password_id!, rehashed));
    } catch (error) {
      this.log.warn('An imported password was not hashed anew; the next sign-in tries again.', { error, requestId: context.requestId });
    }
  }

  /** Only the log has it, sealed for the person. */
  private async storedOf(environment: string, { id, password_id }: StoredUser): Promise<StoredPassword | null> {
    if (password_id === null) return null;
    const stream = streamName('user', environment, id);
    for (let from: number | undefined; ;) {
      const records = await this.events.readBackwards(stream, SLICE, from);
      for (const { type, data } of records) {
        if (type !== 'user.password_set') continue;
        const set = data as Erasable<PasswordSet, 'password'>;
        if (set.password_id === password_id) return set.password;
      }
      const first = records.at(-1)?.version ?? 1;
      if (first <= 1) return null;
      from = first - 1;
    }
  }
}
