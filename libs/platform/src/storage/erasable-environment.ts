import { chmodSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { LmdbEnvironment, type Tree } from './lmdb-environment.ts';
import { byteText, byteTextKeys } from './lmdb-keys.ts';

const DATA = 'data.mdb';
const LOCK = 'lock.mdb';
const ENTRIES = 'entries';
/** Where a copy lies until it takes the place of the original. */
const COPY = 'compacted';
const SCRUB_BYTES = 1024 * 1024;
/** Stands there from an erasure on until the file is a copy without what was erased. No entry of others begins with a zero byte. */
const OWED = '\0owed';

interface Options {
  /** A directory of its own, whose owner alone may enter. */
  readonly path: string;
  readonly onFailure: (reason: string) => void;
  readonly onTakenOver: () => void;
}

/**
 * A durable map in an LMDB environment of its own, from which something can be erased. LMDB leaves what was replaced in pages that it uses again one day, so after an
 * erasure the file is replaced by a compact copy of itself, and overwritten before its place on the disk is free. Reading goes on meanwhile, writing waits.
 */
export class ErasableEnvironment {
  private environment!: LmdbEnvironment;
  private tree!: Tree;
  /** What was put and is not visible to reads of the tree yet. */
  private readonly pending = new Map<string, Buffer>();
  /** While the file is copied nothing is written, and while it is replaced nothing is read either. */
  private copying: Promise<void> | null = null;
  private replacing: Promise<void> | null = null;
  private nextCopy: Promise<void> | null = null;

  private constructor(private readonly options: Options) {
    this.begin();
  }

  /** Finishes the erasures that a process before it had begun. */
  static async open(options: Options): Promise<ErasableEnvironment> {
    const { path } = options;
    mkdirSync(path, { recursive: true, mode: 0o700 });
    await syncDirectory(dirname(path));
    rmSync(join(path, COPY), { recursive: true, force: true });
    const environment = new ErasableEnvironment(options);
    if (environment.look(OWED) !== undefined) await environment.compact();
    return environment;
  }

  get path(): string {
    return this.options.path;
  }

  async getMany(keys: readonly string[]): Promise<readonly (Buffer | undefined)[]> {
    while (this.replacing !== null) await this.replacing;
    return keys.map((key) => this.look(key));
  }

  /** Durable when it resolves. */
  async put(key: string, bytes: Buffer): Promise<void> {
    await this.writable();
    this.write(key, bytes);
    await this.environment.flushed();
  }

  /** As `put`, and only where nothing is: whoever was first stays. Answers whether this was. */
  async putFirst(key: string, bytes: Buffer): Promise<boolean> {
    await this.writable();
    // No await between the look and the write: that is what lets only one be the first.
    const isFirst = this.look(key) === undefined;
    if (isFirst) this.write(key, bytes);
    await this.environment.flushed();
    return isFirst;
  }

  /** Puts these in the place of what there is, of which no file holds anything when it resolves. Where it was cut short, the next opening finishes it. */
  async erase(replacements: ReadonlyMap<string, Buffer>): Promise<void> {
    await this.writable();
    await this.replace(replacements);
  }

  /** The same for those of these keys of which something is there, and `replacementOf` says what takes its place: null for nothing. */
  async eraseSome(keys: readonly string[], replacementOf: (key: string, present: Buffer) => Buffer | null): Promise<void> {
    await this.writable();
    // No await between the looks and the writes: nobody writes in between.
    const replacements = new Map<string, Buffer>();
    for (const key of keys) {
      const present = this.look(key);
      const replacement = present === undefined ? null : replacementOf(key, present);
      if (replacement !== null) replacements.set(key, replacement);
    }
    // What another has replaced in the same way may still lie in the file.
    if (replacements.size > 0 || this.look(OWED) !== undefined) await this.replace(replacements);
  }

  /** A consistent and compact copy at one moment, as a directory that can be opened, while reading and writing go on. */
  async backup(directory: string): Promise<void> {
    while (this.copying !== null) await this.copying;
    const copied = this.copyTo(directory);
    // A replacement would take away from under the copy what it reads.
    this.copying = copied.catch(() => undefined).finally(() => (this.copying = null));
    await copied;
  }

  async close(): Promise<void> {
    await this.nextCopy?.catch(() => undefined);
    while (this.copying !== null) await this.copying;
    await this.environment.close();
  }

  private begin(): void {
    const { path, onFailure, onTakenOver } = this.options;
    this.environment = new LmdbEnvironment({ path, onFailure, onTakenOver });
    this.tree = this.environment.db(ENTRIES, byteTextKeys);
    for (const file of [DATA, LOCK]) if (existsSync(join(path, file))) chmodSync(join(path, file), 0o600);
  }

  private look(key: string): Buffer | undefined {
    return this.pending.get(key) ?? this.tree.get(byteText(key));
  }

  private write(key: string, bytes: Buffer): void {
    this.pending.set(key, bytes);
    this.tree.put(byteText(key), bytes);
    this.environment.committed().then(
      () => this.pending.get(key) === bytes && this.pending.delete(key),
      () => undefined,
    );
  }

  private async replace(replacements: ReadonlyMap<string, Buffer>): Promise<void> {
    for (const [key, bytes] of replacements) this.write(key, bytes);
    this.write(OWED, Buffer.of(1));
    await this.environment.flushed();
    await this.compact();
  }

  private async writable(): Promise<void> {
    while (this.copying !== null) await this.copying;
  }

  /** One copy serves everybody who asked before it began. */
  private compact(): Promise<void> {
    return (this.nextCopy ??= this.compactNext());
  }

  private async compactNext(): Promise<void> {
    do await this.copying;
    while (this.copying !== null);
    this.nextCopy = null;
    const compacted = this.compacted();
    this.copying = compacted.catch(() => undefined).finally(() => (this.copying = null));
    await compacted;
    // An erasure that came in between owes another copy.
    if (this.nextCopy === null) this.tree.remove(OWED);
  }

  private async compacted(): Promise<void> {
    const copy = join(this.path, COPY);
    await this.environment.flushed();
    await rm(copy, { recursive: true, force: true });
    try {
      await this.copyTo(copy);
      const replaced = this.replaceBy(join(copy, DATA));
      this.replacing = replaced.then(
        () => undefined,
        () => undefined,
      );
      await (await replaced).scrub();
    } finally {
      await rm(copy, { recursive: true, force: true });
    }
  }

  private async copyTo(directory: string): Promise<void> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await this.environment.backup(directory);
    const file = await open(join(directory, DATA), 'r+');
    try {
      await file.chmod(0o600);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Answers what is left of the file that was replaced. */
  private async replaceBy(copy: string): Promise<{ readonly scrub: () => Promise<void> }> {
    const file = await open(join(this.path, DATA), 'r+');
    try {
      // Who has opened the file meanwhile would go on writing to one that has no name any more.
      this.environment.watchOwner();
      await this.environment.flushed();
      await this.environment.close();
      // It tells which of the file's two roots is the present one, and those of the copy are others.
      await rm(join(this.path, LOCK), { force: true });
      await rename(copy, join(this.path, DATA));
      await syncDirectory(this.path);
    } finally {
      this.begin();
      this.replacing = null;
    }
    return { scrub: () => scrub(file) };
  }
}

/** The same beside the process that writes, or in a copy: for looking. */
export class ErasableForReading {
  private readonly tree: Tree;

  constructor(readonly path: string) {
    const environment = new LmdbEnvironment({ path, readOnly: true, onFailure: () => {}, onTakenOver: () => {} });
    this.tree = environment.db(ENTRIES, byteTextKeys);
  }

  static isThere(path: string): boolean {
    return existsSync(join(path, DATA));
  }

  async getMany(keys: readonly string[]): Promise<readonly (Buffer | undefined)[]> {
    return keys.map((key) => this.tree.get(byteText(key)));
  }
}

/**
 * The same for an environment that nobody has open: its file is replaced by a compact copy of itself, which is written into `copy`, a directory on the same disk, and the
 * former one is overwritten. Cut short, it is one or the other.
 */
export async function compactEnvironment(path: string, copy: string): Promise<void> {
  await rm(copy, { recursive: true, force: true });
  await mkdir(copy, { mode: 0o700 });
  const environment = new LmdbEnvironment({ path, readOnly: true, onFailure: () => {}, onTakenOver: () => {} });
  try {
    await environment.backup(copy);
  } finally {
    await environment.close();
  }
  const written = await open(join(copy, DATA), 'r+');
  await written.sync();
  await written.close();
  const former = await open(join(path, DATA), 'r+');
  await rm(join(path, LOCK), { force: true });
  await rename(join(copy, DATA), join(path, DATA));
  await syncDirectory(path);
  await scrub(former);
  await rm(copy, { recursive: true });
}

/** What a plain removal leaves on simple disks. */
async function scrub(file: Awaited<ReturnType<typeof open>>): Promise<void> {
  try {
    const { size } = await file.stat();
    const nothing = Buffer.alloc(SCRUB_BYTES);
    for (let at = 0; at < size; at += SCRUB_BYTES) await file.write(nothing, 0, Math.min(SCRUB_BYTES, size - at), at);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Removes a file, and before that what it holds. */
export async function removeScrubbed(path: string): Promise<void> {
  await scrub(await open(path, 'r+'));
  await rm(path);
}

/** Names in a directory are on disk. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
