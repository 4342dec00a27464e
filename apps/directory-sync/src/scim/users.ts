import { Injectable } from '@nestjs/common';
import { Repository, type Transacted } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { derivedId, isIdOf } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { ShortLived } from '#libs/read-models/src/short-lived';
import {
  changeDirectoryUser,
  createDirectoryUser,
  deleteDirectoryUser,
  directoryUserDecider,
  requireScimUser,
  type DirectoryUserEvent,
  type DirectoryUserState,
  type ExpectedVersion,
  type StoredDirectoryUser,
} from '../domain/directory-user.decider.ts';
import type { StoredDirectory } from '../domain/directory.decider.ts';
import { noSuchResource, ScimError } from '../domain/scim-domain-error.ts';
import type { Comparison, ScimFilter } from '../domain/scim-filter.decider.ts';
import { patched } from '../domain/scim-patch.decider.ts';
import { keptAttributes } from '../domain/scim-resource.decider.ts';
import { truthOf, type Attributes } from '../domain/scim-values.decider.ts';
import { FollowedPeople } from '../people/followed-people.ts';
import { GroupCleaning } from '../people/group-cleaning.ts';
import { directoryCountsView, NOTHING_COUNTED, type DirectoryCounts } from '../views/directory-counts.view.ts';
import { directoryUsersView } from '../views/directory-users.view.ts';
import { parsePatch } from './patch-request.ts';
import { userResource } from './representation.ts';
import { byBeginning, byTime, byValue, ScimSearch, type Found, type Indexed, type SearchRequest } from './search.ts';

/** Bytes of a person, as JSON. */
export const MAX_USER = 32 * 1024;

/** People, as providers write and read them. */
@Injectable()
export class ScimUsers {
  private readonly rows: Table<StoredDirectoryUser>;
  private readonly counts: Table<DirectoryCounts>;
  private readonly search: ScimSearch;

  constructor(
    private readonly repository: Repository,
    private readonly cleaning: GroupCleaning,
    private readonly followed: FollowedPeople,
    shortLived: ShortLived,
    clock: Clock,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(directoryUsersView));
    this.counts = readModels.table(tableOf(directoryCountsView));
    this.search = new ScimSearch(shortLived, clock);
  }

  async create(context: RequestContext, directory: StoredDirectory, body: Attributes): Promise<StoredDirectoryUser> {
    const id = `directory_user_${derivedId(context.commandId, 0)}`;
    const done = await this.repository.transact(directoryUserDecider, context, id, createDirectoryUser(directory, keptAttributes('User', body)));
    await this.follow(context, directory, id, done);
    return requireScimUser(done.state);
  }

  /** @throws ScimError where there is no such person in the directory */
  async get({ environment }: Pick<RequestContext, 'environment'>, directory: StoredDirectory, id: string): Promise<StoredDirectoryUser> {
    if (!isIdOf('directory_user', id)) throw noSuchResource('User');
    const user = requireScimUser(await this.repository.load(directoryUserDecider, environment, id));
    if (user.directory_id !== directory.id) throw noSuchResource('User');
    return user;
  }

  async replace(context: RequestContext, directory: StoredDirectory, id: string, { body, expected }: Change): Promise<StoredDirectoryUser> {
    const attributes = keptAttributes('User', body);
    return this.change(context, directory, id, { expected, to: (before) => withActivity(attributes, before) });
  }

  async patch(context: RequestContext, directory: StoredDirectory, id: string, { body, expected }: Change): Promise<StoredDirectoryUser> {
    const operations = parsePatch('User', body);
    return this.change(context, directory, id, {
      expected,
      to: (before) => {
        const after = keptAttributes('User', patched('User', before, operations));
        requireRoom(before, after);
        return after;
      },
    });
  }

  /** The person is in no group any more when this is answered. */
  async delete(context: RequestContext, directory: StoredDirectory, id: string, expected: ExpectedVersion): Promise<void> {
    await this.get(context, directory, id);
    const done = await this.repository.transact(directoryUserDecider, context, id, deleteDirectoryUser(expected));
    // Of those who delete at once, one is told that it did so.
    if (done.facts.length === 0) throw noSuchResource('User');
    await this.cleaning.leaveGroups(context.environment, id);
    await this.follow(context, directory, id, done);
  }

  async find(request: SearchRequest): Promise<Found<StoredDirectoryUser>> {
    const { environment, directoryId } = request;
    const row = await this.counts.get(environment, directoryId);
    const { active, inactive } = row === null ? NOTHING_COUNTED : contentOf(row);
    const since = Date.parse(SINCE);
    const { total, rows } = await this.search.find(request, {
      kind: 'User',
      table: this.rows,
      size: active + inactive,
      total: (filter) => (filter === null ? active + inactive : countedBy(filter, active, inactive)),
      indexed: (comparison, now) => indexed(comparison, { now, since }),
      // Whoever was never said to be inactive is active.
      resourceOf: (user) => ({ ...userResource(user, '', null), active: user.active }),
      withId: async (id) => {
        const found = isIdOf('directory_user', id) ? await this.rows.get(environment, id) : null;
        return found !== null && contentOf(found).directory_id === directoryId ? found : null;
      },
    });
    // Whoever was erased is about to be ended.
    return { total, rows: rows.filter(({ attributes }) => attributes !== null) };
  }

  private async change(
    context: RequestContext,
    directory: StoredDirectory,
    id: string,
    { expected, to }: { readonly expected: ExpectedVersion; readonly to: (attributes: Attributes) => Attributes },
  ): Promise<StoredDirectoryUser> {
    await this.get(context, directory, id);
    const done = await this.repository.transact(directoryUserDecider, context, id, changeDirectoryUser(directory, expected, to));
    await this.follow(context, directory, id, done);
    return requireScimUser(done.state);
  }

  /** Whoever is answered finds the user and the membership as they are to be, where that takes no longer than a second. */
  private async follow(
    { environment }: RequestContext,
    { policy }: StoredDirectory,
    id: string,
    { facts, version }: Transacted<DirectoryUserState, DirectoryUserEvent>,
  ): Promise<void> {
    if (policy.follows !== 'off' && facts.length > 0) await this.followed.reached(environment, id, version);
  }
}

export interface Change {
  readonly body: Attributes;
  readonly expected: ExpectedVersion;
}

/** As much as one request may say of a person: more does not come together out of many, nor is who has more from elsewhere kept from having less. @throws ScimError */
function requireRoom(before: Attributes, after: Attributes): void {
  const bytes = Buffer.byteLength(JSON.stringify(after));
  if (bytes > MAX_USER && bytes > Buffer.byteLength(JSON.stringify(before))) throw new ScimError(413, null, 'A User has at most 32 KiB.');
}

/** Nothing changed before there was anything. */
export const SINCE = '2025-01-01T00:00:00.000Z';

/** What is counted anyway. */
function countedBy(filter: ScimFilter, active: number, inactive: number): number | null {
  if (filter.op !== 'eq' || filter.path.toLowerCase() !== 'active') return null;
  const wanted = truthOf(filter.value);
  return wanted === null ? null : wanted ? active : inactive;
}

function indexed({ op, path, value }: Comparison, times: { readonly now: number; readonly since: number }): Indexed | null {
  const name = path.toLowerCase().replace(/^urn:ietf:params:scim:schemas:core:2\.0:user:/, '');
  if (op === 'eq') {
    switch (name) {
      case 'username':
        return byValue('user_name', value);
      case 'displayname':
        return byValue('display_name', value);
      case 'emails':
      case 'emails.value':
        return byValue('email', value);
      case 'externalid':
        return typeof value === 'string' ? { index: 'idp_id', values: [value], isExact: false } : null;
      case 'active': {
        const wanted = truthOf(value);
        return wanted === null ? null : { index: 'active', values: [String(wanted)], isExact: true };
      }
    }
  }
  if (op === 'sw')
    return name === 'username' ? byBeginning('user_name_beginning', value) : name === 'displayname' ? byBeginning('display_name_beginning', value) : null;
  return name === 'meta.lastmodified' && (op === 'gt' || op === 'ge' || op === 'lt' || op === 'le') ? byTime(op, value, times) : null;
}

/** What does not say whether a person is active says nothing of it (RFC 7644, section 3.5.1): nobody has access again by an omission. */
function withActivity(attributes: Attributes, before: Attributes): Attributes {
  return attributes['active'] === undefined && truthOf(before['active']) === false ? { ...attributes, active: false } : attributes;
}
