import { getSystemErrorMap } from 'node:util';
import { type Database, open, type RootDatabase, type RootDatabaseOptionsWithPath } from 'lmdb';
import { unavailable } from '../domain-error.ts';

/** Keys as they lie in the tree: compared byte by byte. */
export interface KeyEncoder<Key> {
  writeKey(key: Key, target: Uint8Array, start: number): number;
  readKey(source: Uint8Array, start: number, end: number): Key;
}

/** One tree of an environment. Values are written as bytes and read as whatever the tree decodes them to. */
export type Tree<Key extends number | string | Buffer = string, Value = Buffer> = Omit<Database<Value, Key>, 'put'> & {
  put(key: Key, bytes: Buffer): Promise<boolean>;
};

/** What this file uses of the binding's own object: the one place that learns of a failed flush. */
interface WriteStarter {
  startWriting(instructions: number, callback: (status: number) => unknown): void;
}

/** 0: on disk; 1: committed, the disk still writes; 2: wants a transaction's callback. Everything else is an error. */
const LAST_GOOD_STATUS = 2;

interface Options {
  readonly path: string;
  /** Commits stay in the system's page cache: they outlive this process, but not a loss of power. */
  readonly noSync?: boolean;
  /** For looking, beside the process that writes. */
  readonly readOnly?: boolean;
  /** A commit or flush failed: nothing that this environment was given since then is known to be stored. */
  readonly onFailure: (reason: string) => void;
  /** Awaited after each flush before anybody learns of it; lets the contract tests hold `flushed` back. */
  readonly flushGate?: () => Promise<void>;
}

/**
 * One LMDB environment. All puts of one event turn are one transaction; LMDB writes and flushes it in its own thread, and everybody who wrote in the
 * turn waits for the same promise.
 */
export class LmdbEnvironment {
  private readonly root: RootDatabase<Buffer, Buffer>;
  private readonly turnEnds: (() => void)[] = [];
  private readonly waiting = new Set<(error: Error) => void>();
  private turnFlushed: Promise<void> | null = null;
  private turnCommitted: Promise<void> | null = null;
  /** Something was put in this event turn. */
  private isTurnOpen = false;
  private failure: Error | null = null;
  private isClosed = false;

  constructor(private readonly options: Options) {
    const { path, noSync = false, readOnly = false } = options;
    const settings: RootDatabaseOptionsWithPath = {
      path,
      noSync,
      readOnly,
      encoding: 'binary',
      keyEncoding: 'binary',
      maxDbs: 1_024,
      maxReaders: 64,
      eventTurnBatching: true,
      noMemInit: false,
    };
    this.root = open<Buffer, Buffer>(settings);
    this.watchFailures();
    this.root.on('beforecommit', () => {
      for (const callback of this.turnEnds) callback();
      // Every waiter is told by our own promises; the binding's would end as unhandled rejections.
      void this.root.committed.then(undefined, () => undefined);
      this.isTurnOpen = false;
      this.turnFlushed = null;
      this.turnCommitted = null;
    });
  }

  /** `decode` is given bytes that are overwritten by the next read: it has to copy what it keeps. Without one, values are buffers of their own. */
  db<Key extends number | string | Buffer>(name: string, keyEncoder: KeyEncoder<Key>): Tree<Key>;
  db<Key extends number | string | Buffer, Value>(name: string, keyEncoder: KeyEncoder<Key>, decode: (bytes: Buffer) => Value): Tree<Key, Value>;
  db<Key extends number | string | Buffer, Value>(name: string, keyEncoder: KeyEncoder<Key>, decode?: (bytes: Buffer) => Value): Tree<Key, Value> {
    const encoder = decode && { encode: (bytes: Buffer) => bytes, decode };
    const db = this.root.openDB<Value, Key>({ name, encoding: 'binary', keyEncoder, ...(encoder && { encoder }) } as never);
    // Opened for reading, it has none of these.
    if (this.options.readOnly) return db as unknown as Tree<Key, Value>;
    for (const method of ['put', 'remove', 'clearAsync', 'drop'] as const) {
      const write = db[method].bind(db) as (key: Key, bytes: Buffer) => Promise<boolean>;
      Object.defineProperty(db, method, {
        value: (key: Key, bytes: Buffer) => {
          this.isTurnOpen = true;
          return write(key, bytes);
        },
      });
    }
    return db as unknown as Tree<Key, Value>;
  }

  /** Called at the end of each event turn that wrote something; what it puts is part of the same transaction. */
  beforeCommit(callback: () => void): void {
    this.turnEnds.push(callback);
  }

  /** All that was put is on disk. Whoever asks in the event turn of a put waits with all others of that turn. */
  flushed(): Promise<void> {
    if (this.failure) return Promise.reject(this.failure);
    if (!this.isTurnOpen) return this.outcome(this.flushedAndVisible(), this.options.flushGate);
    return (this.turnFlushed ??= this.outcome(this.flushedAndVisible(), this.options.flushGate));
  }

  /** All that was put is visible to every reader. */
  committed(): Promise<void> {
    if (this.failure) return Promise.reject(this.failure);
    if (!this.isTurnOpen) return this.outcome(this.root.committed);
    return (this.turnCommitted ??= this.outcome(this.root.committed));
  }

  /** A consistent copy at one moment, while writing goes on. */
  async backup(directory: string): Promise<void> {
    await this.root.backup(directory, true);
  }

  /** Forces to disk what `noSync` left in the page cache. */
  sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      (this.root as unknown as { sync(callback: (error?: Error) => void): void }).sync((error) => (error ? reject(error) : resolve()));
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    // After a failure the binding waits for commits that never come.
    if (!this.failure) await this.root.close();
  }

  /** The binding may learn of a flush before it learns of the commit, and would go on reading for a moment as if there had been none. */
  private flushedAndVisible(): PromiseLike<unknown> {
    const { root } = this;
    return root.flushed.then(() => {
      if (!this.isClosed) root.resetReadTxn();
    });
  }

  private outcome(event: PromiseLike<unknown>, gate?: () => Promise<void>): Promise<void> {
    const promise = new Promise<void>((resolve, reject) => {
      this.waiting.add(reject);
      const done = (): void => {
        this.waiting.delete(reject);
        resolve();
      };
      void event.then(gate ? () => void gate().then(done) : done, () => undefined);
    });
    promise.catch(() => undefined);
    return promise;
  }

  private watchFailures(): void {
    const { env } = this.root as unknown as { env: WriteStarter };
    const startWriting = env.startWriting.bind(env);
    Object.defineProperty(env, 'startWriting', {
      value: (instructions: number, callback: (status: number) => unknown) =>
        startWriting(instructions, (status) => (status >= 0 && status <= LAST_GOOD_STATUS ? callback(status) : this.fail(status))),
    });
  }

  private fail(status: number): void {
    if (this.failure) return;
    const [, description] = getSystemErrorMap().get(-status) ?? [];
    this.failure = unavailable('The disk did not take what was written.');
    for (const reject of this.waiting) reject(this.failure);
    this.waiting.clear();
    this.options.onFailure(description ?? `LMDB status ${status}`);
  }
}
