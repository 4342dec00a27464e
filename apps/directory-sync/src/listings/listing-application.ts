import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { DirectoryRunError } from '#libs/contracts/src/directories/directory-run';
import { decidedWhile } from '#libs/event-sourcing/src/deciding/decided-while';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { newCommandId } from '#libs/platform/src/ids';
import { inTurns } from '#libs/platform/src/in-turns';
import type { RequestContext } from '#libs/platform/src/request-context';
import { TimeSlicer } from '#libs/platform/src/time-slicer';
import { contentOf, ReadModels, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import {
  changeDirectoryGroup,
  createDirectoryGroup,
  deleteDirectoryGroup,
  directoryGroupDecider,
  MembersOutrun,
  type StoredDirectoryGroup,
} from '../domain/directory-group.decider.ts';
import {
  changeDirectoryUser,
  createDirectoryUser,
  deleteDirectoryUser,
  directoryUserDecider,
  idpIdOf,
  type StoredDirectoryUser,
} from '../domain/directory-user.decider.ts';
import type { StoredDirectory } from '../domain/directory.decider.ts';
import type { ListedUser } from '../domain/listing-entry.decider.ts';
import { ScimError } from '../domain/scim-domain-error.ts';
import { textOf } from '../domain/scim-values.decider.ts';
import { GroupCleaning } from '../people/group-cleaning.ts';
import { GroupMembers } from '../readers/group-members.ts';
import { directoryGroupsView } from '../views/directory-groups.view.ts';
import { directoryUsersView } from '../views/directory-users.view.ts';
import { STEPS, withError, type Checkpoint, type StoredRun } from './directory-runs.ts';
import { ListingComparison, type Compared, type GroupOfListing } from './listing-comparison.ts';
import { Numbers } from './known-keys.ts';
import { contextOf, createdId } from './run-contexts.ts';

/** Changes that are on their way at once. */
const AT_ONCE = 64;
const ROWS_AT_ONCE = 500;
/** After so many it is stored how far it is. */
const USERS_AT_ONCE = 256;
const LINES_AT_ONCE = 5_000;
/** Ids in one record of a change of members. */
const MOST_IN_RECORD = 10_000;
const PAUSE_MS = 5;

/** A run that is carried out. */
export interface RunningRun {
  readonly run: StoredRun;
  /** @throws what stops the work, where it is not for certain ours any more */
  readonly held: () => void;
  /** The directory as it is. @throws RunFailed where nothing is taken any more, and what stops the work */
  readonly directory: () => Promise<StoredDirectory>;
  /** Stores how far it is. @throws Fenced */
  readonly reached: (run: StoredRun) => Promise<void>;
}

/** People whose names are somebody else's, in one round. */
class RefusedNames {
  readonly ordinals = new Numbers();
  private faults: Pick<StoredRun, 'errors' | 'error_count'> = { errors: [], error_count: 0 };

  add(ordinal: number, error: DirectoryRunError): void {
    this.ordinals.add(ordinal);
    this.faults = withError(this.faults, error);
  }

  toldOf(run: StoredRun): StoredRun {
    const { errors, error_count } = this.faults;
    return { ...errors.reduce<StoredRun>(withError, run), error_count: run.error_count + error_count };
  }
}

/** Makes a directory what its listing says. It may end anywhere, and go on from its checkpoint: what was done is met as done. */
@Injectable()
export class ListingApplication {
  private readonly users: Table<StoredDirectoryUser>;
  private readonly groups: Table<StoredDirectoryGroup>;

  constructor(
    private readonly repository: Repository,
    private readonly comparison: ListingComparison,
    private readonly members: GroupMembers,
    private readonly cleaning: GroupCleaning,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.users = readModels.table(tableOf(directoryUsersView));
    this.groups = readModels.table(tableOf(directoryGroupsView));
  }

  async apply(running: RunningRun, compared: Compared): Promise<StoredRun> {
    let { run } = running;
    // Of those whose names were taken, most are free once the others are done.
    const refused = new RefusedNames();
    const from = STEPS.indexOf(run.checkpoint!.step);
    // After a kill nobody knows any more whose names were taken: all who still differ are tried.
    const isBegun = from >= STEPS.indexOf('users');
    for (const [place, step] of STEPS.entries()) {
      if (place < from) continue;
      if (place > from) run = { ...run, checkpoint: { step, line: 0, after: null } };
      const at = { ...running, run };
      if (step === 'remove_groups') run = compared.saysGroups ? await this.remove(at, this.groups, (row) => this.removeGroup(at, compared, row)) : run;
      else if (step === 'remove_users') run = await this.remove(at, this.users, (row) => this.removeUser(at, compared, row));
      else if (step === 'users') run = await this.applyUsers(at, compared, { asked: compared.changedUsers, refused });
      else if (step === 'users_again') run = await this.applyAgain(at, compared, isBegun ? compared.changedUsers : refused.ordinals);
      else run = await this.applyGroups(at, compared);
    }
    return run;
  }

  private async remove<Row>({ run: begun, reached, directory }: RunningRun, rows: Table<Row>, one: (row: StoredRow<Row>) => Promise<void>): Promise<StoredRun> {
    let run = begun;
    const where = { index: 'directory', values: [run.directory_id] };
    // Where nobody goes and everything is in memory or mapped, nothing else would let others have their turn.
    const slicer = new TimeSlicer();
    for (let more = true; more;) {
      await slicer.step();
      await directory();
      const page = await rows.page(run.environment, { where, order: 'asc', limit: ROWS_AT_ONCE, after: run.checkpoint!.after ?? undefined });
      await inTurns(page.rows, AT_ONCE, one);
      run = { ...run, checkpoint: { ...run.checkpoint!, after: page.rows.at(-1)?.id ?? run.checkpoint!.after } };
      await reached(run);
      more = page.hasAfter;
    }
    return run;
  }

  /** What came by SCIM after the listing, the listing cannot know. */
  private async removeUser({ run, held }: RunningRun, { userKeys }: Compared, row: StoredRow<StoredDirectoryUser>): Promise<void> {
    const user = contentOf(row);
    if (user.created_at > run.created_at || userKeys.find(idpIdOf(user)) !== null) return;
    await this.repository.transact(directoryUserDecider, this.contextOf(run, 'remove', user.id), user.id, decidedWhile(held, deleteDirectoryUser(undefined)));
    await this.cleaning.leaveGroups(run.environment, user.id);
  }

  private async removeGroup({ run, held }: RunningRun, { groupKeys }: Compared, row: StoredRow<StoredDirectoryGroup>): Promise<void> {
    const group = contentOf(row);
    if (group.created_at > run.created_at || groupKeys.find(textOf(group.attributes['externalId']) ?? group.id) !== null) return;
    await this.repository.transact(
      directoryGroupDecider,
      this.contextOf(run, 'remove', group.id),
      group.id,
      decidedWhile(held, deleteDirectoryGroup(undefined)),
    );
  }

  /** Whose name is held by somebody who waits for a name as well, waits for another round. Nobody gets one that goes round in a circle, or that somebody keeps. */
  private async applyAgain(at: RunningRun, compared: Compared, asked: Numbers): Promise<StoredRun> {
    let { run } = at;
    for (let waiting = asked; waiting.size > 0;) {
      const refused = new RefusedNames();
      // Of a round that was broken off, nobody knows who was refused.
      run = await this.applyUsers({ ...at, run: { ...run, checkpoint: { ...run.checkpoint!, line: 0 } } }, compared, { asked: waiting, refused });
      if (refused.ordinals.size === waiting.size) return refused.toldOf(run);
      waiting = refused.ordinals;
    }
    return run;
  }

  private async applyUsers(
    at: RunningRun,
    compared: Compared,
    { asked, refused }: { readonly asked: Numbers; readonly refused: RefusedNames },
  ): Promise<StoredRun> {
    const { reached, directory: current } = at;
    let { run } = at;
    if (asked.size === 0) return run;
    const { line: doneBefore } = run.checkpoint!;
    let waiting: { readonly line: number; readonly ordinal: number; readonly user: ListedUser }[] = [];
    const applyWaiting = async (line: number): Promise<void> => {
      const directory = await current();
      const applied = waiting;
      waiting = [];
      const outcomes = await inTurns(applied, AT_ONCE, ({ ordinal, user }) => this.applyUser(at, compared, { directory, ordinal, user }));
      for (const [place, outcome] of outcomes.entries()) {
        const { ordinal, line: of } = applied[place]!;
        if (outcome === null) continue;
        if (outcome.code === 'uniqueness') refused.add(ordinal, { line: of, ...outcome });
        else run = withError(run, { line: of, ...outcome });
      }
      run = { ...run, lines: line, checkpoint: { ...run.checkpoint!, line } };
      await reached(run);
    };
    let last = doneBefore;
    for await (const { line, changed } of this.comparison.usersOf(run, compared)) {
      if (line <= doneBefore) continue;
      last = line;
      if (changed !== null && asked.has(changed.ordinal)) waiting.push({ line, ...changed });
      if (waiting.length === USERS_AT_ONCE || line - run.checkpoint!.line >= LINES_AT_ONCE) await applyWaiting(line);
    }
    await applyWaiting(last);
    return run;
  }

  /** Null where it is done. */
  private async applyUser(
    { run, held }: RunningRun,
    { userIds, knownUsers }: Compared,
    { directory, ordinal, user }: { readonly directory: StoredDirectory; readonly ordinal: number; readonly user: ListedUser },
  ): Promise<{ readonly code: string; readonly message: string } | null> {
    const context = this.contextOf(run, 'directory_user', ordinal);
    const id = `directory_user_${userIds.get(ordinal)}`;
    const made = createdId(run, 'directory_user', ordinal);
    const create = (): Promise<unknown> =>
      this.repository.transact(directoryUserDecider, context, made, decidedWhile(held, createDirectoryUser(directory, user.attributes)));
    const change = async (): Promise<void> => {
      const own = this.contextOf(run, 'change', ordinal);
      await this.repository.transact(
        directoryUserDecider,
        own,
        id,
        decidedWhile(
          held,
          changeDirectoryUser(directory, undefined, () => user.attributes),
        ),
      );
    };
    try {
      if (!knownUsers.has(ordinal)) await create();
      // Whoever was deleted since it was compared is new.
      else await change().catch((error: unknown) => (isGone(error) ? create() : Promise.reject(error as Error)));
      return null;
    } catch (error) {
      if (isGone(error)) return { code: 'deleted_meanwhile', message: 'The person was deleted by SCIM after the listing.' };
      if (error instanceof ScimError) return { code: error.scimType ?? 'refused', message: error.message };
      throw error;
    }
  }

  private async applyGroups(at: RunningRun, compared: Compared): Promise<StoredRun> {
    const { reached, directory: current } = at;
    let { run } = at;
    if (!compared.saysGroups) return run;
    const { line: doneBefore } = run.checkpoint!;
    for await (const listed of this.comparison.groupsOf(run, compared)) {
      if (listed.line <= doneBefore || !compared.changedGroups.has(listed.ordinal)) continue;
      try {
        await this.applyGroup(at, await current(), listed);
      } catch (error) {
        if (!(error instanceof ScimError)) throw error;
        const code = isGone(error) ? 'deleted_meanwhile' : (error.scimType ?? 'refused');
        run = withError(run, { line: compared.namedGroups.size > 0 ? null : listed.line, code, message: error.message });
      }
      const checkpoint: Checkpoint = { ...run.checkpoint!, line: listed.line };
      run = { ...run, lines: listed.line, checkpoint };
      await reached(run);
    }
    return run;
  }

  private async applyGroup({ run, held }: RunningRun, directory: StoredDirectory, { ordinal, group, memberIds }: GroupOfListing): Promise<void> {
    const { environment } = run;
    // Whoever could not be made is in no group.
    const wanted = await this.members.living(environment, memberIds);
    const known = await this.comparison.groupByKey(run, group.key);
    const id = known?.id ?? createdId(run, 'directory_group', ordinal);
    if (known === null) {
      const context = this.contextOf(run, 'directory_group', ordinal);
      const create = createDirectoryGroup(directory, group.attributes, wanted.slice(0, MOST_IN_RECORD));
      await this.repository.transact(directoryGroupDecider, context, id, decidedWhile(held, create));
    }
    const after = new Set(wanted);
    for (;;) {
      const found = await this.repository.load(directoryGroupDecider, environment, id);
      const before = await this.members.all(environment, id);
      const added = wanted.filter((each) => !before.has(each));
      const removed = [...before].filter((each) => !after.has(each));
      const first = removed.slice(0, MOST_IN_RECORD);
      const change = { removed: first, added: added.slice(0, MOST_IN_RECORD - first.length) };
      try {
        const seen = { version: found?.object === 'directory_group' ? found.version : 0, change };
        const context: RequestContext = { ...this.contextOf(run, 'change', ordinal), commandId: newCommandId(this.clock.now()) };
        await this.repository.transact(
          directoryGroupDecider,
          context,
          id,
          decidedWhile(
            held,
            changeDirectoryGroup(undefined, () => group.attributes, seen),
          ),
        );
        if (added.length + removed.length <= MOST_IN_RECORD) return;
      } catch (error) {
        if (!(error instanceof MembersOutrun)) throw error;
        await pause(Math.random() * PAUSE_MS);
      }
    }
  }

  private contextOf(run: StoredRun, what: string, ordinal: number | string): RequestContext {
    return contextOf(run, what, ordinal, this.clock.now());
  }
}

function isGone(error: unknown): boolean {
  return error instanceof ScimError && error.status === 404;
}
