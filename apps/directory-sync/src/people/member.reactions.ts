import { Injectable } from '@nestjs/common';
import type { DirectoryGroup } from '#libs/contracts/src/directories/directory-group';
import { decidedWhile } from '#libs/event-sourcing/src/deciding/decided-while';
import type { Decision, Fact, FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import { leaseOf, type Reaction } from '#libs/event-sourcing/src/following/reaction';
import { EventStore, type Position } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Clock } from '#libs/platform/src/clock';
import { commandIdOf } from '#libs/platform/src/ids';
import { inTurns } from '#libs/platform/src/in-turns';
import { systemContext } from '#libs/platform/src/system-context';
import { Leases } from '#libs/read-models/src/leases';
import { directoryGroupDecider, toPublicGroup, type DirectoryGroupEvent } from '../domain/directory-group.decider.ts';
import { directoryUserDecider, tellOfGroups, type DirectoryUserEvent, type GroupNews, type ToldOfGroup } from '../domain/directory-user.decider.ts';
import { directoryDecider } from '../domain/directory.decider.ts';
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

interface News extends GroupNews {
  /** The change of members that it is of. */
  readonly of: Pick<Recorded, 'id' | 'position' | 'meta'>;
}

/** What one person is to be told, in the order in which it happened. */
interface Told {
  readonly environment: string;
  readonly userId: string;
  readonly news: readonly News[];
}

interface Untold extends Told {
  /** What of it they do not know yet. */
  readonly rest: readonly News[];
}

/** Somebody else has told the same person something meanwhile. */
class ToldMeanwhile extends Error {}

/**
 * Tells of each person who joined a group or left it, in the person's own stream: so nothing is told of anybody after their end. Asked again, it finds what was told. Who joined
 * while they were deleted is taken out. Of several changes each person is told at once: providers write one group after the other, and the same people are in many.
 */
@Injectable()
export class TellOfGroupMembers implements Reaction<MembersChanged> {
  readonly name = 'tell-of-directory-group-members';
  readonly handles = ['directory_group.members_changed'] as const;
  /** Up to here somebody may have told something; null: that is to be asked. */
  private doubtful: Position | null = null;

  constructor(
    private readonly repository: Repository,
    private readonly events: EventStore,
    private readonly cleaning: GroupCleaning,
    private readonly leases: Leases,
    private readonly clock: Clock,
  ) {}

  begin(): void {
    this.doubtful = null;
  }

  react(event: Recorded<MembersChanged>): Promise<void> {
    return this.reactTogether([event]);
  }

  async reactTogether(events: readonly Recorded<MembersChanged>[]): Promise<void> {
    const held = this.leases.holding(leaseOf(this));
    try {
      this.doubtful ??= await this.events.head();
      let some: Recorded<MembersChanged>[] = [];
      let ids = 0;
      for (const event of events) {
        const { added, removed } = event.data;
        if (ids + added.length + removed.length > MOST_TOGETHER && some.length > 0) {
          await this.tell(some, held);
          [some, ids] = [[], 0];
        }
        some.push(event);
        ids += added.length + removed.length;
      }
      await this.tell(some, held);
    } catch (error) {
      // Some of it is told, and comes again.
      this.doubtful = null;
      throw error;
    }
  }

  /** @throws what `held` throws */
  private async tell(events: readonly Recorded<MembersChanged>[], held: () => void): Promise<void> {
    const groups = await this.groupsOf(events);
    const people = new Map<string, Told & { readonly news: News[] }>();
    for (const event of events) {
      const { data, meta, version } = event;
      const { environment } = meta;
      const group = groups.get(`${environment} ${data.id}`);
      // With the group nobody is told of its members.
      if (group === undefined) continue;
      for (const [ids, isMember] of [[data.removed, false] as const, [data.added, true] as const])
        for (const userId of ids) {
          const key = `${environment} ${userId}`;
          const told = people.get(key) ?? { environment, userId, news: [] };
          people.set(key, told);
          told.news.push({ group, isMember, group_version: version, of: event });
        }
    }
    const gone = new Map<string, { readonly environment: string; readonly groupId: string; readonly userIds: Set<string> }>();
    // Looked for before anybody is told, so that a look puts nobody behind those who come after them.
    const isNews = events[0]!.position > this.doubtful!;
    const left = await inTurns([...people.values()], PEOPLE_AT_ONCE, (told) => (isNews ? Promise.resolve({ ...told, rest: told.news }) : this.untold(told)));
    await inTurns(left, PEOPLE_AT_ONCE, async (told) => {
      if (await this.tellOne(told, held)) return;
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

  /** False where that person is gone. */
  private async tellOne(given: Untold, held: () => void): Promise<boolean> {
    const { environment, userId } = given;
    for (let { rest } = given; ;) {
      try {
        for (const some of slicesOf(rest, MOST_OF_PERSON)) {
          const context = { ...systemContext(environment, this.clock.now()), commandId: commandOf(userId, some.at(-1)!) };
          const { state } = await this.repository.transact(directoryUserDecider, context, userId, decidedWhile(held, decidedOnce(tellOfGroups(some))));
          if (state?.object !== 'directory_user') return false;
        }
        return true;
      } catch (error) {
        if (!(error instanceof ToldMeanwhile)) throw error;
        ({ rest } = await this.untold(given));
      }
    }
  }

  /** Without what was told before this was broken off: whoever is as they were before is told again by no state. */
  private async untold(told: Told): Promise<Untold> {
    const { environment, userId, news } = told;
    const stream = streamName(directoryUserDecider.category, environment, userId);
    const commands = new Set<string>();
    const versions = new Map<string, number>();
    for (let from: number | undefined, isSince = true; isSince;) {
      const records = await this.events.readBackwards(stream, RECORDS_AT_ONCE, from);
      for (const { type, data, meta } of records) {
        commands.add(meta.commandId);
        if (type !== 'dsync.group.user_added' && type !== 'dsync.group.user_removed') continue;
        const { group, group_version = 0 } = data as ToldOfGroup;
        versions.set(group.id, Math.max(group_version, versions.get(group.id) ?? 0));
      }
      const last = records.at(-1);
      isSince = last !== undefined && last.version > 1 && last.position > news[0]!.of.position;
      from = last === undefined ? undefined : last.version - 1;
    }
    // What an earlier release told names its command alone, after the last of what it told.
    const after = news.findLastIndex((each) => commands.has(commandOf(userId, each)));
    return { ...told, rest: news.filter(({ group, group_version }, place) => place > after && group_version > (versions.get(group.id) ?? 0)) };
  }

  /** Those that are there, as they are now. With a directory its groups are gone. */
  private async groupsOf(events: readonly Recorded<MembersChanged>[]): Promise<ReadonlyMap<string, DirectoryGroup>> {
    const of = (idOf: (data: MembersChanged['data']) => string) =>
      new Map(events.map(({ data, meta: { environment } }) => [`${environment} ${idOf(data)}`, { environment, id: idOf(data) }]));
    const directories = inTurns([...of(({ directory_id }) => directory_id)], PEOPLE_AT_ONCE, async ([key, { environment, id }]) => {
      const directory = await this.repository.load(directoryDecider, environment, id);
      return directory?.object === 'deleted_directory' ? [key] : [];
    });
    const groups = inTurns([...of(({ id }) => id)], PEOPLE_AT_ONCE, async ([key, { environment, id }]) => {
      const group = await this.repository.load(directoryGroupDecider, environment, id);
      return group?.object === 'directory_group' ? [{ key, group, inDirectory: `${environment} ${group.directory_id}` }] : [];
    });
    await Promise.allSettled([directories, groups]);
    const gone = new Set((await directories).flat());
    const found = (await groups).flat().filter(({ inDirectory }) => !gone.has(inDirectory));
    return new Map(found.map(({ key, group }) => [key, toPublicGroup(group)]));
  }
}

/** Where somebody else was faster, what was told is to be looked for anew. */
function decidedOnce<State, Event extends Fact>(decide: Decision<State, Event>): Decision<State, Event> {
  let isDecided = false;
  return (state, context) => {
    if (isDecided) throw new ToldMeanwhile();
    isDecided = true;
    return decide(state, context);
  };
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
