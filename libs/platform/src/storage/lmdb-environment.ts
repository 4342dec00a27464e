import { getSystemErrorMap } from 'node:util';
import { type Database, open, type RootDatabase, type RootDatabaseOptionsWithPath } from 'lmdb';
import { type DomainError, unavailable } from '../domain-error.ts';
import { byteTextKeys, type KeyEncoder } from './lmdb-keys.ts';

/**
 * One tree of an environment. Values are written as bytes and read as whatever the tree decodes them to. A write itself tells nothing of its outcome: `committed` and
 * `flushed` of the environment do.
 */
export interface Tree<Key extends number | string | Buffer = string, Value = Buffer> extends Pick<
  Database<Value, Key>,
  'get' | 'getRange' | 'getKeys' | 'getKeysCount' | 'doesExist'
> {
  put(key: Key, bytes: Buffer): void;
  /**
   * A put behind every key that is there, which fills pages where `put` splits them: ascending keys take up half as much. LMDB leaves out a key that is not behind them all,
   * and tells nobody.
   */
  append(key: Key, bytes: Buffer): void;
  remove(key: Key): void;
  /** Removes every entry. */
  clear(): void;
  /** Removes the tree itself. */
  drop(): void;
}

/** What this file uses of the binding's own object: the one place that learns of a failed flush. */
interface WriteStarter {
  startWriting(instructions: number, callback: (status: number) => unknown): void;
}

/** 0: on disk; 1: committed, the disk still writes; 2: wants a transaction's callback. Everything else is an error. */
const LAST_GOOD_STATUS = 2;
/** LMDB's, for its usual pages of 4 KiB. */
const LONGEST_KEY_BYTES = 1_978;
/** Name of a tree, and of the one entry in it, whose version is the number of the process that opened the environment last. */
const OWNER = 'owner';
const OWNER_KEY = Buffer.from(OWNER);
/** Of a tree. */
const READS = ['get', 'getRange', 'getKeys', 'getKeysCount', 'doesExist'] as const satisfies readonly (keyof Tree)[];

interface Options {
  readonly path: string;
  /** Commits stay in the system's page cache: they outlive this process, but not a loss of power. */
  readonly noSync?: boolean;
  /** For looking, beside the process that writes. */
  readonly readOnly?: boolean;
  /** A commit or flush failed: nothing that this environment was given since then is known to be stored. */
  readonly onFailure: (reason: string) => void;
  /** Another process has opened the environment: nothing that this one wrote since then is stored. */
  readonly onTakenOver: () => void;
  /** Awaited after each flush before anybody learns of it; lets the contract tests hold `flushed` back. */
  readonly flushGate?: () => Promise<void>;
}

/**
 * One LMDB environment. All writes of one event turn are one transaction; LMDB writes and flushes it in its own thread, and everybody who wrote in the
 * turn waits for the same promise.
 *
 * LMDB lets several processes write. Each one that opens the environment for writing raises its owner number, and every transaction compares it first, inside of the
 * transaction: whoever was the owner before writes nothing any more, even where no lock kept the two apart, and stops. Opening it for reading raises nothing.
 */
export class LmdbEnvironment {
  private readonly root: RootDatabase<Buffer, Buffer>;
  private readonly owners: Database<Buffer, Buffer>;
  /** Of this process, at this environment. */
  private readonly ownerNumber: number;
  private readonly turnEnds: (() => void)[] = [];
  /** What this event turn has written so far. */
  private turn: Turn | null = null;
  private lastTurn: Turn | null = null;
  private readonly unsettled = new Set<Turn>();
  private readonly trees: object[] = [];
  private isInTransaction = false;
  private failure: DomainError | null = null;
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
    this.root.on('beforecommit', () => this.endTurn());
    this.owners = readOnly ? this.root : this.root.openDB<Buffer, Buffer>({ name: OWNER, encoding: 'binary', keyEncoding: 'binary', useVersions: true });
    this.ownerNumber = readOnly ? 0 : this.raiseOwnerNumber();
  }

  /** `decode` is given bytes that are overwritten by the next read: it has to copy what it keeps. Without one, values are buffers of their own. */
  db<Key extends number | string | Buffer>(name: string, keyEncoder: KeyEncoder<Key>): Tree<Key>;
  db<Key extends number | string | Buffer, Value>(name: string, keyEncoder: KeyEncoder<Key>, decode: (bytes: Buffer) => Value): Tree<Key, Value>;
  db<Key extends number | string | Buffer, Value>(name: string, keyEncoder: KeyEncoder<Key>, decode?: (bytes: Buffer) => Value): Tree<Key, Value> {
    const encoder = decode && { encode: (bytes: Buffer) => bytes, decode };
    const openTree = () => this.root.openDB<Value, Key>({ name, encoding: 'binary', keyEncoder, ...(encoder && { encoder }) } as never);
    // Opened for reading, it has none of the methods that write, and is none where there is none.
    if (this.options.readOnly) return openTree() as unknown as Tree<Key, Value>;
    const db = this.transaction(openTree);
    this.trees.push(db);
    const methods = { put: 'put', remove: 'remove', clear: 'clearAsync', drop: 'drop' } as const;
    const writes = Object.entries(methods).map(([name, method]) => [name, db[method].bind(db) as Write['write']] as const);
    const put = db.put.bind(db) as (key: unknown, bytes: unknown, options: object) => unknown;
    const append: Write['write'] = (key, bytes) => put(key, bytes, { append: true });
    for (const [name, write] of [...writes, ['append', append] as const])
      Object.defineProperty(db, name, { value: (key?: Key, bytes?: Buffer) => this.write(write, key, bytes) });
    return db as unknown as Tree<Key, Value>;
  }

  /** Removes a tree of an earlier release, with all that is in it. */
  dropWhereThere(name: string): void {
    // The driver keeps names with a zero behind them.
    if (this.root.doesExist(Buffer.from(`${name}\0`))) this.db(name, byteTextKeys).drop();
  }

  /**
   * Carries out at once, and as one transaction, what the callback writes: before what else this event turn has written.
   * @throws DomainError `service_unavailable` when another process has taken over
   */
  transaction<Result>(callback: () => Result): Result {
    const outcome = this.root.transactionSync((): { readonly result: Result } | null => {
      if (!this.owners.doesExist(OWNER_KEY, this.ownerNumber)) return null;
      this.isInTransaction = true;
      try {
        return { result: callback() };
      } finally {
        this.isInTransaction = false;
      }
    });
    if (outcome === null) throw this.takenOver();
    return outcome.result;
  }

  /** Called at the end of each event turn that wrote something; what it puts is part of the same transaction. */
  beforeCommit(callback: () => void): void {
    this.turnEnds.push(callback);
  }

  /** All that was put is on disk. Whoever asks in the event turn of a put waits with all others of that turn. */
  flushed(): Promise<void> {
    return this.outcome('flushed');
  }

  /** All that was put is visible to every reader. */
  committed(): Promise<void> {
    return this.outcome('committed');
  }

  /** Finds out whether another process has taken over, where nothing is written that would. */
  watchOwner(): void {
    if (this.failure || this.isClosed) return;
    this.root.resetReadTxn();
    if (!this.owners.doesExist(OWNER_KEY, this.ownerNumber)) this.takenOver();
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

  /** Takes what is written until nothing is under way, and refuses whoever reads or writes from then on. */
  async close(): Promise<void> {
    // A read that met the binding while it waits for a commit to close would fail later, where nobody can catch it. After a failure it waits for commits that never come.
    while (!this.failure && this.unsettled.size > 0) await Promise.allSettled([...this.unsettled].map((turn) => turn.flushed.promise));
    this.isClosed = true;
    for (const tree of this.trees) for (const name of READS) Object.defineProperty(tree, name, { value: () => this.refuseAsClosed() });
    if (!this.failure) await this.root.close();
  }

  private refuseAsClosed(): never {
    throw unavailable('What is stored is closed: the process ends.');
  }

  private raiseOwnerNumber(): number {
    return this.root.transactionSync(() => {
      const number = (this.owners.getEntry(OWNER_KEY)?.version ?? 0) + 1;
      void this.owners.put(OWNER_KEY, OWNER_KEY, number);
      return number;
    });
  }

  private write(write: Write['write'], key?: Write['key'], bytes?: Buffer): void {
    // Whatever the binding would refuse is refused here, to whoever asked: at the end of the turn it would take everybody else's writes with it.
    if (key !== undefined && typeof key !== 'number' && (key.length === 0 || key.length > LONGEST_KEY_BYTES))
      throw new RangeError(`A key has 1 to ${LONGEST_KEY_BYTES} bytes, not ${key.length}.`);
    if (this.isClosed) this.refuseAsClosed();
    if (this.isInTransaction) write(key, bytes);
    else (this.turn ??= this.beginTurn()).writes.push({ write, key, bytes });
  }

  private beginTurn(): Turn {
    // Nothing yet but a transaction at the end of the turn, before which the binding tells us.
    void this.root.batch(() => {}).then(undefined, () => undefined);
    const turn = new Turn();
    this.unsettled.add(turn);
    return turn;
  }

  /**
   * Gives LMDB everything that the turn wrote, as one group that is left out as a whole when somebody else is the owner. Only the group's promise tells so: those of the
   * single writes answer true all the same, and the flush succeeds.
   */
  private endTurn(): void {
    const { turn } = this;
    if (turn === null) return;
    try {
      for (const callback of this.turnEnds) callback();
      this.turn = null;
      this.lastTurn = turn;
      const group = this.owners.ifVersion(OWNER_KEY, this.ownerNumber, () => {
        // Each goes from the list before the next: garbage that is collected meanwhile is not kept by it.
        const writes = turn.writes.splice(0).reverse();
        for (let next = writes.pop(); next !== undefined; next = writes.pop()) next.write(next.key, next.bytes);
      });
      group.then(
        (isOwner) => (isOwner ? turn.committed.resolve() : this.takenOver()),
        () => this.fail('a commit failed'),
      );
      Promise.all([group, this.root.flushed.then(() => true)]).then(
        ([isOwner]) => (isOwner ? this.turnIsFlushed(turn) : undefined),
        () => undefined,
      );
    } catch (error) {
      this.turn = null;
      this.fail((error as Error).message);
    }
  }

  private async turnIsFlushed(turn: Turn): Promise<void> {
    // The binding may learn of a flush before it learns of the commit, and would go on reading for a moment as if there had been none.
    if (!this.isClosed) this.root.resetReadTxn();
    if (this.options.flushGate) await this.options.flushGate();
    this.unsettled.delete(turn);
    turn.flushed.resolve();
  }

  private outcome(kind: 'committed' | 'flushed'): Promise<void> {
    if (this.failure) return Promise.reject(this.failure);
    return (this.turn ?? this.lastTurn)?.[kind].promise ?? Promise.resolve();
  }

  private watchFailures(): void {
    const { env } = this.root as unknown as { env: WriteStarter };
    const startWriting = env.startWriting.bind(env);
    Object.defineProperty(env, 'startWriting', {
      value: (instructions: number, callback: (status: number) => unknown) =>
        startWriting(instructions, (status) => (status >= 0 && status <= LAST_GOOD_STATUS ? callback(status) : this.failWith(status))),
    });
  }

  private failWith(status: number): void {
    const [, description] = getSystemErrorMap().get(-status) ?? [];
    this.fail(description ?? `LMDB status ${status}`);
  }

  private fail(reason: string): void {
    if (this.stop(unavailable('The disk did not take what was written.'))) this.options.onFailure(reason);
  }

  private takenOver(): DomainError {
    const refusal = unavailable('Another process has taken over what is stored.');
    if (this.stop(refusal)) this.options.onTakenOver();
    return refusal;
  }

  /** False when it had stopped before. */
  private stop(failure: DomainError): boolean {
    const isFirst = this.failure === null;
    this.failure ??= failure;
    for (const turn of this.unsettled) for (const outcome of [turn.committed, turn.flushed]) outcome.reject(this.failure);
    this.unsettled.clear();
    return isFirst;
  }
}

/** A write that LMDB is given at the end of the turn. */
interface Write {
  readonly write: (key: number | string | Buffer | undefined, bytes: Buffer | undefined) => unknown;
  readonly key: number | string | Buffer | undefined;
  readonly bytes: Buffer | undefined;
}

/** What one event turn writes, and what becomes of it. */
class Turn {
  readonly writes: Write[] = [];
  readonly committed = new Outcome();
  readonly flushed = new Outcome();
}

class Outcome {
  readonly promise: Promise<void>;
  resolve!: () => void;
  reject!: (failure: Error) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => Object.assign(this, { resolve, reject }));
    // Whoever waits is told; nobody has to.
    this.promise.catch(() => undefined);
  }
}
