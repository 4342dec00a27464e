import { Injectable } from '@nestjs/common';
import type { DirectoryGroup } from '#libs/contracts/src/directories/directory-group';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Clock } from '#libs/platform/src/clock';
import { commandIdOf } from '#libs/platform/src/ids';
import { inTurns } from '#libs/platform/src/in-turns';
import { systemContext } from '#libs/platform/src/system-context';
import { directoryGroupDecider, toPublicGroup, type DirectoryGroupEvent } from '../domain/directory-group.decider.ts';
import { directoryUserDecider, tellOfGroups, type DirectoryUserEvent } from '../domain/directory-user.decider.ts';
import { slicesOf } from '../readers/group-members.ts';
import { GroupCleaning } from './group-cleaning.ts';

/** People who are told at once. */
const PEOPLE_AT_ONCE = 64;
/** Ids in the changes that are told of together. */
const MOST_TOGETHER = 10_000;
/** Of what one person is told at once: far less than an append takes. */
const MOST_OF_PERSON = 50;
const RECORDS_AT_ONCE = 100;

type MembersChanged = FactOf<DirectoryGroupEvent, 'directory_group.members_changed'>;

interface News {
  readonly group: DirectoryGroup;
  readonly isMember: boolean;
  /** The change of members that it is of. */
  readonly of: Pick<Recorded, 'id' | 'position' | 'meta'>;
}

/** What one person is to be told, in the order in which it happened. */
interface Told {
  readonly environment: string;
  readonly userId: string;
  readonly news: News[];
}

interface Untold extends Told {
  /** What of it they do not know yet. */
  readonly rest: readonly News[];
  /** Whether each of it is of a group of its own. */
  readonly isOnceOfEach: boolean;
}

/**
 * Tells of each person who joined a group or left it, in the person's own stream: so nothing is told of anybody after their end. Asked again, it finds what was told. Who joined
 * while they were deleted is taken out. Of several changes each person is told at once: providers write one group after the other, and the same people are in many.
 */
@Injectable()
export class TellOfGroupMembers implements Reaction<MembersChanged> {
  readonly name = 'tell-of-directory-group-members';
  readonly handles = ['directory_group.members_changed'] as const;

  constructor(
    private readonly repository: Repository,
    private readonly events: EventStore,
    private readonly cleaning: GroupCleaning,
    private readonly clock: Clock,
  ) {}

  react(event: Recorded<MembersChanged>): Promise<void> {
    return this.tell([event]);
  }

  async reactTogether(events: readonly Recorded<MembersChanged>[]): Promise<void> {
    let some: Recorded<MembersChanged>[] = [];
    let ids = 0;
    for (const event of events) {
      const { added, removed } = event.data;
      if (ids + added.length + removed.length > MOST_TOGETHER && some.length > 0) {
        await this.tell(some);
        [some, ids] = [[], 0];
      }
      some.push(event);
      ids += added.length + removed.length;
    }
    await this.tell(some);
  }

  private async tell(events: readonly Recorded<MembersChanged>[]): Promise<void> {
    const groups = await this.groupsOf(events);
    const people = new Map<string, Told>();
    for (const event of events) {
      const { data, meta } = event;
      const { environment } = meta;
      const group = groups.get(`${environment} ${data.id}`);
      // With the group nobody is told of its members.
      if (group === undefined) continue;
      for (const [ids, isMember] of [[data.removed, false] as const, [data.added, true] as const])
        for (const userId of ids) {
          const key = `${environment} ${userId}`;
          const told = people.get(key) ?? { environment, userId, news: [] };
          people.set(key, told);
          told.news.push({ group, isMember, of: event });
        }
    }
    const gone = new Map<string, { readonly environment: string; readonly groupId: string; readonly userIds: Set<string> }>();
    // Looked for before anybody is told, so that a look puts nobody behind those who come after them.
    const left = await inTurns([...people.values()], PEOPLE_AT_ONCE, (told) => this.untold(told));
    await inTurns(left, PEOPLE_AT_ONCE, async (told) => {
      if (await this.tellOne(told)) return;
      const { environment, userId, news } = told;
      for (const { group, isMember } of news) {
        if (!isMember) continue;
        const key = `${environment} ${group.id}`;
        const absent = gone.get(key) ?? { environment, groupId: group.id, userIds: new Set() };
        gone.set(key, absent);
        absent.userIds.add(userId);
      }
    });
    for (const { environment, groupId, userIds } of gone.values()) await this.cleaning.drop(environment, groupId, [...userIds]);
  }

  /** Without what was told before this was broken off. Whoever is as they were before is told again by no state: it is looked for what was told. */
  private async untold(told: Told): Promise<Untold> {
    const { environment, userId, news } = told;
    const isOnceOfEach = new Set(news.map(({ group }) => group.id)).size === news.length;
    return { ...told, rest: isOnceOfEach ? news : news.slice(await this.toldOf(environment, userId, news)), isOnceOfEach };
  }

  /** False where that person is gone. */
  private async tellOne({ environment, userId, rest, isOnceOfEach }: Untold): Promise<boolean> {
    for (const some of slicesOf(rest, MOST_OF_PERSON)) {
      const own = systemContext(environment, this.clock.now());
      const context = isOnceOfEach ? own : { ...own, commandId: commandOf(userId, some.at(-1)!) };
      const { state } = await this.repository.transact(directoryUserDecider, context, userId, tellOfGroups(some));
      if (state?.object !== 'directory_user') return false;
    }
    return true;
  }

  /** How many of these a person was told before this was broken off: with the last of them the command is named that told them. */
  private async toldOf(environment: string, userId: string, news: readonly News[]): Promise<number> {
    const stream = streamName(directoryUserDecider.category, environment, userId);
    const commands = new Set<string>();
    for (let from: number | undefined, isSince = true; isSince;) {
      const records = await this.events.readBackwards(stream, RECORDS_AT_ONCE, from);
      for (const { meta } of records) commands.add(meta.commandId);
      const last = records.at(-1);
      isSince = last !== undefined && last.version > 1 && last.position > news[0]!.of.position;
      from = last === undefined ? undefined : last.version - 1;
    }
    return news.findLastIndex((each) => commands.has(commandOf(userId, each))) + 1;
  }

  /** Those that are there, as they are now. */
  private async groupsOf(events: readonly Recorded<MembersChanged>[]): Promise<ReadonlyMap<string, DirectoryGroup>> {
    const wanted = new Map(events.map(({ data: { id }, meta: { environment } }) => [`${environment} ${id}`, { environment, id }]));
    const found = await inTurns([...wanted], PEOPLE_AT_ONCE, async ([key, { environment, id }]) => {
      const group = await this.repository.load(directoryGroupDecider, environment, id);
      return group?.object === 'directory_group' ? [[key, toPublicGroup(group)] as const] : [];
    });
    return new Map(found.flat());
  }
}

function commandOf(userId: string, { of }: News): string {
  return commandIdOf(of.meta.at, userId, of.id, 'told');
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
