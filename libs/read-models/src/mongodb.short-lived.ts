import type { Collection } from 'mongodb';
import type { Clock } from '#libs/platform/src/clock';
import { type InSession, isDuplicate, type MongodbStorage, WHILE_WAITED_FOR } from '#libs/platform/src/storage/mongodb-storage';
import { type DumpedEntry, type Entry, ShortLived } from './short-lived.ts';

const SEPARATOR = '\0';
/** The database removes entries by its own clock: not before any other clock could call them alive. */
const GRACE_SECONDS = 3_600;
/** Room for the versions of one millisecond. */
const VERSIONS = 4_096;
/** Entries that one query goes through while all are read, and how many of them travel at a time. */
const [SLICE, BATCH] = [10_000, 500];

interface StoredEntry {
  readonly value: string;
  readonly version: number;
  readonly expiresAt: Date;
}

interface EntryDocument {
  /** Collection and key. */
  readonly _id: string;
  /** A list of one: a condition on what is in a list is no part of the query, which so finds the entry by its id alone. */
  readonly held: readonly [StoredEntry];
}

interface CounterDocument {
  readonly _id: string;
  readonly total: number;
  readonly expiresAt: Date;
}

interface LeaseDocument {
  readonly _id: string;
  /** Null: released. */
  readonly holder: string | null;
  /** Grows with every change of holder, and begins at the time. A lease is never removed, since its next holder's token has to be greater. */
  readonly token: number;
  /** Grows with every renewal. */
  readonly beat: number;
  /** By the holder's clock. */
  readonly until: number;
  readonly ttlMs: number;
}

interface LeaseAsked {
  readonly name: string;
  readonly holder: string;
  readonly ttlMs: number;
  readonly after: number;
  readonly resolve: (lease: { readonly token: number } | null) => void;
  readonly reject: (error: unknown) => void;
}

/** How a lease is taken or renewed, if it still is as it was found. */
interface LeaseTaking {
  readonly asked: LeaseAsked;
  /** Nobody ever had it. */
  readonly isNew: boolean;
  readonly token: number;
  readonly filter: Partial<LeaseDocument>;
  readonly held: Partial<LeaseDocument>;
}

/** A lease of another as it was first seen. */
interface Watched {
  readonly token: number;
  readonly beat: number;
  readonly since: number;
}

/**
 * Short-lived entries in MongoDB, which all processes share. An entry is alive by the clock of whoever reads it; that MongoDB removes it some time later is
 * housekeeping.
 *
 * Leases do not rely on clocks that agree. A lease is over when its time has passed on the clock of whoever wants it, or when it was not renewed for its whole
 * time while that process watched. A clock that is ahead by more than what is left of a lease takes it early; the holder learns of it at its next renewal, and
 * what it stores until then is fenced by the token. A clock that is behind, or a holder whose clock was far ahead, delays nothing: watching needs no clock but
 * one's own.
 */
export class MongodbShortLived extends ShortLived {
  private readonly watched = new Map<string, Watched>();
  private preparing: Promise<unknown> | null = null;
  private lastVersion = 0;
  private leasesAsked: LeaseAsked[] = [];

  constructor(
    private readonly storage: MongodbStorage,
    private readonly clock: Clock,
  ) {
    super();
  }

  async get(collection: string, key: string): Promise<Entry | null> {
    const found = await this.storage.answer((inSession) => this.entries.findOne({ _id: name(collection, key) }, { ...inSession, ...WHILE_WAITED_FOR }));
    return this.alive(found);
  }

  async putIfAbsent(collection: string, key: string, value: string, expiresAt: number): Promise<{ readonly stored: boolean; readonly entry: Entry }> {
    await this.prepared();
    const filter = { _id: name(collection, key) };
    const entry = this.newEntry(value, expiresAt);
    for (;;) {
      const before = await this.untilUnique((inSession) =>
        this.entries.findOneAndUpdate(filter, { $setOnInsert: { held: [entry] } }, { upsert: true, returnDocument: 'before', ...inSession }),
      );
      if (before === null) return { stored: true, entry: shown(entry) };
      const present = this.alive(before);
      if (present) return { stored: false, entry: present };
      // What has expired is replaced, unless another was faster.
      if (await this.replace(filter._id, { 'same.version': before.held[0].version }, entry)) return { stored: true, entry: shown(entry) };
    }
  }

  async put(collection: string, key: string, value: string, expiresAt: number): Promise<void> {
    await this.prepared();
    const entry = this.newEntry(value, expiresAt);
    const filter = { _id: name(collection, key) };
    await this.untilUnique((inSession) => this.entries.updateOne(filter, { $set: { held: [entry] } }, { upsert: true, ...inSession }));
  }

  compareAndSet(collection: string, key: string, version: number, value: string, expiresAt: number): Promise<boolean> {
    const isSame = { 'same.version': version, 'same.expiresAt': { $gt: new Date(this.clock.now()) } };
    return this.replace(name(collection, key), isSame, this.newEntry(value, expiresAt, version));
  }

  async take(collection: string, key: string): Promise<Entry | null> {
    const found = await this.storage.answer((inSession) => this.entries.findOneAndDelete({ _id: name(collection, key) }, inSession));
    return this.alive(found);
  }

  /** The first amount decides when the counter expires. */
  async add(collection: string, key: string, amount: number, expiresAt: number): Promise<number> {
    await this.prepared();
    const filter = { _id: name(collection, key) };
    const first = { total: amount, expiresAt: new Date(expiresAt) };
    for (;;) {
      const before = await this.untilUnique((inSession) =>
        this.counters.findOneAndUpdate(
          filter,
          { $inc: { total: amount }, $setOnInsert: { expiresAt: first.expiresAt } },
          { upsert: true, returnDocument: 'before', ...inSession },
        ),
      );
      if (before === null) return amount;
      if (before.expiresAt.getTime() > this.clock.now()) return before.total + amount;
      // Whoever adds to a counter that has expired begins it anew; of several one does, and the others add to that.
      const expired = { ...filter, expiresAt: before.expiresAt };
      const begun = await this.storage.answer((inSession) => this.counters.updateOne(expired, { $set: first }, inSession));
      if (begun.matchedCount === 1) return amount;
    }
  }

  /** A process keeps dozens of leases and renews them at the same moment: all of a turn are one question and one write. */
  lease(leaseName: string, holder: string, ttlMs: number, after = 0): Promise<{ readonly token: number } | null> {
    return new Promise((resolve, reject) => {
      if (this.leasesAsked.push({ name: leaseName, holder, ttlMs, after, resolve, reject }) === 1) setImmediate(() => void this.askForLeases());
    });
  }

  async release(leaseName: string, holder: string, token: number): Promise<void> {
    await this.storage.answer((inSession) => this.leases.updateOne({ _id: leaseName, holder, token }, { $set: { holder: null } }, inSession));
  }

  async sweep(now: number, limit: number): Promise<number> {
    await this.prepared();
    const expired = { $lte: new Date(now) };
    const swept = await this.storage.answer(async (inSession) => {
      const found = await this.entries.find({ 'held.expiresAt': expired }, { projection: { _id: 1 }, limit, ...inSession, ...WHILE_WAITED_FOR }).toArray();
      return this.entries.deleteMany({ _id: { $in: found.map(({ _id }) => _id) }, 'held.expiresAt': expired }, inSession);
    });
    const left = limit - swept.deletedCount;
    if (left === 0) return limit;
    const forgotten = await this.storage.answer(async (inSession) => {
      const found = await this.counters.find({ expiresAt: expired }, { projection: { _id: 1 }, limit: left, ...inSession, ...WHILE_WAITED_FOR }).toArray();
      return this.counters.deleteMany({ _id: { $in: found.map(({ _id }) => _id) }, expiresAt: expired }, inSession);
    });
    return swept.deletedCount + forgotten.deletedCount;
  }

  /** Each write was acknowledged by a majority, from their journals, before it resolved. */
  async durable(): Promise<void> {}

  async *dump(): AsyncIterable<DumpedEntry> {
    let last = '';
    for (let count = SLICE; count === SLICE;) {
      count = 0;
      const behind = { _id: { $gt: last } };
      const slice = this.storage.answers((inSession) => this.entries.find(behind, { sort: { _id: 1 }, limit: SLICE, batchSize: BATCH, ...inSession }));
      for await (const document of slice) {
        const { _id } = document;
        const entry = this.alive(document);
        const end = _id.indexOf(SEPARATOR);
        if (entry !== null) yield { collection: _id.slice(0, end), key: _id.slice(end + 1), value: entry.value, expiresAt: entry.expiresAt };
        last = _id;
        count++;
      }
    }
  }

  private get entries(): Collection<EntryDocument> {
    return this.storage.collection('short_lived');
  }

  private get counters(): Collection<CounterDocument> {
    return this.storage.collection('counters');
  }

  private get leases(): Collection<LeaseDocument> {
    return this.storage.collection('leases');
  }

  private async askForLeases(): Promise<void> {
    const all = this.leasesAsked;
    this.leasesAsked = [];
    try {
      const now = this.clock.now();
      const present = await this.leasesOf(all.map((asked) => asked.name));
      const takings: LeaseTaking[] = [];
      for (const asked of all) {
        const lease = present.get(asked.name);
        if (lease !== undefined && lease.holder !== asked.holder && !this.isOver(lease, now)) asked.resolve(null);
        else takings.push(lease === undefined ? beginningOf(asked, now) : takingOf(lease, asked, now));
      }
      const taken = takings.length === 0 ? [] : await this.taken(takings);
      for (const [index, { asked }] of takings.entries()) asked.resolve(taken[index] ?? null);
    } catch (error) {
      for (const { reject } of all) reject(error);
    }
  }

  private async leasesOf(names: readonly string[]): Promise<ReadonlyMap<string, LeaseDocument>> {
    const found = await this.storage.answer((inSession) => this.leases.find({ _id: { $in: names } }, { ...inSession, ...WHILE_WAITED_FOR }).toArray());
    return new Map(found.map((lease) => [lease._id, lease]));
  }

  /**
   * Under which tokens they are held now; null where another was faster. All of them are one write: a process that starts asks for dozens that nobody had yet, and a server
   * that is busy would be asked by as many connections.
   */
  private async taken(takings: readonly LeaseTaking[]): Promise<readonly ({ readonly token: number } | null)[]> {
    const begun = takings.filter(({ isNew }) => isNew).length;
    const updates = takings.map(({ isNew, filter, held }) => ({
      updateOne: isNew ? { filter, update: { $setOnInsert: { ...held, beat: 0 } }, upsert: true } : { filter, update: { $set: held, $inc: { beat: 1 } } },
    }));
    try {
      const { matchedCount, upsertedCount } = await this.storage.answer((inSession) => this.leases.bulkWrite(updates, { ordered: false, ...inSession }));
      if (upsertedCount === begun && matchedCount === takings.length - begun) return takings.map(({ token }) => ({ token }));
    } catch (error) {
      // Of two who begin one at once, the slower one is told so; the others are written all the same.
      if (!isDuplicate(error)) throw error;
    }
    // Some were not as they had been found, and an answer to many does not say which.
    const present = await this.leasesOf(takings.map(({ asked }) => asked.name));
    return takings.map(({ asked, token }) => {
      const lease = present.get(asked.name);
      // Its holder may have asked for a greater token meanwhile.
      return lease?.holder === asked.holder && lease.token >= token ? { token: lease.token } : null;
    });
  }

  private isOver({ _id, holder, token, beat, until, ttlMs }: LeaseDocument, now: number): boolean {
    if (holder === null || until <= now) return true;
    const before = this.watched.get(_id);
    if (before?.token === token && before.beat === beat) return now - before.since >= ttlMs;
    this.watched.set(_id, { token, beat, since: now });
    return false;
  }

  /** Replaces an entry where it is the one described. */
  private async replace(_id: string, same: object, entry: StoredEntry): Promise<boolean> {
    const replaced = await this.storage.answer((inSession) =>
      this.entries.updateOne({ _id }, { $set: { 'held.$[same]': entry } }, { arrayFilters: [same], ...inSession }),
    );
    return replaced.modifiedCount === 1;
  }

  /** Two who store something first at once may both find nothing there: the slower one is told so, and finds it at the second try. */
  private async untilUnique<Answer>(ask: (inSession: InSession) => Promise<Answer>): Promise<Answer> {
    for (;;) {
      try {
        return await this.storage.answer(ask);
      } catch (error) {
        if (!isDuplicate(error)) throw error;
      }
    }
  }

  private alive(found: EntryDocument | null): Entry | null {
    const entry = found?.held[0];
    return entry !== undefined && entry.expiresAt.getTime() > this.clock.now() ? shown(entry) : null;
  }

  /** Versions are times: an entry that is gone and comes again has another, in whichever process. */
  private newEntry(value: string, expiresAt: number, replaced = 0): StoredEntry {
    const random = Math.floor(Math.random() * VERSIONS);
    const version = Math.max(Date.now() * VERSIONS + random, this.lastVersion + 1, replaced + 1);
    this.lastVersion = version;
    return { value, version, expiresAt: new Date(expiresAt) };
  }

  private prepared(): Promise<unknown> {
    const options = { expireAfterSeconds: GRACE_SECONDS };
    this.preparing ??= this.storage
      .answer(async (inSession) => {
        await this.entries.createIndex({ 'held.expiresAt': 1 }, { ...options, ...inSession });
        await this.counters.createIndex({ expiresAt: 1 }, { ...options, ...inSession });
      })
      .catch((error: unknown) => {
        this.preparing = null;
        throw error;
      });
    return this.preparing;
  }
}

function name(collection: string, key: string): string {
  return collection + SEPARATOR + key;
}

function beginningOf(asked: LeaseAsked, now: number): LeaseTaking {
  const { name: _id, holder, ttlMs, after } = asked;
  const token = Math.max(after + 1, now);
  return { asked, token, isNew: true, filter: { _id }, held: { holder, ttlMs, until: now + ttlMs, token } };
}

function takingOf({ _id, holder, token, beat }: LeaseDocument, asked: LeaseAsked, now: number): LeaseTaking {
  const isOwn = holder === asked.holder;
  // Also greater than every token that a store had before it was lost, or set back to an earlier state.
  const next = isOwn && token > asked.after ? token : Math.max(token + 1, asked.after + 1, now);
  return {
    asked,
    token: next,
    isNew: false,
    filter: { _id, token, ...(isOwn ? { holder } : { beat }) },
    held: { holder: asked.holder, until: now + asked.ttlMs, ttlMs: asked.ttlMs, token: next },
  };
}

function shown({ value, version, expiresAt }: StoredEntry): Entry {
  return { value, version, expiresAt: expiresAt.getTime() };
}
