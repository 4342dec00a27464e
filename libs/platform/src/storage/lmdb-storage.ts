import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, rename, rm, rmdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { DomainError } from '../domain-error.ts';
import type { Log } from '../log.ts';
import type { Metrics } from '../metrics.ts';
import { StartRefused } from '../start-refused.ts';
import { expectEmpty } from './empty-directory.ts';
import { compactEnvironment, ErasableEnvironment } from './erasable-environment.ts';
import { type DirectoryLock, LOCK, lockDirectory, type TryLock } from './kernel-lock.ts';
import { LmdbEnvironment } from './lmdb-environment.ts';
import { probe } from './lmdb-probe.ts';

/** The format of a directory counts up where it is laid out in a way that an older release cannot read, at the first change that is written so. */
export const FORMATS = { keysTogether: 2, recordsAsLists: 3 } as const;
const FORMAT = Math.max(...Object.values(FORMATS));
/** Free space and owner. */
const WATCH_EVERY_MS = 3_000;
const TAKEN_OVER = 'another process has opened it';
/** Is there from an erasure on, until the file of the views is a copy without what was erased. */
const OWED = 'views.owed';
const COMPACTED = 'views.compacted';
/** Where a restore puts what it copies, until all of it is there. */
const RESTORING = 'restoring';
/** Of a file's mode: what anybody but its owner may do. */
const FOR_OTHERS = 0o077;

/** The directory was written by a later release. */
export class NewerFormat extends StartRefused {
  constructor(directory: string, format: string) {
    super(`${directory} has format ${format}, and this release knows formats up to ${FORMAT}: start the release that wrote it, or a later one.`);
  }
}

/** Others may enter the directory, and it cannot be closed to them. */
class OpenToOthers extends StartRefused {
  constructor(directory: string, mode: number) {
    super(
      `Other users may enter ${directory} (mode ${mode.toString(8)}), and this user cannot change that: 'chmod 700' it, or set DATA_DIR to a directory below it.`,
    );
  }
}

/** A restore into the directory was cut short: whoever began on it would begin with nothing, or with a part. */
class UnfinishedRestore extends StartRefused {
  constructor(directory: string) {
    super(`${directory} holds a restore that was cut short: run it again, or empty the directory.`);
  }
}

/** Opening or reading the data in a child process failed. */
export class DamagedData extends StartRefused {
  constructor(directory: string, detail: string) {
    super(`The data in ${directory} is damaged (${detail}). Nothing was changed: restore a backup, or keep a copy and look with 'gatehouse verify'.`);
  }
}

class DamagedKeys extends StartRefused {
  constructor(path: string, detail: string) {
    super(`The data keys in ${path} are damaged (${detail}): put them back from the backup of the keys.`);
  }
}

export interface LmdbStorageOptions {
  readonly directory: string;
  /** Below this many free bytes writes are refused with `storage_full`; reads and sweeps go on. */
  readonly minFree?: number;
  /** Milliseconds that another process on the directory has to end, before this one is refused. */
  readonly wait?: number;
  readonly log?: Log;
  /** The disk failed, or a stored record is damaged: everything is refused from now on, and the process should stop with this sentence. Called once. */
  readonly onFatal?: (sentence: string) => void;
  /** For tests: awaited after each flush, before anybody learns of it. */
  readonly flushGate?: () => Promise<void>;
  /** For tests: stands for a file system without locks. */
  readonly tryLock?: TryLock;
}

/**
 * Everything that the embedded engines store, in one directory that one process holds:
 *
 * - `log/`: log, short-lived entries, and tables that no rebuild can give back. Flushed before anything is acknowledged.
 * - `views/`: tables that the log can refill. Never flushed while running: their many small index entries would otherwise compete with the log for the
 *   disk. `kill -9` leaves them whole, since the system keeps the pages; after a loss of power (another boot id) they are dropped and filled again.
 * - `keys/`: data keys, apart from what they seal: destroyed ones leave nothing behind, and they are backed up by themselves.
 */
export class LmdbStorage {
  readonly log: LmdbEnvironment;
  readonly views: LmdbEnvironment;
  private openedKeys: ErasableEnvironment | null = null;
  /** In bytes, as last seen. */
  private freeSpace = Infinity;
  private failure: string | null = null;
  private isCompactionOwed: boolean;
  private readonly closing: (() => Promise<void>)[] = [];
  private readonly watchTimer: NodeJS.Timeout;

  private constructor(
    private readonly options: LmdbStorageOptions,
    private readonly lock: DirectoryLock,
    /** The last process ended without `close`. */
    readonly afterCrash: boolean,
    /** Of what is written. */
    private format: number,
  ) {
    const { directory, flushGate } = options;
    this.isCompactionOwed = existsSync(join(directory, OWED));
    const onTakenOver = (): void => this.takenOver();
    this.log = new LmdbEnvironment({ path: join(directory, 'log'), onFailure: (reason) => this.fail(reason), onTakenOver, flushGate });
    this.views = new LmdbEnvironment({
      path: join(directory, 'views'),
      noSync: true,
      onTakenOver,
      onFailure: (reason) => {
        // A commit is missing while a later one may have got through: only a refill can tell.
        rmSync(join(directory, 'views.state'), { force: true });
        this.fail(reason);
      },
    });
    this.watchTimer = setInterval(() => {
      this.watchOwner();
      void this.watchFreeSpace();
    }, WATCH_EVERY_MS).unref();
  }

  /** @throws OpenToOthers, DirectoryHeld, UnfinishedRestore, NewerFormat, DamagedData */
  static async open(options: LmdbStorageOptions): Promise<LmdbStorage> {
    const { directory, log } = options;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    closeToOthers(directory, log);
    const lock = await lockDirectory(directory, options);
    try {
      if (existsSync(join(directory, RESTORING))) throw new UnfinishedRestore(directory);
      expectKnownFormat(directory);
      // Nothing of an earlier release lies there.
      if (readState(directory, 'format') === null) writeFormat(directory, FORMAT);
      const afterCrash = isThere(directory, 'log') && readState(directory, 'log.state') !== cleanState(directory, 'log');
      if (afterCrash) await probe(join(directory, 'log')).catch((error: Error) => Promise.reject(new DamagedData(directory, error.message)));
      if (isThere(directory, 'keys') && readState(directory, 'keys.state') !== cleanState(directory, 'keys'))
        await probe(keysIn(directory)).catch((error: Error) => Promise.reject(new DamagedKeys(keysIn(directory), error.message)));
      await openableViews(directory, log);
      for (const name of ['log', 'keys']) rmSync(join(directory, `${name}.state`), { force: true });
      writeFileSync(join(directory, 'views.state'), bootId());
      const storage = new LmdbStorage(options, lock, afterCrash, Number(readState(directory, 'format')));
      await storage.openKeys();
      await storage.watchFreeSpace();
      return storage;
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /**
   * Fills a directory that holds no data with what `copy` writes where it is told to, under the lock, so that nobody begins on it meanwhile. The directory stays the one
   * that it is: it may be a volume, or lead to one. Cut short, it keeps everybody away but another restore.
   * @throws OpenToOthers, DirectoryHeld, StartRefused when it holds something
   */
  static async restore({ directory, log }: Pick<LmdbStorageOptions, 'directory' | 'log'>, copy: (into: string) => Promise<void>): Promise<void> {
    await expectRestorable(directory);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    closeToOthers(directory, log);
    const lock = await lockDirectory(directory, { log });
    try {
      await expectRestorable(directory);
      const unfinished = join(directory, RESTORING);
      for (const name of (await readdir(directory)).filter((each) => each !== LOCK && each !== RESTORING)) await rm(join(directory, name), { recursive: true });
      await rm(unfinished, { recursive: true, force: true });
      await mkdir(unfinished, { mode: 0o700 });
      await copy(unfinished);
      for (const name of await readdir(unfinished)) await rename(join(unfinished, name), join(directory, name));
      await rmdir(unfinished);
    } finally {
      lock.release();
    }
  }

  get directory(): string {
    return this.options.directory;
  }

  get keys(): ErasableEnvironment {
    return this.openedKeys!;
  }

  leaveReleasesBefore(format: number): void {
    if (this.format >= format) return;
    writeFormat(this.directory, format);
    this.format = format;
  }

  /** The views were made to forget something, which lies in free pages of their file from then on: the next start after a clean end copies what is left. Durable. */
  owesCompaction(): void {
    if (this.isCompactionOwed) return;
    writeFileSync(join(this.directory, OWED), '', { flush: true });
    this.isCompactionOwed = true;
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

  /** Copies the log environment as of one moment into `path`, which must not exist, without the pages of what was removed; and no views: they are filled again. */
  async backup(path: string): Promise<void> {
    const target = join(path, 'log');
    mkdirSync(target, { recursive: true, mode: 0o700 });
    await this.log.backup(target);
    // As it is now: what was appended meanwhile may be of a later one.
    writeFileSync(join(path, 'format'), `${this.format}\n`);
    writeFileSync(join(path, 'log.state'), cleanState(path, 'log'));
  }

  /** Waits for everything written, and leaves the mark of a clean end. */
  async close(): Promise<void> {
    clearInterval(this.watchTimer);
    // Whoever took over has marks of its own.
    this.watchOwner();
    if (!this.failure) for (const callback of this.closing) await callback();
    if (!this.failure) await this.views.sync();
    await this.views.close();
    await this.log.close();
    await this.openedKeys?.close();
    if (!this.failure) {
      writeFileSync(join(this.directory, 'views.state'), 'clean');
      for (const name of ['log', 'keys']) writeFileSync(join(this.directory, `${name}.state`), cleanState(this.directory, name));
    }
    this.lock.release();
  }

  private async openKeys(): Promise<void> {
    const path = keysIn(this.directory);
    try {
      this.openedKeys = await ErasableEnvironment.open({ path, onFailure: (reason) => this.fail(reason), onTakenOver: () => this.takenOver() });
    } catch (error) {
      clearInterval(this.watchTimer);
      for (const environment of [this.views, this.log]) await environment.close();
      throw error;
    }
  }

  private get reserve(): number {
    return this.options.minFree ?? 0;
  }

  /** Of two processes on one directory the one that does nothing stops too. */
  private watchOwner(): void {
    for (const environment of [this.log, this.views]) environment.watchOwner();
  }

  private takenOver(): void {
    this.fail(TAKEN_OVER, "Everything that was acknowledged is on disk. Let only one process use a DATA_DIR; in Kubernetes, set 'strategy: Recreate'.");
  }

  /** A directory that cannot be asked says nothing of its space; the next write finds out. */
  private async watchFreeSpace(): Promise<void> {
    const space = await statfs(this.directory).catch(() => null);
    if (space === null) return;
    const { bavail, bsize } = space;
    this.freeSpace = bavail * bsize;
  }
}

/** Views hold names and addresses in clear, and the keys lie beside the log: a directory that is older, or made by hand, may let everybody in. @throws OpenToOthers */
function closeToOthers(directory: string, log?: Log): void {
  // Windows has no such modes.
  const modeOf = (): number => (process.platform === 'win32' ? 0 : statSync(directory).mode & 0o7777);
  const found = modeOf();
  if ((found & FOR_OTHERS) === 0) return;
  try {
    chmodSync(directory, found & ~FOR_OTHERS);
  } catch {
    // Its mode tells.
  }
  if ((modeOf() & FOR_OTHERS) !== 0) throw new OpenToOthers(directory, found);
  log?.warn(`Other users could enter ${directory} (mode ${found.toString(8)}); from now on only its owner can.`);
}

/** What lies beside a restore that was cut short is of that restore. */
async function expectRestorable(directory: string): Promise<void> {
  if (!existsSync(join(directory, RESTORING))) await expectEmpty(directory, [LOCK]);
}

/** For a data directory, and the copy of one in a backup. @throws NewerFormat */
export function expectKnownFormat(directory: string): void {
  const found = readState(directory, 'format');
  if (found !== null && !(Number(found) <= FORMAT)) throw new NewerFormat(directory, found);
}

/** Durable, and at no moment empty. */
function writeFormat(directory: string, format: number): void {
  const path = join(directory, 'format');
  writeFileSync(`${path}.new`, `${format}\n`, { flush: true });
  renameSync(`${path}.new`, path);
}

/** Where the data keys of a data directory lie, each wrapped by a master key. */
export function keysIn(directory: string): string {
  return join(directory, 'keys');
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

/**
 * Drops views that are not whole, and copies those compactly that were made to forget something. After a crash they wait for the next clean end: until what it left in
 * runs is in its place, they name what is to be forgotten.
 */
async function openableViews(directory: string, log?: Log): Promise<void> {
  const isClean = readState(directory, 'views.state') === 'clean';
  rmSync(join(directory, COMPACTED), { recursive: true, force: true });
  if (!(await viewsAreWhole(directory))) rmSync(join(directory, 'views'), { recursive: true, force: true });
  const isThereStill = isThere(directory, 'views');
  if (!existsSync(join(directory, OWED)) || (isThereStill && !isClean)) return;
  if (isThereStill) {
    const began = performance.now();
    await compactEnvironment(join(directory, 'views'), join(directory, COMPACTED));
    log?.info('The views were copied without what was erased.', { milliseconds: Math.round(performance.now() - began) });
  }
  rmSync(join(directory, OWED));
}

function readState(directory: string, file: string): string | null {
  try {
    return readFileSync(join(directory, file), 'utf8').trim();
  } catch {
    return null;
  }
}

/** Length and time of the file: one that was cut or edited since the last clean end is looked at like one after a crash. */
function cleanState(directory: string, name: string): string {
  const { size, mtimeMs } = statSync(join(directory, name, 'data.mdb'), { throwIfNoEntry: false }) ?? { size: 0, mtimeMs: 0 };
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
