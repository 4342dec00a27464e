import { Injectable } from '@nestjs/common';
import { Blobs } from '#libs/blobs/src/blobs';
import type { DirectoryRun, DirectoryRunError, DirectoryRunGroups, DirectoryRunUsers } from '#libs/contracts/src/directories/directory-run';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import { timeOfId } from '#libs/platform/src/ids';
import { Log } from '#libs/platform/src/log';
import { SYSTEM_ENVIRONMENT, type Actor, type Upload } from '#libs/platform/src/request-context';
import { Signal } from '#libs/platform/src/signal';
import { contentOf, Fenced, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { ShortLived } from '#libs/read-models/src/short-lived';

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
  /** The lease under which it was stored last: whoever had an earlier one stores no more. */
  readonly fence: number;
}

const RUNS = 'directory_runs';
/** By directory: the run that goes on. */
const CURRENT = 'directory_current_run';
const QUEUE = 'directory_run_queue';
const KEPT_MS = 30 * 24 * 3_600_000;
/** Whoever began one and did not queue it within so long has ended. */
const BEGINNING_MS = 60_000;
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

  /** Asked twice for the same run, it is one. @throws DomainError `directory_run_in_progress` */
  async begin(run: StoredRun): Promise<StoredRun> {
    const { environment, id } = run;
    const known = await this.find(environment, id);
    if (known !== null) return known;
    await this.take(run);
    await this.put(run);
    await this.queue.write([{ environment: SYSTEM_ENVIRONMENT, id, position: '', revision: 0, text: JSON.stringify({ environment }) }]);
    await this.shortLived.durable();
    this.queued.notify();
    return run;
  }

  async find(environment: string, id: string): Promise<StoredRun | null> {
    const entry = await this.shortLived.get(RUNS, keyOf(environment, id));
    return entry === null ? null : (JSON.parse(entry.value) as StoredRun);
  }

  /** Those that go on, the oldest first. */
  async pending(): Promise<readonly { readonly environment: string; readonly id: string }[]> {
    const { rows } = await this.queue.page(SYSTEM_ENVIRONMENT, { order: 'asc', limit: MANY });
    return rows.map((row) => ({ id: row.id, environment: contentOf(row).environment }));
  }

  /** @throws Fenced where another works on it since */
  async save(run: StoredRun): Promise<StoredRun> {
    const entry = await this.shortLived.get(RUNS, keyOf(run.environment, run.id));
    const stored = entry === null ? null : (JSON.parse(entry.value) as StoredRun);
    const saved = { ...run, updated_at: new Date(this.clock.now()).toISOString() };
    const isOurs =
      stored === null ||
      (stored.fence <= run.fence &&
        (await this.shortLived.compareAndSet(RUNS, keyOf(run.environment, run.id), entry!.version, JSON.stringify(saved), this.clock.now() + KEPT_MS)));
    if (!isOurs) throw new Fenced(RUNS, run.fence);
    if (stored === null) await this.put(saved);
    return saved;
  }

  /** It goes on no longer, and another may begin. */
  async leave({ environment, id, directory_id, upload }: StoredRun): Promise<void> {
    await this.blobs.remove(upload.blob);
    const current = keyOf(environment, directory_id);
    if ((await this.shortLived.get(CURRENT, current))?.value === id) await this.shortLived.take(CURRENT, current);
    await this.queue.purge(SYSTEM_ENVIRONMENT, [id]);
  }

  /** One that nothing is known of any more. */
  async forget(id: string): Promise<void> {
    await this.queue.purge(SYSTEM_ENVIRONMENT, [id]);
  }

  /** Removes uploads of requests that were cut off before anybody took them. */
  async removeUnowned(folder: string): Promise<void> {
    const owned = new Set<string>();
    for (const { environment, id } of await this.pending()) owned.add((await this.find(environment, id))?.upload.blob ?? '');
    for await (const { name, storedAt } of this.blobs.list(folder))
      if (storedAt < this.clock.now() - UNOWNED_MS && !owned.has(name)) {
        await this.blobs.remove(name);
        this.log.info('An upload that nobody took was removed.', { blob: name });
      }
  }

  private async put(run: StoredRun): Promise<void> {
    await this.shortLived.put(RUNS, keyOf(run.environment, run.id), JSON.stringify(run), this.clock.now() + KEPT_MS);
  }

  private async take({ environment, id, directory_id }: StoredRun): Promise<void> {
    const key = keyOf(environment, directory_id);
    const expiresAt = this.clock.now() + KEPT_MS;
    const { stored, entry } = await this.shortLived.putIfAbsent(CURRENT, key, id, expiresAt);
    if (stored || entry.value === id) return;
    const isOver = !(await this.isGoingOn(entry.value));
    if (isOver && (await this.shortLived.compareAndSet(CURRENT, key, entry.version, id, expiresAt))) return;
    throw new DomainError('conflict', 'directory_run_in_progress', 'A full listing of this directory is being carried out.', { entity_id: entry.value });
  }

  /** Whoever began it may have ended before it was queued. */
  private async isGoingOn(id: string): Promise<boolean> {
    return timeOfId(id) > this.clock.now() - BEGINNING_MS || (await this.queue.get(SYSTEM_ENVIRONMENT, id)) !== null;
  }
}

function keyOf(environment: string, id: string): string {
  return `${environment} ${id}`;
}

/** With one more fault, of which the first are kept. */
export function withError<Run extends Pick<StoredRun, 'errors' | 'error_count'>>(run: Run, error: DirectoryRunError): Run {
  return { ...run, errors: run.errors.length < MOST_ERRORS ? [...run.errors, error] : run.errors, error_count: run.error_count + 1 };
}
