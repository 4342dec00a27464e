import { Injectable } from '@nestjs/common';
import type { UserEvent } from '#apps/identity/src/domain/user.decider';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { Clock } from '#libs/platform/src/clock';
import { systemContext } from '#libs/platform/src/system-context';
import { directoryUserDecider, directoryUserOfHolder, eraseDirectoryUser } from '../domain/directory-user.decider.ts';

type Erased = FactOf<UserEvent, 'user.erased'>;

/** With a user who is erased go the people of directories whom they are linked to: nothing is known of those any more, and their product makes new ones. */
@Injectable()
export class EndErasedPeople implements Reaction<Erased> {
  readonly name = 'end-erased-directory-users';
  readonly handles = ['user.erased'] as const;

  constructor(
    private readonly repository: Repository,
    private readonly clock: Clock,
  ) {}

  async react({ data, meta: { environment } }: Recorded<Erased>): Promise<void> {
    for (const holder of data.holders) {
      const id = directoryUserOfHolder(holder);
      if (id !== null) await this.repository.transact(directoryUserDecider, systemContext(environment, this.clock.now()), id, eraseDirectoryUser());
    }
  }
}
