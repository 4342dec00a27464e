import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '#libs/platform/src/clock';
import { Arena } from '#libs/platform/src/storage/arena';
import type { Tree } from '#libs/platform/src/storage/lmdb-environment';
import { bufferKeys, byteText, byteTextKeys, LOWEST_KEY, NUMBER_BYTES, readNumber, textOfBytes, writeNumber } from '#libs/platform/src/storage/lmdb-keys';
import type { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { type DumpedEntry, type Entry, ShortLived } from './short-lived.ts';

/** Entries are swept by whole minutes, so that a write that moves the expiry within one needs no new listing. */
const BUCKET_MS = 60_000;
/** More than are used; this way the numbers of a later start lie behind those of every earlier one. */
const NUMBERS_PER_MS = 64;
const HEADER_BYTES = 2 * NUMBER_BYTES;
const SEPARATOR = '\0';
/** Where earlier releases kept them. */
const LEASES = 'lease';
/** Entries that one look at the store takes. */
const SLICE = 1_000;
/** Shorter than every listing's key. */
const SEQUENCE_KEY = LOWEST_KEY;

/**
 * Short-lived entries in LMDB. `short-lived` holds them by collection and key; `expiry` lists, by the minute in which they expire, the keys that were
 * written: one listing per event turn and minute, however many writes. Answers come from memory until a write is committed, so nobody waits: all writes
 * of this process go to disk in one order, and that carries the port's promise.
 */
export class LmdbShortLived extends ShortLived {
  private readonly entries: Tree<string, Entry>;
  private readonly expiry: Tree<Buffer>;
  private readonly arena = new Arena();
  /** Written and perhaps not yet committed. */
  private readonly overlay = new Map<string, Pending>();
  /** One process holds the data at a time, so a lease from before its start is nobody's any more: only the tokens are stored. */
  private readonly leases = new Map<string, Lease>();
  /** Of `overlay`, what was written in this event turn. */
  private written: Pending[] = [];
  private readonly unlisted = new Map<number, string[]>();
  /** Versions, tokens and listings: grows over all entries and restarts, so that none ever comes twice. */
  private sequence: number;

  constructor(
    private readonly storage: LmdbStorage,
    private readonly clock: Clock,
  ) {
    super();
    this.entries = storage.log.db('short-lived', byteTextKeys, entryIn);
    this.expiry = storage.log.db('expiry', bufferKeys);
    const sequence = this.expiry.get(SEQUENCE_KEY);
    // Also after an earlier state of this store was put back beside tables that know later tokens: time has gone on.
    this.sequence = Math.max(sequence ? readNumber(sequence, 0) : 0, clock.now() * NUMBERS_PER_MS);
    storage.log.beforeCommit(() => this.endTurn());
  }

  async get(collection: string, key: string): Promise<Entry | null> {
    return this.find(name(collection, key));
  }

  async putIfAbsent(collection: string, key: string, value: string, expiresAt: number): Promise<{ readonly stored: boolean; readonly entry: Entry }> {
    const id = name(collection, key);
    const before = this.stored(id);
    return this.isAlive(before) ? { stored: false, entry: before } : { stored: true, entry: this.store(id, value, expiresAt, before) };
  }

  async put(collection: string, key: string, value: string, expiresAt: number): Promise<void> {
    const id = name(collection, key);
    this.store(id, value, expiresAt, this.stored(id));
  }

  async compareAndSet(collection: string, key: string, version: number, value: string, expiresAt: number): Promise<boolean> {
    const id = name(collection, key);
    const present = this.find(id);
    if (present?.version !== version) return false;
    this.store(id, value, expiresAt, present);
    return true;
  }

  async take(collection: string, key: string): Promise<Entry | null> {
    const id = name(collection, key);
    const present = this.find(id);
    if (present) this.remove(id);
    return present;
  }

  /** The first amount decides when the counter expires. */
  async add(collection: string, key: string, amount: number, expiresAt: number): Promise<number> {
    const id = name(collection, key);
    const present = this.find(id);
    const total = Number(present?.value ?? 0) + amount;
    this.store(id, String(total), present?.expiresAt ?? expiresAt, present);
    return total;
  }

  async lease(leaseName: string, holder: string, ttlMs: number, after = 0): Promise<{ readonly token: number } | null> {
    this.storage.assertAlive();
    const last = this.leases.get(leaseName);
    const isOwn = last?.holder === holder;
    if (!isOwn && this.heldLease(leaseName) !== null) return null;
    // A holder that comes late, and finds that nobody took it meanwhile, goes on as before: else whatever it does would begin again where the clock is set.
    const token = isOwn && last.token > after ? last.token : this.nextToken();
    this.leases.set(leaseName, { holder, token, expiresAt: this.clock.now() + ttlMs });
    return { token };
  }

  async release(leaseName: string, holder: string, token: number): Promise<void> {
    const held = this.heldLease(leaseName);
    if (held?.holder === holder && held.token === token) this.leases.delete(leaseName);
  }

  async sweep(now: number, limit: number): Promise<number> {
    let removed = 0;
    for (const { key, value } of this.expiry.getRange({ start: numberKey(0, 0), end: numberKey(Math.floor(now / BUCKET_MS), 0), limit })) {
      for (const id of value.toString().split('\n')) {
        const entry = this.stored(id);
        if (!entry || entry.expiresAt > now) continue;
        if (removed === limit) return removed;
        this.remove(id);
        removed++;
      }
      this.expiry.remove(key);
    }
    return removed;
  }

  durable(): Promise<void> {
    return this.storage.log.flushed();
  }

  async *dump(): AsyncIterable<DumpedEntry> {
    await this.storage.log.committed();
    for (let start = '\0', count = SLICE; count === SLICE; await nextTurn()) {
      const slice = [...this.entries.getKeys({ start, limit: SLICE })];
      for (const key of slice) {
        const id = textOfBytes(key);
        const entry = this.find(id);
        const [collection, rest] = [id.slice(0, id.indexOf(SEPARATOR)), id.slice(id.indexOf(SEPARATOR) + 1)];
        if (entry !== null && collection !== LEASES) yield { collection, key: keyIn(rest), value: entry.value, expiresAt: entry.expiresAt };
      }
      count = slice.length;
      start = `${slice.at(-1)}\0`;
    }
  }

  private heldLease(leaseName: string): Lease | null {
    const lease = this.leases.get(leaseName);
    return lease !== undefined && lease.expiresAt > this.clock.now() ? lease : null;
  }

  /** On its way to disk before whatever is stored under it. */
  private nextToken(): number {
    this.expiry.put(SEQUENCE_KEY, numberKey(++this.sequence, 0));
    return this.sequence;
  }

  private find(id: string): Entry | null {
    const entry = this.stored(id);
    return this.isAlive(entry) ? entry : null;
  }

  private isAlive(entry: Entry | null): entry is Entry {
    return entry !== null && entry.expiresAt > this.clock.now();
  }

  private stored(id: string): Entry | null {
    const pending = this.overlay.get(id);
    if (pending) return pending.bytes && entryIn(pending.bytes);
    return this.entries.get(byteText(id)) ?? null;
  }

  /** `before` is what the entry replaces, expired or not. */
  private store(id: string, value: string, expiresAt: number, before: Entry | null): Entry {
    this.storage.assertAlive();
    const entry: Entry = { value, version: ++this.sequence, expiresAt };
    const bytes = this.arena.text(HEADER_BYTES, value);
    writeNumber(expiresAt, bytes, 0);
    writeNumber(entry.version, bytes, NUMBER_BYTES);
    this.entries.put(byteText(id), bytes);
    const bucket = Math.floor(expiresAt / BUCKET_MS);
    if (before === null || Math.floor(before.expiresAt / BUCKET_MS) !== bucket) {
      const listing = this.unlisted.get(bucket);
      if (listing) listing.push(id);
      else this.unlisted.set(bucket, [id]);
    }
    this.changed(id, bytes);
    return entry;
  }

  private remove(id: string): void {
    this.storage.assertAlive();
    this.entries.remove(byteText(id));
    this.changed(id, null);
  }

  private changed(id: string, bytes: Buffer | null): void {
    const pending: Pending = { id, bytes };
    this.overlay.set(id, pending);
    this.written.push(pending);
  }

  private endTurn(): void {
    if (this.written.length === 0) return;
    for (const [bucket, ids] of this.unlisted) this.expiry.put(numberKey(bucket, ++this.sequence), this.arena.text(0, ids.join('\n')));
    this.unlisted.clear();
    this.expiry.put(SEQUENCE_KEY, numberKey(this.sequence, 0));
    const { written } = this;
    this.written = [];
    const forget = (): void => {
      for (const pending of written) if (this.overlay.get(pending.id) === pending) this.overlay.delete(pending.id);
    };
    this.storage.log.committed().then(forget, () => undefined);
  }
}

interface Pending {
  readonly id: string;
  /** As they are stored, beside the heap. Null: removed. */
  readonly bytes: Buffer | null;
}

interface Lease {
  readonly holder: string;
  readonly token: number;
  readonly expiresAt: number;
}

function entryIn(bytes: Buffer): Entry {
  return { expiresAt: readNumber(bytes, 0), version: readNumber(bytes, NUMBER_BYTES), value: bytes.toString('utf8', HEADER_BYTES, bytes.length) };
}

/** The line break that separates names in a listing cannot be part of one. */
function name(collection: string, key: string): string {
  return collection + SEPARATOR + (key.includes('\n') ? JSON.stringify(key) : key);
}

function keyIn(stored: string): string {
  return stored.startsWith('"') && stored.includes('\\n') ? (JSON.parse(stored) as string) : stored;
}

function numberKey(first: number, second: number): Buffer {
  const key = Buffer.allocUnsafe(2 * NUMBER_BYTES);
  writeNumber(first, key, 0);
  writeNumber(second, key, NUMBER_BYTES);
  return key;
}
