import { Injectable } from '@nestjs/common';
import { DirectoryGroup } from '#libs/contracts/src/directories/directory-group';
import { DirectoryUser, type LinkState } from '#libs/contracts/src/directories/directory-user';
import { GetDirectoryGroup, GetDirectoryUser, ListDirectoryGroups, ListDirectoryUsers } from '#libs/contracts/src/directories/operations';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { DirectorySyncSettings } from '#libs/platform/src/config/settings';
import { DomainError, isNotFound, notFound, refusedField } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { filteredPage } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import { RequestCounters } from '#libs/read-models/src/request-counters';
import { toPublicGroup, type StoredDirectoryGroup } from '../domain/directory-group.decider.ts';
import { customAttributesOf, toPublicUser, type StoredDirectoryUser } from '../domain/directory-user.decider.ts';
import { foldedValue } from '../domain/scim-values.decider.ts';
import { DirectoryReader } from '../readers/directory-reader.ts';
import {
  directoryGroupMembersView,
  directoryGroupsView,
  groupOfMember,
  memberId,
  userOfMember,
  type DirectoryGroupMember,
} from '../views/directory-groups.view.ts';
import { directoryLinkStatesView, type LinkOfPerson } from '../views/directory-link-states.view.ts';
import { directoryUsersView } from '../views/directory-users.view.ts';
import { inDirectory } from '../views/index-keys.ts';

const serialiseUser = serialiserOf(DirectoryUser);
const serialiseGroup = serialiserOf(DirectoryGroup);
const PAIRS_AT_ONCE = 500;
const SECOND = 1_000;

/** People and groups of directories, as the application reads them. */
@Injectable()
export class DirectoryPeople {
  private readonly users: Table<StoredDirectoryUser>;
  private readonly groups: Table<StoredDirectoryGroup>;
  private readonly members: Table<DirectoryGroupMember>;
  private readonly links: Table<LinkOfPerson>;

  constructor(
    private readonly directories: DirectoryReader,
    private readonly counters: RequestCounters,
    private readonly settings: DirectorySyncSettings,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.users = readModels.table(tableOf(directoryUsersView));
    this.groups = readModels.table(tableOf(directoryGroupsView));
    this.members = readModels.table(tableOf(directoryGroupMembersView));
    this.links = readModels.table(tableOf(directoryLinkStatesView));
  }

  @Handles(GetDirectoryUser)
  async getUser({ context, id }: GetDirectoryUser): Promise<DirectoryUser> {
    const [user] = await this.shownUsers(context.environment, [await this.requireUser(context, id)], true);
    if (user == null) throw notFound('Directory user', id);
    return user;
  }

  @Handles(ListDirectoryUsers)
  async listUsers(query: ListDirectoryUsers): Promise<Serialised<List<DirectoryUser>>> {
    const { context, directory, group, idp_id, email } = query;
    const { environment } = context;
    for (const [field, value] of Object.entries({ idp_id, email })) if (value !== undefined && directory === undefined) throw onlyWithDirectory(field);
    if (directory !== undefined) await this.directories.require(context, directory);
    const members = group === undefined ? null : await this.requireGroup(context, group);
    await this.count(environment, directory ?? members?.directory_id ?? null);
    if (members !== null) return this.listMembers(query, members.id);

    const where =
      directory === undefined
        ? undefined
        : idp_id !== undefined
          ? { index: 'idp_id', values: [inDirectory(directory, idp_id)] }
          : email !== undefined
            ? { index: 'email', values: [inDirectory(directory, foldedValue(email))] }
            : { index: 'directory', values: [directory] };
    return filteredPage(this.users, query, {
      idPrefix: 'directory_user',
      where,
      textsOf: async (rows) => {
        const users = rows.map(contentOf).map((user) => (isAsked(user, query) ? user : null));
        return (await this.shownUsers(environment, users, true)).map((user) => user && serialiseUser(user));
      },
    });
  }

  @Handles(GetDirectoryGroup)
  async getGroup({ context, id }: GetDirectoryGroup): Promise<DirectoryGroup> {
    return toPublicGroup(await this.requireGroup(context, id));
  }

  @Handles(ListDirectoryGroups)
  async listGroups(query: ListDirectoryGroups): Promise<Serialised<List<DirectoryGroup>>> {
    const { context, directory, user } = query;
    const { environment } = context;
    if (directory !== undefined) await this.directories.require(context, directory);
    const textsOf = async (rows: readonly (StoredRow<StoredDirectoryGroup> | null)[]): Promise<readonly (string | null)[]> => {
      const groups = rows.map((row) => row && contentOf(row));
      const living = await this.directories.living(
        environment,
        groups.flatMap((group) => group?.directory_id ?? []),
      );
      return groups.map((group) => {
        const isShown = group !== null && living.has(group.directory_id) && (directory === undefined || group.directory_id === directory);
        return isShown ? serialiseGroup(toPublicGroup(group)) : null;
      });
    };
    if (user === undefined) {
      const where = directory === undefined ? undefined : { index: 'directory', values: [directory] };
      return filteredPage(this.groups, query, { idPrefix: 'directory_group', where, textsOf });
    }
    await this.requireUser(context, user);
    return filteredPage(this.members, query, {
      idPrefix: 'directory_group',
      where: { index: 'user', values: [user] },
      rowIdOf: (group_id) => memberId({ group_id, user_id: user }),
      idOf: ({ id }) => groupOfMember(id),
      textsOf: async (rows) =>
        textsOf(
          await this.groups.getMany(
            environment,
            rows.map(({ id }) => groupOfMember(id)),
          ),
        ),
    });
  }

  /** `directory`: null for all of an environment. @throws DomainError `rate_limit_exceeded` */
  private async count(environment: string, directory: string | null): Promise<void> {
    const { DIRECTORY_USERS_RATE_LIMIT: limit } = this.settings;
    if (limit === null) return;
    const now = this.clock.now();
    const window = { start: now - (now % SECOND), length: SECOND, limit };
    if ((await this.counters.add(`directory users ${directory ?? environment}`, window)) > limit)
      throw new DomainError('limited', 'rate_limit_exceeded', 'Too many requests for the people of a directory.', { retryAfter: 1 });
  }

  /** As the reference has it, `groups` of those are empty. */
  private async listMembers(query: ListDirectoryUsers, group: string): Promise<Serialised<List<DirectoryUser>>> {
    const { environment } = query.context;
    return filteredPage(this.members, query, {
      idPrefix: 'directory_user',
      where: { index: 'group', values: [group] },
      rowIdOf: (user_id) => memberId({ group_id: group, user_id }),
      idOf: ({ id }) => userOfMember(id),
      textsOf: async (rows) => {
        const found = await this.users.getMany(
          environment,
          rows.map(({ id }) => userOfMember(id)),
        );
        const users = found.map((row) => {
          const user = row && contentOf(row);
          return user !== null && isAsked(user, query) ? user : null;
        });
        return (await this.shownUsers(environment, users, false)).map((user) => user && serialiseUser(user));
      },
    });
  }

  /** In their order: null for who is dead. */
  private async shownUsers(
    environment: string,
    users: readonly (StoredDirectoryUser | null)[],
    areGroupsShown: boolean,
  ): Promise<readonly (DirectoryUser | null)[]> {
    const found = users.flatMap((user) => user ?? []);
    const living = await this.directories.living(
      environment,
      found.map(({ directory_id }) => directory_id),
    );
    const groups = areGroupsShown ? await this.groupsOf(environment, found) : new Map<string, DirectoryGroup[]>();
    const links = await this.linksOf(environment, found);
    return users.map((user) => {
      const directory = user === null ? undefined : living.get(user.directory_id);
      // Whoever was erased is about to be ended.
      if (user === null || user.attributes === null || directory === undefined) return null;
      const shown = toPublicUser(user, customAttributesOf(user.attributes, directory.attributes));
      return { ...shown, groups: groups.get(user.id) ?? [], link_state: links.get(user.id) ?? null };
    });
  }

  private async linksOf(environment: string, users: readonly StoredDirectoryUser[]): Promise<ReadonlyMap<string, LinkState | null>> {
    const rows = await this.links.getMany(
      environment,
      users.map(({ id }) => id),
    );
    return new Map(rows.flatMap((row) => (row === null ? [] : [[row.id, contentOf(row).link_state]])));
  }

  private async groupsOf(environment: string, users: readonly StoredDirectoryUser[]): Promise<ReadonlyMap<string, DirectoryGroup[]>> {
    const groups = new Map<string, DirectoryGroup[]>();
    const values = users.map(({ id }) => id);
    for (let after: string | undefined, more = values.length > 0; more;) {
      const page = await this.members.page(environment, { where: { index: 'user', values }, order: 'asc', limit: PAIRS_AT_ONCE, after });
      const rows = await this.groups.getMany(
        environment,
        page.rows.map(({ id }) => groupOfMember(id)),
      );
      for (const [place, row] of rows.entries()) {
        const user = userOfMember(page.rows[place]!.id);
        if (row !== null) groups.set(user, [...(groups.get(user) ?? []), toPublicGroup(contentOf(row))]);
      }
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
    return groups;
  }

  private async requireUser(context: RequestContext, id: string): Promise<StoredDirectoryUser> {
    const user = contentOf(await this.users.require(context, id));
    await this.requireDirectoryOf(context, 'Directory user', user);
    return user;
  }

  private async requireGroup(context: RequestContext, id: string): Promise<StoredDirectoryGroup> {
    const group = contentOf(await this.groups.require(context, id));
    await this.requireDirectoryOf(context, 'Directory group', group);
    return group;
  }

  private async requireDirectoryOf(
    context: RequestContext,
    what: string,
    { id, directory_id }: { readonly id: string; readonly directory_id: string },
  ): Promise<void> {
    await this.directories.require(context, directory_id).catch((error: unknown) => {
      throw isNotFound(error) ? notFound(what, id) : error;
    });
  }
}

/** What filters that come together leave: one of them finds rows, the others are looked at there. */
function isAsked(user: StoredDirectoryUser, { directory, idp_id, email }: ListDirectoryUsers): boolean {
  const shown = toPublicUser(user, {});
  return (
    (directory === undefined || user.directory_id === directory) &&
    (idp_id === undefined || shown.idp_id === idp_id) &&
    (email === undefined ||
      [shown.email, ...shown.emails.map(({ value }) => value)].some((value) => value !== null && foldedValue(value) === foldedValue(email)))
  );
}

function onlyWithDirectory(field: string): Error {
  return refusedField('invalid', 'invalid_request_parameters', {
    field,
    message: `${field} is a filter of one directory: give \`directory\` too.`,
    reason: 'directory_required',
  });
}
