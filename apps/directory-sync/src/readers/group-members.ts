import { Injectable } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { EventStore, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import {
  directoryGroupDecider,
  requireScimGroup,
  type DirectoryGroupEvent,
  type MembersChanged,
  type StoredDirectoryGroup,
} from '../domain/directory-group.decider.ts';
import { directoryUserDecider, type StoredDirectoryUser } from '../domain/directory-user.decider.ts';
import { directoryGroupMembersView, memberId, userOfMember, type DirectoryGroupMember } from '../views/directory-groups.view.ts';
import { directoryUsersView } from '../views/directory-users.view.ts';

const MEMBERS_CHANGED = 'directory_group.members_changed' satisfies DirectoryGroupEvent['type'];
const ROWS_AT_ONCE = 1_000;
/** How many records of a group are read behind its rows: most often they are not behind, and each may name thousands. */
const FIRST_RECORDS = 1;
const MOST_RECORDS = 20;
/** A group that changes all the time is shown as it was found at last. */
const TRIES = 3;

/** Who is in a group: as rows have it, and what its stream has recorded since over that. */
@Injectable()
export class GroupMembers {
  private readonly members: Table<DirectoryGroupMember>;
  private readonly people: Table<StoredDirectoryUser>;

  constructor(
    private readonly repository: Repository,
    private readonly events: EventStore,
    readModels: ReadModels,
  ) {
    this.members = readModels.table(tableOf(directoryGroupMembersView));
    this.people = readModels.table(tableOf(directoryUsersView));
  }

  /** Which of these people are in a group, no earlier than the call. */
  async among(environment: string, groupId: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const shown = await this.members.checkpoint();
    const found = new Set<string>();
    for (const some of slicesOf(ids)) {
      const pairs = await this.members.presentAmong(
        environment,
        some.map((user_id) => memberId({ group_id: groupId, user_id })),
      );
      for (const pair of pairs) found.add(userOfMember(pair));
    }
    const asked = new Set(ids);
    return this.followed(environment, groupId, { shown, found, isAsked: (id) => asked.has(id) });
  }

  /** Everybody in a group, also who is gone and was not taken out yet; no earlier than the call. */
  async all(environment: string, groupId: string): Promise<ReadonlySet<string>> {
    const shown = await this.members.checkpoint();
    const found = new Set<string>();
    const where = { index: 'group', values: [groupId] };
    for (let after: string | undefined, more = true; more;) {
      const page = await this.members.idPage(environment, { where, limit: ROWS_AT_ONCE, after });
      for (const id of page.ids) found.add(userOfMember(id));
      after = page.ids.at(-1);
      more = page.hasAfter;
    }
    return this.followed(environment, groupId, { shown, found, isAsked: () => true });
  }

  /** A group and its members of one moment: those who are there. @throws ScimError where there is no such group */
  async withGroup(environment: string, groupId: string): Promise<{ readonly group: StoredDirectoryGroup; readonly members: readonly string[] }> {
    let group = requireScimGroup(await this.repository.load(directoryGroupDecider, environment, groupId));
    for (let tries = 0; ; tries++) {
      const members = await this.living(environment, [...(await this.all(environment, groupId))]);
      const after = requireScimGroup(await this.repository.load(directoryGroupDecider, environment, groupId));
      if (after.version === group.version || tries === TRIES) return { group: after, members };
      group = after;
    }
  }

  /** Those of these people who were not deleted. */
  async living(environment: string, ids: readonly string[]): Promise<readonly string[]> {
    const living: string[] = [];
    for (const some of slicesOf(ids)) {
      const present = await this.people.presentAmong(environment, some);
      for (const id of some) if (present.has(id)) living.push(id);
    }
    return living;
  }

  /** Whether all of these people are in the directory. */
  async areIn(environment: string, directoryId: string, ids: readonly string[]): Promise<boolean> {
    for (const some of slicesOf(ids)) {
      const rows = await this.people.getMany(environment, some);
      for (const [place, row] of rows.entries()) {
        // A row may be written a moment after its event.
        const user = row === null ? await this.repository.load(directoryUserDecider, environment, some[place]!) : contentOf(row);
        if (user?.object !== 'directory_user' || user.directory_id !== directoryId) return false;
      }
    }
    return true;
  }

  private async followed(
    environment: string,
    groupId: string,
    { shown, found, isAsked }: { readonly shown: string; readonly found: Set<string>; readonly isAsked: (id: string) => boolean },
  ): Promise<ReadonlySet<string>> {
    for (const record of await this.recordedSince(environment, groupId, shown)) {
      if (record.type !== MEMBERS_CHANGED) continue;
      const { added, removed } = record.data as MembersChanged;
      for (const id of removed) found.delete(id);
      for (const id of added) if (isAsked(id)) found.add(id);
    }
    return found;
  }

  /** The oldest first. */
  private async recordedSince(environment: string, groupId: string, position: string): Promise<readonly RecordedEvent[]> {
    const stream = streamName(directoryGroupDecider.category, environment, groupId);
    const records: RecordedEvent[] = [];
    for (let [from, count] = [undefined as number | undefined, FIRST_RECORDS]; ; count = MOST_RECORDS) {
      const page = await this.events.readBackwards(stream, count, from);
      const news = page.filter((record) => record.position > position);
      records.push(...news);
      const last = page.at(-1);
      if (last === undefined || news.length < page.length || last.version === 1) return records.reverse();
      from = last.version - 1;
    }
  }
}

export function slicesOf<Item>(items: readonly Item[], size = ROWS_AT_ONCE): readonly (readonly Item[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));
}
