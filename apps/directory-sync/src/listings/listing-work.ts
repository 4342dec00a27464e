import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { DirectoryRun } from '#libs/contracts/src/directories/directory-run';
import { decidedWhile } from '#libs/event-sourcing/src/deciding/decided-while';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Clock } from '#libs/platform/src/clock';
import { isUnavailable } from '#libs/platform/src/domain-error';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import { Log } from '#libs/platform/src/log';
import { LeasedWork } from '#libs/read-models/src/leased-work';
import { Leases } from '#libs/read-models/src/leases';
import { Fenced } from '#libs/read-models/src/read-models';
import { acceptCredentials, directoryDecider, type StoredDirectory } from '../domain/directory.decider.ts';
import { DirectoryReader } from '../readers/directory-reader.ts';
import { DirectoryRuns, isOver, withError, type FoundRun, type StoredRun } from './directory-runs.ts';
import { ListingApplication } from './listing-application.ts';
import { ListingComparison, type Compared } from './listing-comparison.ts';
import { LISTINGS_FOLDER } from './listings.ts';
import { contextOf, RunFailed } from './run-contexts.ts';

/** So that a long listing does not hold up a short one of somebody else. */
const RUNS_AT_ONCE = 2;
/** How soon one is met that another replica queued. */
const LOOK_EVERY_MS = 1_000;
/** A fault of ours is met again at each try. */
const TRIES = 3;
/** How much is done again at most after a kill, and how often somebody who asks sees more. */
const SAVE_EVERY_MS = 1_000;
const CLEAN_EVERY_MS = 3_600_000;

/** The work was given up: its lease is another's, or the process stops. */
class Stopped extends Error {}

/** Carries out full listings, on one replica at a time. */
@Injectable()
export class ListingWork implements BackgroundComponent {
  readonly name = 'directory-listings';
  readonly stage = 'work';
  private readonly leased: LeasedWork;
  /** How often each failed here in a row, other than because something was away. */
  private readonly failures = new Map<string, number>();

  constructor(
    private readonly runs: DirectoryRuns,
    private readonly comparison: ListingComparison,
    private readonly application: ListingApplication,
    private readonly directories: DirectoryReader,
    private readonly repository: Repository,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly leases: Leases,
  ) {
    this.leased = new LeasedWork(this.name, (signal, token) => this.work(signal, token), { leases, log });
  }

  start(): Promise<void> {
    return this.leased.start();
  }

  stop(): Promise<void> {
    return this.leased.stop();
  }

  private async work(signal: AbortSignal, token: number): Promise<void> {
    const running = new Map<string, Promise<void>>();
    const ended = new AbortController();
    try {
      await this.carryOutAll(running, { signal: AbortSignal.any([signal, ended.signal]), token });
    } finally {
      // Also where it failed: what is under way stops before this work begins again.
      ended.abort();
      await Promise.all(running.values());
    }
  }

  private async carryOutAll(running: Map<string, Promise<void>>, { signal, token }: { readonly signal: AbortSignal; readonly token: number }): Promise<void> {
    for (let cleanAt = performance.now() + CLEAN_EVERY_MS; !signal.aborted;) {
      for (const found of await this.runs.pending()) {
        const { id } = found.run;
        if (running.size >= RUNS_AT_ONCE) break;
        if (running.has(id)) continue;
        const done = this.carryOut(found, { signal, token }).finally(() => running.delete(id));
        running.set(id, done);
      }
      if (performance.now() >= cleanAt) {
        cleanAt = performance.now() + CLEAN_EVERY_MS;
        await this.runs.removeUnowned(LISTINGS_FOLDER).catch((error: unknown) => this.log.debug('Uploads could not be looked through.', { error }));
      }
      const over = new AbortController();
      await Promise.race([this.runs.queued.next(AbortSignal.any([signal, over.signal])), pause(LOOK_EVERY_MS), ...running.values()]);
      over.abort();
    }
  }

  /** Never throws: what cannot be done now is tried again. */
  private async carryOut(found: FoundRun, { signal, token }: { readonly signal: AbortSignal; readonly token: number }): Promise<void> {
    const { id } = found.run;
    try {
      const run = await this.runs.takeOver(found, token);
      if (run === null) return;
      await this.runs.leave(isOver(run) ? run : await this.run(run, signal));
      this.failures.delete(id);
    } catch (error) {
      if (error instanceof Stopped || error instanceof Fenced) return;
      if (isUnavailable(error)) this.log.warn('A listing waits for what is away.', { run: id, error });
      else {
        this.failures.set(id, (this.failures.get(id) ?? 0) + 1);
        this.log.error('A listing failed, and will be tried again.', { run: id, error });
      }
      await pause(LOOK_EVERY_MS);
    }
  }

  private async run(begun: StoredRun, signal: AbortSignal): Promise<StoredRun> {
    let run = begun;
    let savedAt = 0;
    // Whoever was paused for longer than the lease lasts knows at once that it may be another's.
    const held = (): void => {
      if (signal.aborted || !this.leases.isHeld(this.name)) throw new Stopped();
    };
    const directory = async (): Promise<StoredDirectory> => {
      await this.leases.held(this.name, signal);
      held();
      return this.openDirectory(run);
    };
    const save = async (next: StoredRun): Promise<void> => {
      run = await this.runs.save(next);
      savedAt = performance.now();
    };
    const reached = async (next: StoredRun): Promise<void> => {
      run = next;
      if (performance.now() >= savedAt + SAVE_EVERY_MS) await save(next);
    };
    try {
      await directory();
      if ((this.failures.get(run.id) ?? 0) >= TRIES) throw new RunFailed('internal_error', 'It failed by a fault of ours: the log of the server tells more.');
      // Where it goes on after a kill, it was compared and accepted before.
      const isAccepted = run.checkpoint !== null;
      if (!isAccepted) await save({ ...run, phase: 'comparing', errors: [], error_count: 0, lines: 0 });
      let faults: Pick<StoredRun, 'errors' | 'error_count'> = { errors: [], error_count: 0 };
      const compared = await this.comparison.compare(run, {
        onError: (error) => {
          faults = withError(faults, error);
        },
        onLines: async (line) => {
          if (signal.aborted) throw new Stopped();
          if (!isAccepted) await reached({ ...run, lines: line });
        },
      });
      if (!isAccepted) {
        run = { ...run, ...faults, users: compared.users, groups: compared.groups };
        if (faults.error_count > 0) return await this.end(run, 'failed');
        const refusals = run.force ? [] : refusalsOf(run, compared);
        for (const refusal of refusals) run = withError(run, { line: null, ...refusal });
        if (refusals.length > 0) return await this.end(run, 'refused');
        if (run.dry_run) return await this.end(run, 'completed');
        await this.link(run, await directory(), held);
        await save({ ...run, phase: 'applying', lines: 0, checkpoint: { step: 'remove_groups', line: 0, after: null } });
      }
      return await this.end(await this.application.apply({ run, held, directory, reached }, compared), 'completed');
    } catch (error) {
      if (!(error instanceof RunFailed)) throw error;
      return this.end(withError(run, { line: null, code: error.code, message: error.message }), 'failed');
    }
  }

  private end(run: StoredRun, phase: DirectoryRun['phase']): Promise<StoredRun> {
    return this.runs.save({ ...run, phase });
  }

  /** @throws RunFailed */
  private async openDirectory({ environment, directory_id }: StoredRun): Promise<StoredDirectory> {
    const directory = (await this.directories.living(environment, [directory_id])).get(directory_id);
    if (directory === undefined) throw new RunFailed('directory_deleted', 'The directory was deleted meanwhile.');
    if (directory.is_unlinked) throw new RunFailed('directory_unlinked', 'The directory was unlinked meanwhile.');
    return directory;
  }

  /** The first listing that is accepted says that the directory is in use. */
  private async link(run: StoredRun, directory: StoredDirectory, held: () => void): Promise<void> {
    if (directory.is_activated) return;
    const organizations = await this.directories.organizationsOf(run.environment, [directory]);
    const domains = organizations.get(directory.organization_id)?.domains ?? [];
    const context = contextOf(run, 'link', 0, this.clock.now());
    await this.repository.transact(directoryDecider, context, directory.id, decidedWhile(held, acceptCredentials(directory.id, domains)));
  }
}

/** What nobody means to do by mistake. */
function refusalsOf({ removal_limit: limit }: StoredRun, { users, groups, there }: Compared): readonly { readonly code: string; readonly message: string }[] {
  if (users.listed + groups.listed === 0) return [{ code: 'empty_listing', message: 'The listing is empty: `force` carries it out all the same.' }];
  const refusals = [];
  if (users.removed * 100 > limit * (there.active + there.inactive))
    refusals.push({ code: 'removes_too_many_users', message: `More than ${limit} % of the people would go: \`force\` carries it out all the same.` });
  if (groups.removed * 100 > limit * there.groups)
    refusals.push({ code: 'removes_too_many_groups', message: `More than ${limit} % of the groups would go: \`force\` carries it out all the same.` });
  return refusals;
}
