import { Injectable } from '@nestjs/common';
import { Blobs } from '#libs/blobs/src/blobs';
import type { DirectoryRun, DirectoryRunError, DirectoryRunGroups, DirectoryRunUsers } from '#libs/contracts/src/directories/directory-run';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { timeOfId } from '#libs/platform/src/ids';
import { Log } from '#libs/platform/src/log';
import { SYSTEM_ENVIRONMENT, type Actor, type Upload } from '#libs/platform/src/request-context';
import { Signal } from '#libs/platform/src/signal';
import { contentOf, Fenced, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { ShortLived, type Entry } from '#libs/read-models/src/short-lived';

/** What is done one after the other once a listing is accepted: what goes first leaves its names to what comes. */
export const STEPS = ['remove_groups', 'remove_users', 'users', 'users_again', 'groups'] as const;

/** How far a run is: before a kill, or on another replica. */
export interface Checkpoint {
  readonly step: (typeof STEPS)[number];
  /** The last line that is done, or the last row. */
  readonly line: number;
  readonly after: string | null;
}

/** A run as it is kept: short-lived, since it says nothing that the log does not. */
export interface StoredRun extends Omit<DirectoryRun, 'object' | 'phase'> {
  readonly phase: DirectoryRun['phase'];
  readonly environment: string;
  readonly actor: Actor;
  readonly request_id: string;
  readonly upload: Upload;
  readonly force: boolean;
  readonly removal_limit: number;
  /** Null until it is accepted. */
  readonly checkpoint: Checkpoint | null;
  /** The lease under which it is carried out: whoever had an earlier one stores no more of it. */
  readonly fence: number;
}

/** A run as it was found. */
export interface FoundRun {
  readonly run: StoredRun;
  readonly version: number;
}

const RUNS = 'directory_runs';
/** By directory: the last run that was begun. It goes on for as long as it is queued. */
const CURRENT = 'directory_current_run';
const QUEUE = 'directory_run_queue';
const OVER: ReadonlySet<DirectoryRun['phase']> = new Set(['completed', 'refused', 'failed']);
const KEPT_MS = 30 * 24 * 3_600_000;
/** Whoever queued one and did not begin it within so long has ended. */
const UNBEGUN_MS = 3_600_000;
/** An upload that no run has after so long belongs to a request that was cut off. */
const UNOWNED_MS = 24 * 3_600_000;
const MANY = 1_000;
const MOST_ERRORS = 100;
export const NO_USERS: DirectoryRunUsers = { listed: 0, created: 0, updated: 0, unchanged: 0, removed: 0 };
export const NO_GROUPS: DirectoryRunGroups = { ...NO_USERS, members_added: 0, members_removed: 0 };

/** Full listings that are carried out or were: one at a time of each directory. */
@Injectable()
export class DirectoryRuns {
  private readonly queue: Table<{ readonly environment: string }>;
  /** That one was queued here. */
  readonly queued = new Signal();

  constructor(
    private readonly shortLived: ShortLived,
    private readonly blobs: Blobs,
    private readonly clock: Clock,
    private readonly log: Log,
    readModels: ReadModels,
  ) {
    this.queue = readModels.table({ name: QUEUE, indexes: [], guard: 'none', rebuildable: false });
  }

  /**
   * It is queued before it becomes the run of its directory, which is one write: whoever ends between the two leaves a line in the queue that nobody carries out, and a directory that is free.
   * Asked twice for the same run, it is one. Past `deadline` nobody waits for the answer, and another listing may have come since.
   * @throws DomainError `directory_run_in_progress`; `service_unavailable` past the deadline
   */
  async begin(run: StoredRun, deadline: number): Promise<StoredRun> {
    const { environment, id, directory_id } = run;
    const known = await this.begun(environment, id);
    if (known !== null) return known.run;
    await this.refuseBusy(run, await this.shortLived.get(CURRENT, keyOf(environment, directory_id)));
    await this.shortLived.putIfAbsent(RUNS, keyOf(environment, id), JSON.stringify(run), this.clock.now() + KEPT_MS);
    await this.queue.write([{ environment: SYSTEM_ENVIRONMENT, id, position: '', revision: 0, text: JSON.stringify({ environment }) }]);
    await this.take(run, deadline);
    await this.shortLived.durable();
    this.queued.notify();
    return run;
  }

  async find(environment: string, id: string): Promise<StoredRun | null> {
    const entry = await this.shortLived.get(RUNS, keyOf(environment, id));
    return entry === null ? null : (JSON.parse(entry.value) as StoredRun);
  }

  /** Those that go on or are to be left, the oldest first. */
  async pending(): Promise<readonly FoundRun[]> {
    const { rows } = await this.queue.page(SYSTEM_ENVIRONMENT, { order: 'asc', limit: MANY });
    const queued = rows.map((row) => ({ id: row.id, environment: contentOf(row).environment }));
    const found = await Promise.all(queued.map(({ environment, id }) => this.begun(environment, id)));
    for (const [place, { environment, id }] of queued.entries())
      if (found[place] === null && timeOfId(id) < this.clock.now() - UNBEGUN_MS) await this.forget(environment, id);
    return found.filter((run) => run !== null);
  }

  /**
   * A run that is carried out, or left, under this lease: from here on whoever had an earlier one stores nothing of it. Null where there is nothing to carry out.
   * @throws Fenced where another has it under a later lease
   */
  async takeOver(found: FoundRun, fence: number): Promise<StoredRun | null> {
    const { environment, id } = found.run;
    for (let now: FoundRun | null = found; now !== null; now = await this.begun(environment, id)) {
      const { run, version } = now;
      if (isOver(run)) return run;
      if (run.fence > fence) throw new Fenced(RUNS, fence);
      const ours = { ...run, fence };
      // Whoever had it may have stored something since it was found, or do so at this very moment. While it is as it was found, it is the run of its directory.
      if (await this.shortLived.compareAndSet(RUNS, keyOf(environment, id), version, JSON.stringify(ours), this.clock.now() + KEPT_MS)) return ours;
    }
    return null;
  }

  /** @throws Fenced where another works on it since */
  async save(run: StoredRun): Promise<StoredRun> {
    const key = keyOf(run.environment, run.id);
    const entry = await this.shortLived.get(RUNS, key);
    const saved = { ...run, updated_at: new Date(this.clock.now()).toISOString() };
    const isOurs =
      entry !== null &&
      (JSON.parse(entry.value) as StoredRun).fence === run.fence &&
      (await this.shortLived.compareAndSet(RUNS, key, entry.version, JSON.stringify(saved), this.clock.now() + KEPT_MS));
    if (!isOurs) throw new Fenced(RUNS, run.fence);
    return saved;
  }

  /** One that is over goes on no longer, and another may begin. */
  async leave({ id, upload }: StoredRun): Promise<void> {
    await this.blobs.remove(upload.blob);
    await this.queue.purge(SYSTEM_ENVIRONMENT, [id]);
  }

  /** Removes uploads of requests that were cut off before anybody took them. */
  async removeUnowned(folder: string): Promise<void> {
    const owned = new Set<string>();
    for (const { run } of await this.pending()) owned.add(run.upload.blob);
    for await (const { name, storedAt } of this.blobs.list(folder))
      if (storedAt < this.clock.now() - UNOWNED_MS && !owned.has(name)) {
        await this.blobs.remove(name);
        this.log.info('An upload that nobody took was removed.', { blob: name });
      }
  }

  /** Whoever ended it may not have left it yet. */
  private async goesOn(environment: string, id: string): Promise<boolean> {
    const [queued, run] = await Promise.all([this.queue.get(SYSTEM_ENVIRONMENT, id), this.find(environment, id)]);
    return queued !== null && run !== null && !isOver(run);
  }

  /** Null where it was not begun, or is no more. */
  private async begun(environment: string, id: string): Promise<FoundRun | null> {
    const entry = await this.shortLived.get(RUNS, keyOf(environment, id));
    if (entry === null) return null;
    const run = JSON.parse(entry.value) as StoredRun;
    return isOver(run) || (await this.current(environment, run.directory_id)) === id ? { run, version: entry.version } : null;
  }

  private async current(environment: string, directoryId: string): Promise<string | null> {
    return (await this.shortLived.get(CURRENT, keyOf(environment, directoryId)))?.value ?? null;
  }

  /** @throws DomainError */
  private async take(run: StoredRun, deadline: number): Promise<void> {
    const { environment, id, directory_id } = run;
    const key = keyOf(environment, directory_id);
    for (;;) {
      const entry = await this.shortLived.get(CURRENT, key);
      if (entry?.value === id) return;
      await this.refuseBusy(run, entry);
      // Asked behind the read: whoever is paused from here on meets what was begun meanwhile.
      const now = this.clock.now();
      if (now > deadline) throw unavailable('The listing was not begun in time.');
      const isTaken =
        entry === null
          ? (await this.shortLived.putIfAbsent(CURRENT, key, id, now + KEPT_MS)).stored
          : await this.shortLived.compareAndSet(CURRENT, key, entry.version, id, now + KEPT_MS);
      if (isTaken) return;
    }
  }

  /** @throws DomainError `directory_run_in_progress` */
  private async refuseBusy({ environment, id }: StoredRun, current: Entry | null): Promise<void> {
    if (current !== null && current.value !== id && (await this.goesOn(environment, current.value)))
      throw new DomainError('conflict', 'directory_run_in_progress', 'A full listing of this directory is being carried out.', { entity_id: current.value });
  }

  /** One that nobody carries out. */
  private async forget(environment: string, id: string): Promise<void> {
    await this.shortLived.take(RUNS, keyOf(environment, id));
    await this.queue.purge(SYSTEM_ENVIRONMENT, [id]);
  }
}

/** Whether nothing more becomes of it. */
export function isOver({ phase }: Pick<StoredRun, 'phase'>): boolean {
  return OVER.has(phase);
}

function keyOf(environment: string, id: string): string {
  return `${environment} ${id}`;
}

/** With one more fault, of which the first are kept. */
export function withError<Run extends Pick<StoredRun, 'errors' | 'error_count'>>(run: Run, error: DirectoryRunError): Run {
  return { ...run, errors: run.errors.length < MOST_ERRORS ? [...run.errors, error] : run.errors, error_count: run.error_count + 1 };
}
