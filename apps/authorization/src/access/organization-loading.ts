import { START, type EventStore, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { TimeSlicer } from '#libs/platform/src/time-slicer';
import { contentOf, type PageRequest, type ReadModels, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import type { StoredGroupRoleAssignment } from '../domain/group-role-assignment.decider.ts';
import { organizationResourceId } from '../domain/resource-tree.ts';
import type { StoredRoleAssignment } from '../domain/role-assignment.decider.ts';
import {
  absentPeopleView,
  endedDirectoriesView,
  endedUsersView,
  groupMembersView,
  groupsView,
  membershipsView,
  pairOf,
  successorsView,
  type StoredAbsence,
  type StoredGroup,
  type StoredMember,
  type StoredMembership,
  type StoredSuccessor,
} from '../views/access.views.ts';
import {
  directoriesView,
  directoryGroupMembersView,
  directoryGroupsView,
  type KnownDirectory,
  type KnownDirectoryGroup,
  type KnownDirectoryMember,
} from '../views/directories.views.ts';
import { groupRoleAssignmentsView } from '../views/group-role-assignments.view.ts';
import { resourcesView, type ResourceRow } from '../views/resources.view.ts';
import { roleAssignmentsView } from '../views/role-assignments.view.ts';
import type { OrganizationIndex } from './organization-index.ts';

/** Rows at a time: a page of them takes less than a slice. */
const PAGE = 250;

/** The rows of which indexes of organizations are made. */
export class IndexRows {
  readonly resources: Table<ResourceRow>;
  readonly memberships: Table<StoredMembership>;
  readonly groups: Table<StoredGroup>;
  private readonly members: Table<StoredMember>;
  private readonly endedUsers: Table<{ readonly id: string }>;
  private readonly absences: Table<StoredAbsence>;
  private readonly endedDirectories: Table<{ readonly id: string; readonly organization_id: string }>;
  private readonly successors: Table<StoredSuccessor>;
  private readonly assignments: Table<StoredRoleAssignment>;
  private readonly groupAssignments: Table<StoredGroupRoleAssignment>;
  private readonly directories: Table<KnownDirectory>;
  private readonly directoryGroups: Table<KnownDirectoryGroup>;
  private readonly directoryMembers: Table<KnownDirectoryMember>;

  constructor(
    readModels: ReadModels,
    private readonly events: EventStore,
  ) {
    this.resources = readModels.table(tableOf(resourcesView));
    this.memberships = readModels.table(tableOf(membershipsView));
    this.groups = readModels.table(tableOf(groupsView));
    this.members = readModels.table(tableOf(groupMembersView));
    this.endedUsers = readModels.table(tableOf(endedUsersView));
    this.absences = readModels.table(tableOf(absentPeopleView));
    this.endedDirectories = readModels.table(tableOf(endedDirectoriesView));
    this.successors = readModels.table(tableOf(successorsView));
    this.assignments = readModels.table(tableOf(roleAssignmentsView));
    this.groupAssignments = readModels.table(tableOf(groupRoleAssignmentsView));
    this.directories = readModels.table(tableOf(directoriesView));
    this.directoryGroups = readModels.table(tableOf(directoryGroupsView));
    this.directoryMembers = readModels.table(tableOf(directoryGroupMembersView));
  }

  /** Up to where all of the rows know the log, at the least. */
  async checkpoint(): Promise<Position> {
    const { resources, memberships, groups, members, endedUsers, absences, endedDirectories, successors, assignments, groupAssignments } = this;
    const tables = [resources, memberships, groups, members, endedUsers, absences, endedDirectories, successors, assignments, groupAssignments];
    return leastOf([...tables, this.directories, this.directoryGroups, this.directoryMembers]);
  }

  /** As `checkpoint`, of the rows that `readMapped` reads. */
  mappedCheckpoint(): Promise<Position> {
    return leastOf([this.directoryGroups, this.directoryMembers]);
  }

  async hasEnded(environment: string, userId: string): Promise<boolean> {
    return (await this.endedUsers.get(environment, userId)) !== null;
  }

  /**
   * What the log holds after `from`, up to `to`, of one organization and of the users of its environment.
   * @throws what the log throws
   */
  async recorded(from: Position, to: Position, isMeant: (event: RecordedEvent) => boolean): Promise<RecordedEvent[]> {
    const found: RecordedEvent[] = [];
    if (from >= to || to === START) return found;
    const reading = new AbortController();
    for await (const batch of this.events.subscribe(from, reading.signal)) {
      for (const event of batch) if (event.position <= to && isMeant(event)) found.push(event);
      if ((batch.at(-1)?.position ?? from) >= to) break;
    }
    reading.abort();
    return found;
  }

  /**
   * Reads rows that may be of different ages, none older than the checkpoint: with every event after that, in order, they are what the log says. `onPage` is called
   * now and then and may throw.
   */
  async read(environment: string, index: OrganizationIndex, onPage: () => void): Promise<void> {
    const slicer = new TimeSlicer();
    const pages = <Row>(table: Table<Row>, take: (rows: readonly StoredRow<Row>[]) => Promise<void> | void): Promise<void> =>
      eachPage(table, environment, { index: 'organization', values: [index.id] }, async (rows) => {
        await take(rows);
        onPage();
        await slicer.step();
      });

    index.grants.collect();
    for (const event of await this.events.read(streamName('organization_roles', environment, index.id))) index.applyRole(event);
    // First what others refer to: what they refer to and is not there has ended, or is told by an event.
    await pages(this.resources, (rows) => {
      for (const stored of rows) {
        const row = contentOf(stored);
        index.tree.load(row, stored.revision);
        if (row.closing !== undefined) index.closings.learn(row.id, row.closing);
      }
    });
    index.isAlive = (await this.resources.get(environment, organizationResourceId(index.id))) !== null;
    await pages(this.memberships, async (rows) => {
      const memberships = rows.map(contentOf);
      const ended = await this.endedUsers.getMany(
        environment,
        memberships.map(({ user_id }) => user_id),
      );
      for (const [place, membership] of memberships.entries()) if (ended[place] == null) index.addMembership(membership);
    });
    await pages(this.absences, (rows) => {
      for (const row of rows) index.managers.absent(contentOf(row));
    });
    await pages(this.endedDirectories, (rows) => {
      for (const { id } of rows) index.managers.endDirectory(id);
    });
    await pages(this.successors, (rows) => {
      for (const row of rows) index.addSuccessor(contentOf(row));
    });
    await pages(this.groups, (rows) => {
      for (const { id } of rows) index.addGroup(id);
    });
    await pages(this.members, (rows) => {
      for (const { id } of rows) index.addMember(...pairOf(id));
    });
    await pages(this.assignments, (rows) => {
      for (const row of rows.map(contentOf)) index.addGrant('membership', row.organization_membership_id, row);
    });
    await pages(this.groupAssignments, (rows) => {
      for (const row of rows.map(contentOf)) index.addGrant('group', row.group_id, row);
    });
    await pages(this.directories, (rows) => {
      for (const row of rows) index.mapped.setDirectory(contentOf(row));
    });
    await this.readMapped(environment, index, onPage);
    const entering = index.grants.index();
    while (entering.next().done !== true) await slicer.step();
  }

  /** Reads who is in groups that give roles, as far as it is not known: as `read`, with what was recorded of them after the checkpoint, in order, it is what the log says. */
  async readMapped(environment: string, { mapped }: OrganizationIndex, onPage: () => void): Promise<void> {
    const slicer = new TimeSlicer();
    for (const some of slicesOf([...mapped.unread], PAGE)) {
      const groups = await this.directoryGroups.getMany(environment, some);
      for (const [place, group] of groups.entries()) {
        if (group !== null) {
          mapped.revive(group.id);
          await eachPage(this.directoryMembers, environment, { index: 'group', values: [group.id] }, async (rows) => {
            for (const { id } of rows) mapped.addMember(...pairOf(id));
            onPage();
            await slicer.step();
          });
        }
        mapped.unread.delete(some[place]!);
      }
    }
  }
}

async function leastOf(tables: readonly Pick<Table<never>, 'checkpoint'>[]): Promise<Position> {
  const checkpoints = await Promise.all(tables.map((table) => table.checkpoint()));
  return checkpoints.reduce((least, checkpoint) => (checkpoint < least ? checkpoint : least));
}

function slicesOf<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, place) => items.slice(place * size, (place + 1) * size));
}

async function eachPage<Row>(
  table: Table<Row>,
  environment: string,
  where: NonNullable<PageRequest['where']>,
  take: (rows: readonly StoredRow<Row>[]) => Promise<void>,
): Promise<void> {
  for (let after: string | undefined; ;) {
    const { rows, hasAfter } = await table.page(environment, { where, order: 'asc', limit: PAGE, ...(after !== undefined && { after }) });
    await take(rows);
    after = rows.at(-1)?.id;
    if (!hasAfter || after === undefined) return;
  }
}
