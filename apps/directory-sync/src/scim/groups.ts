import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Repository, type Transacted } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import { derivedId, isIdOf } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import { ShortLived } from '#libs/read-models/src/short-lived';
import {
  changeDirectoryGroup,
  createDirectoryGroup,
  deleteDirectoryGroup,
  directoryGroupDecider,
  MembersOutrun,
  requireScimGroup,
  type DirectoryGroupEvent,
  type DirectoryGroupState,
  type MembersChange,
  type SeenMembers,
  type StoredDirectoryGroup,
} from '../domain/directory-group.decider.ts';
import type { ExpectedVersion } from '../domain/directory-user.decider.ts';
import type { StoredDirectory } from '../domain/directory.decider.ts';
import { invalidValue, noSuchResource, ScimError } from '../domain/scim-domain-error.ts';
import { asksForMore, conjunctsOf, fits, type Comparison, type ScimFilter } from '../domain/scim-filter.decider.ts';
import { patched } from '../domain/scim-patch.decider.ts';
import { keptAttributes } from '../domain/scim-resource.decider.ts';
import type { Attributes } from '../domain/scim-values.decider.ts';
import { GroupCleaning } from '../people/group-cleaning.ts';
import { GroupMembers, slicesOf } from '../readers/group-members.ts';
import { directoryCountsView, NOTHING_COUNTED, type DirectoryCounts } from '../views/directory-counts.view.ts';
import { directoryGroupMembersView, directoryGroupsView, groupOfMember, type DirectoryGroupMember } from '../views/directory-groups.view.ts';
import { memberIds, memberOperation, membersAfter, membersSent, namedBy, needsAll, type MemberOperation } from './member-changes.ts';
import { isOfMembers, parsePatch } from './patch-request.ts';
import { groupResource, type GroupOfUser } from './representation.ts';
import { byBeginning, byTime, byValue, notFiltered, ScimSearch, type Found, type Indexed, type SearchRequest } from './search.ts';
import { SINCE, type Change } from './users.ts';

/** Ids in one record of a change of members. */
const MOST_IN_RECORD = 10_000;
/** Bytes of a group beside its members. */
const MAX_ATTRIBUTES = 32 * 1024;
const PAUSE_MS = 5;
const GROUPS_AT_ONCE = 500;

interface GroupChange {
  readonly expected: ExpectedVersion;
  readonly to: (attributes: Attributes) => Attributes;
  /** Null: of its members nothing. */
  readonly seen: SeenMembers | null;
}

/** Groups, as providers write and read them. */
@Injectable()
export class ScimGroups {
  protected readonly mostInRecord: number = MOST_IN_RECORD;
  private readonly rows: Table<StoredDirectoryGroup>;
  private readonly members: Table<DirectoryGroupMember>;
  private readonly counts: Table<DirectoryCounts>;
  private readonly search: ScimSearch;

  constructor(
    private readonly repository: Repository,
    private readonly groupMembers: GroupMembers,
    private readonly cleaning: GroupCleaning,
    private readonly clock: Clock,
    shortLived: ShortLived,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(directoryGroupsView));
    this.members = readModels.table(tableOf(directoryGroupMembersView));
    this.counts = readModels.table(tableOf(directoryCountsView));
    this.search = new ScimSearch(shortLived, clock);
  }

  async create(context: RequestContext, directory: StoredDirectory, body: Attributes): Promise<StoredDirectoryGroup> {
    const attributes = keptGroup(body);
    const ids = memberIds(membersSent(body));
    await this.requirePeople(context, directory, ids);
    const [first = [], ...rest] = slicesOf(ids, this.mostInRecord);
    const id = `directory_group_${derivedId(context.commandId, 0)}`;
    const { state } = await this.repository.transact(directoryGroupDecider, context, id, createDirectoryGroup(directory, attributes, first));
    let group = requireScimGroup(state);
    for (const some of rest) group = await this.changeMembers(context, id, { change: { added: some, removed: [] } });
    return group;
  }

  /** @throws ScimError where there is no such group in the directory */
  async get({ environment }: Pick<RequestContext, 'environment'>, directory: StoredDirectory, id: string): Promise<StoredDirectoryGroup> {
    if (!isIdOf('directory_group', id)) throw noSuchResource('Group');
    const group = requireScimGroup(await this.repository.load(directoryGroupDecider, environment, id));
    if (group.directory_id !== directory.id) throw noSuchResource('Group');
    return group;
  }

  /** A group with its members, of one moment. */
  async withMembers(
    context: Pick<RequestContext, 'environment'>,
    directory: StoredDirectory,
    id: string,
  ): Promise<{ readonly group: StoredDirectoryGroup; readonly members: readonly string[] }> {
    await this.get(context, directory, id);
    return this.groupMembers.withGroup(context.environment, id);
  }

  /** Members that are not named stay as they are. */
  async replace(context: RequestContext, directory: StoredDirectory, id: string, { body, expected }: Change): Promise<StoredDirectoryGroup> {
    const attributes = keptGroup(body);
    const sent = membersSent(body);
    const operations: readonly MemberOperation[] = sent === undefined ? [] : [{ op: 'replace', ids: memberIds(sent) }];
    return this.change(context, directory, id, { expected, to: () => attributes, operations });
  }

  async patch(context: RequestContext, directory: StoredDirectory, id: string, { body, expected }: Change): Promise<StoredDirectoryGroup> {
    const operations = parsePatch('Group', body);
    const ofAttributes = operations.filter((operation) => !isOfMembers(operation));
    return this.change(context, directory, id, {
      expected,
      to: (before) => (ofAttributes.length === 0 ? before : keptGroup(patched('Group', before, ofAttributes))),
      operations: operations.filter(isOfMembers).map(memberOperation),
    });
  }

  async delete(context: RequestContext, directory: StoredDirectory, id: string, expected: ExpectedVersion): Promise<void> {
    await this.get(context, directory, id);
    const { facts } = await this.repository.transact(directoryGroupDecider, context, id, deleteDirectoryGroup(expected));
    // Of those who delete at once, one is told that it did so.
    if (facts.length === 0) throw noSuchResource('Group');
  }

  async find(request: SearchRequest): Promise<Found<StoredDirectoryGroup>> {
    const { environment, directoryId, filter } = request;
    const row = await this.counts.get(environment, directoryId);
    const { groups } = row === null ? NOTHING_COUNTED : contentOf(row);
    const named = filter === null ? null : membersNamedBy(filter);
    if (named !== null) return this.findOfMembers(request, named);
    return this.search.find(request, {
      kind: 'Group',
      table: this.rows,
      size: groups,
      total: (asked) => (asked === null ? groups : null),
      indexed: (comparison, now) => indexed(comparison, { now, since: Date.parse(SINCE) }),
      resourceOf: (group) => groupResource(group, '', null),
      withId: (id) => this.rowOf(environment, directoryId, id),
    });
  }

  /** The groups that a person is in, by name. */
  async ofUser(environment: string, userId: string): Promise<readonly GroupOfUser[]> {
    const groups: GroupOfUser[] = [];
    for (let after: string | undefined, more = true; more;) {
      const page = await this.members.page(environment, { where: { index: 'user', values: [userId] }, order: 'asc', limit: GROUPS_AT_ONCE, after });
      const rows = await this.rows.getMany(
        environment,
        page.rows.map(({ id }) => groupOfMember(id)),
      );
      for (const row of rows) if (row !== null) groups.push({ id: row.id, name: String(contentOf(row).attributes['displayName']) });
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
    return groups;
  }

  /** A filter that asks who has members is answered by the pairs. */
  private async findOfMembers(
    request: SearchRequest,
    { ids, rest }: { readonly ids: readonly string[]; readonly rest: readonly ScimFilter[] },
  ): Promise<Found<StoredDirectoryGroup>> {
    const { environment, directoryId, startIndex, count } = request;
    if (rest.some((part) => asksForMore('Group', part))) throw notFiltered();
    const [first] = ids;
    if (!ids.every((id) => isIdOf('directory_user', id))) return { total: 0, rows: [] };
    const named = rest.find((part): part is Comparison => part.op === 'eq' && part.path.toLowerCase() === 'id');
    const own = named === undefined ? (await this.ofUser(environment, first!)).map((group) => group.id) : [String(named.value)];
    const rows: StoredDirectoryGroup[] = [];
    for (const each of own) {
      const row = await this.rowOf(environment, directoryId, each);
      if (row === null) continue;
      // Whoever joined or left at this moment, where one group is asked for.
      const isAsked = named !== undefined || ids.length > 1;
      if (!isAsked || (await this.groupMembers.among(environment, each, ids)).size === ids.length) rows.push(contentOf(row));
    }
    const found = rows.filter((row) => rest.every((part) => fits(groupResource(row, '', null), part)));
    return { total: found.length, rows: found.slice(startIndex - 1, startIndex - 1 + count) };
  }

  private async rowOf(environment: string, directoryId: string, id: string): Promise<StoredRow<StoredDirectoryGroup> | null> {
    const row = isIdOf('directory_group', id) ? await this.rows.get(environment, id) : null;
    return row !== null && contentOf(row).directory_id === directoryId ? row : null;
  }

  private async change(
    context: RequestContext,
    directory: StoredDirectory,
    id: string,
    {
      expected,
      to,
      operations,
    }: { readonly expected: ExpectedVersion; readonly to: (attributes: Attributes) => Attributes; readonly operations: readonly MemberOperation[] },
  ): Promise<StoredDirectoryGroup> {
    const { environment } = context;
    const isOfAll = needsAll(operations);
    const named = namedBy(operations);
    for (;;) {
      const before = await this.get(context, directory, id);
      if (operations.length === 0) return this.decide(context, id, { expected, to, seen: null });
      const members = isOfAll ? await this.groupMembers.all(environment, id) : await this.groupMembers.among(environment, id, named);
      const after = membersAfter(members, operations);
      const added = [...after].filter((member) => !members.has(member));
      const removed = [...members].filter((member) => !after.has(member));
      await this.requirePeople(context, directory, added);
      const [first = { added: [], removed: [] }, ...rest] = recordsOf({ added, removed }, this.mostInRecord);
      try {
        let group = await this.decide(context, id, { expected, to, seen: { version: before.version, change: first } });
        for (const change of rest) group = await this.changeMembers(context, id, { change });
        return group;
      } catch (error) {
        if (!(error instanceof MembersOutrun)) throw error;
        await this.waitForTurn(context);
      }
    }
  }

  /** What one record does not take: as members are by then. */
  private async changeMembers(context: RequestContext, id: string, { change }: { readonly change: MembersChange }): Promise<StoredDirectoryGroup> {
    const { environment } = context;
    for (;;) {
      const { version } = requireScimGroup(await this.repository.load(directoryGroupDecider, environment, id));
      const members = await this.groupMembers.among(environment, id, [...change.added, ...change.removed]);
      const left = { added: change.added.filter((each) => !members.has(each)), removed: change.removed.filter((each) => members.has(each)) };
      try {
        const { state, isRepeat } = await this.transact(context, id, { expected: undefined, to: (attributes) => attributes, seen: { version, change: left } });
        // Where this command was carried out in part before, what it asked for in this place then may have been another part.
        if (!isRepeat || left.added.length + left.removed.length === 0) return requireScimGroup(state);
      } catch (error) {
        if (!(error instanceof MembersOutrun)) throw error;
        await this.waitForTurn(context);
      }
    }
  }

  private async decide(context: RequestContext, id: string, change: GroupChange): Promise<StoredDirectoryGroup> {
    return requireScimGroup((await this.transact(context, id, change)).state);
  }

  private transact(context: RequestContext, id: string, { expected, to, seen }: GroupChange): Promise<Transacted<DirectoryGroupState, DirectoryGroupEvent>> {
    return this.repository.transact(directoryGroupDecider, context, id, changeDirectoryGroup(expected, to, seen));
  }

  /** Of those who come at once, somebody was faster. @throws DomainError `service_unavailable` past the deadline */
  private async waitForTurn({ deadline }: RequestContext): Promise<void> {
    if (this.clock.now() > deadline) throw unavailable('The group changes too fast.');
    await pause(Math.random() * PAUSE_MS);
  }

  /** @throws ScimError `invalidValue` where one of them is not in the directory */
  private async requirePeople({ environment }: RequestContext, directory: StoredDirectory, ids: readonly string[]): Promise<void> {
    const areIds = ids.every((id) => isIdOf('directory_user', id));
    if (!areIds || !(await this.groupMembers.areIn(environment, directory.id, ids))) throw invalidValue('A member is no User of this directory.');
  }
}

/** @throws ScimError */
function keptGroup(body: Attributes): Attributes {
  const attributes = keptAttributes('Group', body);
  if (JSON.stringify(attributes).length > MAX_ATTRIBUTES) throw new ScimError(413, null, 'The attributes of a Group beside its members are at most 32 KiB.');
  return attributes;
}

/** Removals before additions, at most so many ids in each. */
function recordsOf({ added, removed }: MembersChange, most: number): readonly MembersChange[] {
  const all = [...removed.map((id) => ({ id, isAdded: false })), ...added.map((id) => ({ id, isAdded: true }))];
  return slicesOf(all, most).map((some) => ({
    added: some.flatMap(({ id, isAdded }) => (isAdded ? [id] : [])),
    removed: some.flatMap(({ id, isAdded }) => (isAdded ? [] : [id])),
  }));
}

/** The people whom parts of a filter name as members, and the rest of it; null where none does. */
function membersNamedBy(filter: ScimFilter): { readonly ids: readonly string[]; readonly rest: readonly ScimFilter[] } | null {
  const parts = conjunctsOf(filter).map((part) => ({ part, id: memberNamedBy(part) }));
  const ids = [...new Set(parts.flatMap(({ id }) => id ?? []))];
  return ids.length === 0 ? null : { ids, rest: parts.flatMap(({ part, id }) => (id === null ? [part] : [])) };
}

function memberNamedBy(part: ScimFilter): string | null {
  const path = 'path' in part ? namedInCore(part.path) : '';
  if (part.op === '[]') return path === 'members' && part.filter.op === 'eq' && namedInCore(part.filter.path) === 'value' ? memberIn(part.filter) : null;
  return part.op === 'eq' && (path === 'members' || path === 'members.value') ? memberIn(part) : null;
}

function memberIn({ value }: Comparison): string | null {
  return typeof value === 'string' ? value : null;
}

function namedInCore(path: string): string {
  return path.toLowerCase().replace(/^urn:ietf:params:scim:schemas:core:2\.0:group:/, '');
}

function indexed({ op, path, value }: Comparison, times: { readonly now: number; readonly since: number }): Indexed | null {
  const name = namedInCore(path);
  if (op === 'eq' && name === 'displayname') return byValue('display_name', value);
  if (op === 'eq' && name === 'externalid') return typeof value === 'string' ? { index: 'idp_id', values: [value], isExact: false } : null;
  if (op === 'sw' && name === 'displayname') return byBeginning('display_name_beginning', value);
  return name === 'meta.lastmodified' && (op === 'gt' || op === 'ge' || op === 'lt' || op === 'le') ? byTime(op, value, times) : null;
}
