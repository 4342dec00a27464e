import { Injectable } from '@nestjs/common';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { Clock } from '#libs/platform/src/clock';
import { inTurns } from '#libs/platform/src/in-turns';
import { systemContext } from '#libs/platform/src/system-context';
import { directoryGroupDecider, toPublicGroup, type DirectoryGroupEvent } from '../domain/directory-group.decider.ts';
import { directoryUserDecider, tellOfGroup, type DirectoryUserEvent } from '../domain/directory-user.decider.ts';
import { GroupCleaning } from './group-cleaning.ts';

const PEOPLE_AT_ONCE = 64;

type MembersChanged = FactOf<DirectoryGroupEvent, 'directory_group.members_changed'>;

/**
 * Tells of each person who joined a group or left it, in the person's own stream: so nothing is told of anybody after their end. Asked again, it finds what was told. Who joined
 * while they were deleted is taken out.
 */
@Injectable()
export class TellOfGroupMembers implements Reaction<MembersChanged> {
  readonly name = 'tell-of-directory-group-members';
  readonly handles = ['directory_group.members_changed'] as const;

  constructor(
    private readonly repository: Repository,
    private readonly cleaning: GroupCleaning,
    private readonly clock: Clock,
  ) {}

  async react({ data: { id, added, removed }, meta: { environment } }: Recorded<MembersChanged>): Promise<void> {
    const group = await this.repository.load(directoryGroupDecider, environment, id);
    // With the group nobody is told of its members.
    if (group?.object !== 'directory_group') return;
    const shown = toPublicGroup(group);
    const gone: string[] = [];
    const tell = async (userId: string, isMember: boolean): Promise<void> => {
      const context = systemContext(environment, this.clock.now());
      const { state } = await this.repository.transact(directoryUserDecider, context, userId, tellOfGroup(shown, isMember));
      if (isMember && state?.object !== 'directory_user') gone.push(userId);
    };
    await inTurns(removed, PEOPLE_AT_ONCE, (userId) => tell(userId, false));
    await inTurns(added, PEOPLE_AT_ONCE, (userId) => tell(userId, true));
    if (gone.length > 0) await this.cleaning.drop(environment, id, gone);
  }
}

type Ended = FactOf<DirectoryUserEvent, 'dsync.user.deleted'> | FactOf<DirectoryGroupEvent, 'dsync.group.deleted' | 'directory_group.ended'>;

/** Whoever is gone is in no group, and nobody in one that is gone: also where a process died before it said so. */
@Injectable()
export class CleanGroupMembers implements Reaction<Ended> {
  readonly name = 'clean-directory-group-members';
  readonly handles = ['dsync.user.deleted', 'dsync.group.deleted', 'directory_group.ended'] as const;

  constructor(
    private readonly cascade: Cascade,
    private readonly cleaning: GroupCleaning,
  ) {}

  async react(event: Recorded<Ended>): Promise<void> {
    await this.cascade.reached(event);
    if (event.type === 'dsync.user.deleted') await this.cleaning.leaveGroups(event.meta.environment, event.data.id);
    else await this.cleaning.emptyGroup(event.meta.environment, event.data.id);
  }
}
