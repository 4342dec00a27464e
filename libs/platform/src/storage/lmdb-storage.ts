import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { DomainError } from '../domain-error.ts';
import type { Metrics } from '../metrics.ts';
import { StartRefused } from '../start-refused.ts';
import { type DirectoryLock, lockDirectory } from './directory-lock.ts';
import { LmdbEnvironment } from './lmdb-environment.ts';
import { byteTextKeys } from './lmdb-keys.ts';
import { probe } from './lmdb-probe.ts';

/** Counts up whenever a release lays the stored bytes out in a way that an older one cannot read. */
const FORMAT = 1;
const FREE_SPACE_EVERY_MS = 3_000;

/** The directory was written by a later release. */
export class NewerFormat extends StartRefused {
  constructor(directory: string, format: string) {
    super(`${directory} has format ${format}, and this release knows formats up to ${FORMAT}: start the release that wrote it, or a later one.`);
  }
}

/** Opening or reading the data in a child process failed. */
export class DamagedData extends StartRefused {
  constructor(directory: string, detail: string) {
    super(`The data in ${directory} is damaged (${detail}). Nothing was changed: restore a backup, or keep a copy and look with 'gatehouse verify'.`);
  }
}

export interface LmdbStorageOptions {
  readonly directory: string;
  /** Below this many free bytes writes are refused with `storage_full`; reads and sweeps go on. */
  readonly minFree?: number;
  /** The disk failed, or a stored record is damaged: everything is refused from now on, and the process should stop with this sentence. Called once. */
  readonly onFatal?: (sentence: string) => void;
  /** For tests: awaited after each flush, before anybody learns of it. */
  readonly flushGate?: () => Promise<void>;
}

/**
 * Everything that the embedded engines store, in one directory that one process holds:
 *
 * - `log/`: log, short-lived entries, bus, and tables that no rebuild can give back. Flushed before anything is acknowledged.
 * - `views/`: tables that the log can refill. Never flushed while running: their many small index entries would otherwise compete with the log for the
 *   disk. `kill -9` leaves them whole, since the system keeps the pages; after a loss of power (another boot id) they are dropped and filled again.
 */
export class LmdbStorage {
  readonly log: LmdbEnvironment;
  readonly views: LmdbEnvironment;
  /** In bytes, as last seen. */
  private freeSpace = Infinity;
  private failure: string | null = null;
  private readonly closing: (() => Promise<void>)[] = [];
  private readonly freeSpaceTimer: NodeJS.Timeout;

  private constructor(
    private readonly options: LmdbStorageOptions,
    private readonly lock: DirectoryLock,
    /** The last process ended without `close`. */
    readonly afterCrash: boolean,
  ) {
    const { directory, flushGate } = options;
    this.log = new LmdbEnvironment({ path: join(directory, 'log'), onFailure: (reason) => this.fail(reason), flushGate });
    this.views = new LmdbEnvironment({
      path: join(directory, 'views'),
      noSync: true,
      onFailure: (reason) => {
        // A commit is missing while a later one may have got through: only a refill can tell.
        rmSync(join(directory, 'views.state'), { force: true });
        this.fail(reason);
      },
    });
    this.freeSpaceTimer = setInterval(() => void this.watchFreeSpace(), FREE_SPACE_EVERY_MS).unref();
  }

  /** @throws DirectoryHeld, NewerFormat, DamagedData */
  static async open(options: LmdbStorageOptions): Promise<LmdbStorage> {
    const { directory } = options;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const lock = await lockDirectory(directory);
    try {
      checkFormat(directory);
      const afterCrash = isThere(directory, 'log') && readState(directory, 'log.state') !== cleanState(directory);
      if (afterCrash) await probe(join(directory, 'log')).catch((error: Error) => Promise.reject(new DamagedData(directory, error.message)));
      if (!(await viewsAreWhole(directory))) rmSync(join(directory, 'views'), { recursive: true, force: true });
      rmSync(join(directory, 'log.state'), { force: true });
      writeFileSync(join(directory, 'views.state'), bootId());
      const storage = new LmdbStorage(options, lock, afterCrash);
      await storage.watchFreeSpace();
      return storage;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  get directory(): string {
    return this.options.directory;
  }

  /** @throws DomainError `storage_full`, or `service_unavailable` after the disk failed */
  assertWritable(): void {
    this.assertAlive();
    if (this.freeSpace < this.reserve)
      throw new DomainError('unavailable', 'storage_full', 'The disk is nearly full: writes are refused until there is room.', { retryAfter: 30 });
  }

  /** For what must go on while the disk is nearly full: removing, and short-lived entries. @throws DomainError `service_unavailable` after the disk failed */
  assertAlive(): void {
    if (this.failure) throw new DomainError('unavailable', 'service_unavailable', 'The disk failed; the server is stopping.', { retryAfter: 5 });
  }

  /** Nothing is trusted or acknowledged after this. `wayOut`: what whoever reads it should know or do. */
  fail(reason: string, wayOut = 'Everything that was acknowledged is on disk.'): void {
    if (this.failure) return;
    this.failure = reason;
    this.options.onFatal?.(`The data in ${this.directory} cannot be relied on any more (${reason}): the server stops. ${wayOut}`);
  }

  /** Shows how full the disk is, before writes are refused for it. */
  measure(metrics: Metrics): void {
    metrics.gauge({ name: 'disk_free_bytes', help: 'Free disk below DATA_DIR.', collect: (gauge) => gauge.set(this.freeSpace) });
    metrics.gauge({ name: 'disk_reserve_bytes', help: 'Below this much free disk writes are refused.', collect: (gauge) => gauge.set(this.reserve) });
  }

  /** Called by `close` before anything is closed: for what waits to be written. */
  beforeClose(callback: () => Promise<void>): void {
    this.closing.push(callback);
  }

  /** Copies the log environment as of one moment into `path`, which must not exist; not the trees `without`, and no views: both are filled again. */
  async backup(path: string, without: readonly string[] = []): Promise<void> {
    const [whole, target] = [join(path, 'whole'), join(path, 'log')];
    for (const directory of [whole, target]) mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(join(path, 'format'), `${FORMAT}\n`);
    await this.log.backup(whole);
    let failure: string | null = null;
    const copy = new LmdbEnvironment({ path: whole, noSync: true, onFailure: (reason) => (failure = reason) });
    for (const name of without) await copy.db(name, byteTextKeys).drop();
    // Once more, since what was left out still lies in the pages that it had.
    await copy.backup(target);
    await copy.close();
    if (failure !== null) throw new Error(`The copy in ${path} cannot be written (${failure as string}).`);
    rmSync(whole, { recursive: true });
    writeFileSync(join(path, 'log.state'), cleanState(path));
  }

  /** Waits for everything written, and leaves the mark of a clean end. */
  async close(): Promise<void> {
    clearInterval(this.freeSpaceTimer);
    if (!this.failure) for (const callback of this.closing) await callback();
    if (!this.failure) await this.views.sync();
    await this.views.close();
    await this.log.close();
    if (!this.failure) {
      writeFileSync(join(this.directory, 'views.state'), 'clean');
      writeFileSync(join(this.directory, 'log.state'), cleanState(this.directory));
    }
    await this.lock.release();
  }

  private get reserve(): number {
    return this.options.minFree ?? 0;
  }

  /** A directory that cannot be asked says nothing of its space; the next write finds out. */
  private async watchFreeSpace(): Promise<void> {
    const space = await statfs(this.directory).catch(() => null);
    if (space === null) return;
    const { bavail, bsize } = space;
    this.freeSpace = bavail * bsize;
  }
}

function checkFormat(directory: string): void {
  const found = readState(directory, 'format');
  if (found === null) writeFileSync(join(directory, 'format'), `${FORMAT}\n`);
  else if (!(Number(found) <= FORMAT)) throw new NewerFormat(directory, found);
}

function isThere(directory: string, name: string): boolean {
  return existsSync(join(directory, name, 'data.mdb'));
}

/** Whether they are all that was committed; what is dropped is filled again. */
async function viewsAreWhole(directory: string): Promise<boolean> {
  const state = readState(directory, 'views.state');
  if (state === 'clean' || !isThere(directory, 'views')) return true;
  return (
    state === bootId() &&
    (await probe(join(directory, 'views')).then(
      () => true,
      () => false,
    ))
  );
}

function readState(directory: string, file: string): string | null {
  try {
    return readFileSync(join(directory, file), 'utf8').trim();
  } catch {
    return null;
  }
}

/** Length and time of the log's file: a file that was cut or edited since the last clean end is looked at like one after a crash. */
function cleanState(directory: string): string {
  const { size, mtimeMs } = statSync(join(directory, 'log', 'data.mdb'), { throwIfNoEntry: false }) ?? { size: 0, mtimeMs: 0 };
  return `clean ${size} ${mtimeMs}`;
}

/** Changes whenever the machine starts; where the system has none, every start counts as another machine's. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return `none-${process.pid}-${Date.now()}`;
  }
}
