import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Blobs } from '#libs/blobs/src/blobs';
import type { DirectoryRunError, DirectoryRunGroups, DirectoryRunUsers } from '#libs/contracts/src/directories/directory-run';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { TimeSlicer } from '#libs/platform/src/time-slicer';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { StoredDirectoryGroup } from '../domain/directory-group.decider.ts';
import type { StoredDirectoryUser } from '../domain/directory-user.decider.ts';
import { groupNamed, ListingFault, type ListedGroup, type ListedUser } from '../domain/listing-entry.decider.ts';
import { foldedValue, isSameValue, textOf } from '../domain/scim-values.decider.ts';
import { GroupMembers } from '../readers/group-members.ts';
import { directoryCountsView, NOTHING_COUNTED, type DirectoryCounts } from '../views/directory-counts.view.ts';
import { directoryGroupsView } from '../views/directory-groups.view.ts';
import { directoryUsersView } from '../views/directory-users.view.ts';
import { inDirectory } from '../views/index-keys.ts';
import { NO_GROUPS, NO_USERS, type StoredRun } from './directory-runs.ts';
import { FixedTexts, KnownKeys, NumberList, Numbers } from './known-keys.ts';
import { linesOf, type ListingFormat, type ListingHead, type ListingLine } from './listing-lines.ts';
import { createdId, RunFailed } from './run-contexts.ts';

const USERS_AT_ONCE = 200;
const MOST_PEOPLE = 2_000_000;
const MOST_GROUPS = 100_000;
const ULID_LENGTH = 26;

/** What a listing says, as far as it has to be remembered: some dozens of bytes for each person. It is made anew where a run goes on after a kill. */
export interface Compared {
  readonly users: DirectoryRunUsers;
  readonly groups: DirectoryRunGroups;
  readonly there: DirectoryCounts;
  readonly saysGroups: boolean;
  readonly userKeys: KnownKeys;
  /** The id of each person, also of those who are new, without its prefix. */
  readonly userIds: FixedTexts;
  /** Those who are there. */
  readonly knownUsers: Numbers;
  readonly changedUsers: Numbers;
  /** Where they stand, and where groups do: no other line has to be read again. */
  readonly changedUserLines: Numbers;
  readonly groupLines: Numbers;
  readonly groupKeys: KnownKeys;
  readonly changedGroups: Numbers;
  /** By name, of CSV: the people in them. */
  readonly namedGroups: ReadonlyMap<string, NumberList>;
}

/** A group of a listing with the ids of its people. */
export interface GroupOfListing {
  readonly ordinal: number;
  readonly line: number;
  readonly group: ListedGroup;
  readonly memberIds: readonly string[];
}

interface Watch {
  /** Told after some lines. */
  readonly onLines: (line: number) => Promise<void>;
  readonly onError: (error: DirectoryRunError) => void;
}

/** Compares a listing with its directory, and changes nothing. */
@Injectable()
export class ListingComparison {
  private readonly userRows: Table<StoredDirectoryUser>;
  private readonly groupRows: Table<StoredDirectoryGroup>;
  private readonly counts: Table<DirectoryCounts>;

  constructor(
    private readonly blobs: Blobs,
    private readonly members: GroupMembers,
    readModels: ReadModels,
  ) {
    this.userRows = readModels.table(tableOf(directoryUsersView));
    this.groupRows = readModels.table(tableOf(directoryGroupsView));
    this.counts = readModels.table(tableOf(directoryCountsView));
  }

  /** @throws RunFailed */
  async compare(run: StoredRun, watch: Watch): Promise<Compared> {
    const row = await this.counts.get(run.environment, run.directory_id);
    const there = row === null ? NOTHING_COUNTED : contentOf(row);
    const head: ListingHead = { saysGroups: false };
    const userNames = new KnownKeys();
    const groupNames = new KnownKeys();
    const [userKeys, groupKeys] = [new KnownKeys(), new KnownKeys()];
    const [knownUsers, changedUsers, changedGroups] = [new Numbers(), new Numbers(), new Numbers()];
    const [changedUserLines, groupLines] = [new Numbers(), new Numbers()];
    const userIds = new FixedTexts(ULID_LENGTH);
    const namedGroups = new Map<string, NumberList>();
    const counts = { ...NO_USERS };
    let matched = 0;
    let waiting: { readonly line: number; readonly ordinal: number; readonly user: ListedUser }[] = [];

    const compareWaiting = async (): Promise<void> => {
      const found = await this.usersByKey(
        run,
        waiting.map(({ user }) => user.key),
      );
      for (const { line, ordinal, user } of waiting) {
        const known = found.get(user.key) ?? [];
        matched += known.length;
        const [first] = known;
        userIds.set(ordinal, (first?.id ?? createdId(run, 'directory_user', ordinal)).slice(-ULID_LENGTH));
        if (first !== undefined) knownUsers.add(ordinal);
        if (first !== undefined && isSameValue(first.attributes, user.attributes)) counts.unchanged += 1;
        else {
          changedUsers.add(ordinal);
          changedUserLines.add(line);
          counts[first === undefined ? 'created' : 'updated'] += 1;
        }
      }
      waiting = [];
    };

    for await (const { line, entry } of this.lines(run, head)) {
      const wrong = (code: string, message: string): void => watch.onError({ line, code, message });
      if (entry === null) continue;
      if (entry instanceof ListingFault) {
        wrong(entry.code, entry.message);
      } else if (entry.type === 'group') {
        groupLines.add(line);
        if (!groupKeys.add(entry.key).isNew) wrong('given_twice', 'Another line has this group.');
        if (!groupNames.add(foldedValue(textOf(entry.attributes['displayName']) ?? '')).isNew) wrong('given_twice', 'Another group has this name.');
      } else {
        const { ordinal, isNew } = userKeys.add(entry.key);
        if (!isNew) wrong('given_twice', 'Another line has this person.');
        if (!userNames.add(foldedValue(textOf(entry.attributes['userName']) ?? '')).isNew)
          wrong('given_twice', 'Another person has this username, or this address where there is no username.');
        if (isNew) waiting.push({ line, ordinal, user: entry });
        for (const name of entry.groups) memberOf(namedGroups, name).push(ordinal);
      }
      if (userKeys.size > MOST_PEOPLE || groupKeys.size + namedGroups.size > MOST_GROUPS)
        throw new RunFailed('too_many', `A listing has at most ${MOST_PEOPLE} people and ${MOST_GROUPS} groups.`);
      if (waiting.length < USERS_AT_ONCE) continue;
      await compareWaiting();
      await watch.onLines(line);
    }
    await compareWaiting();

    const ofUsers = { userKeys, userIds, knownUsers, changedUsers, changedUserLines };
    const compared = { saysGroups: head.saysGroups, there, ...ofUsers, groupKeys, changedGroups, groupLines, namedGroups };
    const users = { ...counts, listed: userKeys.size, removed: Math.max(0, there.active + there.inactive - matched) };
    const groups = head.saysGroups ? await this.compareGroups(run, { ...compared, users, groups: NO_GROUPS }, watch) : NO_GROUPS;
    return { ...compared, users, groups };
  }

  /** The lines again, and with those of people who have changed the numbers that they had. */
  async *usersOf(
    run: StoredRun,
    { userKeys, changedUserLines }: Compared,
  ): AsyncGenerator<{ readonly line: number; readonly changed: { readonly ordinal: number; readonly user: ListedUser } | null }> {
    for await (const { line, entry } of this.lines(run, { saysGroups: false }, (each) => changedUserLines.has(each))) {
      if (entry instanceof ListingFault) throw damaged();
      yield { line, changed: entry?.type === 'user' ? { ordinal: userKeys.find(entry.key)!, user: entry } : null };
    }
  }

  /** The groups of a listing; a line of CSV has none of its own, so they are counted. */
  async *groupsOf(run: StoredRun, compared: Compared, onUnknown?: (line: number) => void): AsyncGenerator<GroupOfListing> {
    const { userKeys, userIds, groupKeys, groupLines, namedGroups } = compared;
    const idOf = (ordinal: number): string => `directory_user_${userIds.get(ordinal)}`;
    const slicer = new TimeSlicer();
    for (const [name, ordinals] of namedGroups) {
      const { ordinal } = groupKeys.add(name);
      yield { ordinal, line: ordinal + 1, group: groupNamed(name), memberIds: [...ordinals].map(idOf) };
      await slicer.step();
    }
    if (namedGroups.size > 0 || groupKeys.size === 0) return;
    for await (const { line, entry } of this.lines(run, { saysGroups: false }, (each) => groupLines.has(each))) {
      if (entry === null || entry instanceof ListingFault || entry.type !== 'group') continue;
      const ordinals = entry.members.map((key) => userKeys.find(key));
      if (ordinals.includes(null)) onUnknown?.(line);
      yield { ordinal: groupKeys.find(entry.key)!, line, group: entry, memberIds: ordinals.flatMap((ordinal) => (ordinal === null ? [] : [idOf(ordinal)])) };
    }
  }

  async groupByKey({ environment, directory_id }: StoredRun, key: string): Promise<StoredDirectoryGroup | null> {
    const where = { index: 'idp_id', values: [inDirectory(directory_id, key)] };
    const { rows } = await this.groupRows.page(environment, { where, order: 'asc', limit: 1 });
    return rows[0] === undefined ? null : contentOf(rows[0]);
  }

  private async compareGroups(run: StoredRun, compared: Compared, { onLines, onError }: Watch): Promise<DirectoryRunGroups> {
    const { changedGroups, there } = compared;
    const counts = { ...NO_GROUPS };
    const names = new KnownKeys();
    const onUnknown = (line: number): void => onError({ line, code: 'unknown_member', message: 'A member is no person of the listing.' });
    for await (const { ordinal, line, group, memberIds } of this.groupsOf(run, compared, onUnknown)) {
      counts.listed += 1;
      if (compared.namedGroups.size > 0 && !names.add(foldedValue(group.key)).isNew)
        onError({ line: null, code: 'given_twice', message: 'The names of two groups differ in upper and lower case alone.' });
      const known = await this.groupByKey(run, group.key);
      const before = known === null ? new Set<string>() : await this.members.all(run.environment, known.id);
      const after = new Set(memberIds);
      const added = memberIds.filter((id) => !before.has(id)).length;
      const removed = [...before].filter((id) => !after.has(id)).length;
      counts.members_added += added;
      counts.members_removed += removed;
      const isSame = known !== null && added + removed === 0 && isSameValue(known.attributes, group.attributes);
      counts[known === null ? 'created' : isSame ? 'unchanged' : 'updated'] += 1;
      if (!isSame) changedGroups.add(ordinal);
      await onLines(line);
    }
    return { ...counts, removed: Math.max(0, there.groups - counts.updated - counts.unchanged) };
  }

  private async usersByKey({ environment, directory_id }: StoredRun, keys: readonly string[]): Promise<ReadonlyMap<string, readonly StoredDirectoryUser[]>> {
    const found = new Map<string, StoredDirectoryUser[]>();
    if (keys.length === 0) return found;
    const where = { index: 'idp_id', values: keys.map((key) => inDirectory(directory_id, key)) };
    for (let after: string | undefined, more = true; more;) {
      const page = await this.userRows.page(environment, { where, order: 'asc', limit: USERS_AT_ONCE, after });
      for (const row of page.rows) {
        const user = contentOf(row);
        const key = textOf(user.attributes?.['externalId']) ?? user.id;
        found.set(key, [...(found.get(key) ?? []), user]);
      }
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
    return found;
  }

  /** `isWanted`: the lines that are read again. @throws RunFailed where the content is gone, or, where all of it is read, another than came */
  private async *lines(run: StoredRun, head: ListingHead, isWanted?: (line: number) => boolean): AsyncGenerator<ListingLine> {
    const { blob, hash: expected, contentType } = run.upload;
    const isChecked = isWanted === undefined;
    const content = await this.blobs.get(blob);
    if (content === null) throw new RunFailed('content_lost', 'What was sent is not there any more: send it again.');
    const hash = createHash('sha256');
    const bytes = async function* (): AsyncGenerator<Uint8Array> {
      for await (const part of content.bytes) {
        if (isChecked) hash.update(part);
        yield part;
      }
      if (isChecked && hash.digest('hex') !== expected) throw damaged();
    };
    // Embedded, nothing that is done with a line has to be waited for: without pauses nobody else would get a turn before the next part of the file.
    const slicer = new TimeSlicer();
    for await (const line of linesOf(bytes(), contentType as ListingFormat, head, isWanted)) {
      yield line;
      await slicer.step();
    }
  }
}

function memberOf(groups: Map<string, NumberList>, name: string): NumberList {
  let list = groups.get(name);
  if (list === undefined) groups.set(name, (list = new NumberList()));
  return list;
}

function damaged(): RunFailed {
  return new RunFailed('content_damaged', 'What lies in the store is not what was sent: send it again.');
}
