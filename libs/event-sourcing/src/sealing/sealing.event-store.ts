import { isUnavailable } from '#libs/platform/src/domain-error';
import {
  EventStore,
  type Append,
  type Appended,
  type LooksInto,
  type NewEvent,
  type Position,
  type RecordedEvent,
  type SealedPart,
} from '../log/event-store.ts';
import { UnopenedRecord, UnreadableRecord, withContent } from '../log/lazy-record.ts';
import { environmentOf } from '../log/naming.ts';
import { mustSayWhatIsSealed, sealedIn } from './former-sealing.ts';
import { purposeOf } from './holders.ts';
import { JustSealed, type ValuePlace } from './just-sealed.ts';
import { HolderErased, KeyDestroyed, KeyMissing, type DataKey, type ErasablePurpose, type FoundKey, type KeyPurpose, type KeyStore } from './key-store.ts';
import type { MarkedFieldsOf } from './marked-fields.ts';
import { originPurpose, sealedOrigin } from './origins.ts';
import { covers, isAnythingAt, lasting, replacedAt, type Path } from './sealed-paths.ts';
import { isSealed, isSealedWith, openText, sealText } from './vault.ts';

/**
 * The log as everybody else sees it: what an event says is personal lies in it sealed under the keys of whom it concerns, and is read in clear until these are destroyed; then
 * it reads as null. Where a key is missing, reading a stream is refused, and whoever follows the log meets `KeyMissing` when it looks into that record. Secrets come sealed
 * already (`Vault`) and stay so. Events without either pass as they are.
 */
export class SealingEventStore extends EventStore {
  /** A record is opened once for all its readers, and stays the same object for them, for as long as its keys are there. */
  private readonly opened = new WeakMap<RecordedEvent, Opened>();

  constructor(
    private readonly events: EventStore,
    private readonly keys: KeyStore,
    private readonly marked: MarkedFieldsOf,
    private readonly justSealed = new JustSealed(),
  ) {
    super();
  }

  async read(stream: string, from?: number): Promise<readonly RecordedEvent[]> {
    return this.readable(await this.inClear(await this.events.read(stream, from)));
  }

  async readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]> {
    return this.inClear(await this.events.readBackwards(stream, count, from));
  }

  async last(stream: string): Promise<RecordedEvent | null> {
    const record = await this.events.last(stream);
    return record === null ? null : (this.readable(await this.inClear([record])) as readonly [RecordedEvent])[0];
  }

  /** Sealed text differs at every attempt; a repeat is told by its ids. @throws Error for what is marked and not sealed; HolderErased for personal fields of who was */
  async append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    return this.events.append(stream, expectedVersion, await this.sealedFor({ stream, expectedVersion, events }));
  }

  override get appendsTogether(): boolean {
    return this.events.appendsTogether;
  }

  override async appendTogether(appends: readonly Append[]): Promise<readonly Appended[]> {
    return this.events.appendTogether(await Promise.all(appends.map(async (append) => ({ ...append, events: await this.sealedFor(append) }))));
  }

  head(): Promise<Position> {
    return this.events.head();
  }

  override idAt(position: Position): Promise<string | null> {
    return this.events.idAt(position);
  }

  override get headAtHand(): Position | null {
    return this.events.headAtHand;
  }

  async *subscribe(after: Position, signal: AbortSignal, looksInto?: LooksInto): AsyncIterable<readonly RecordedEvent[]> {
    for await (const batch of this.events.subscribe(after, signal)) yield this.inClear(batch, looksInto);
  }

  private async sealedFor({ stream, expectedVersion, events }: Append): Promise<readonly NewEvent[]> {
    for (const event of events) this.refuseInClear(event);
    const isAffected = events.some(({ type, sealed, meta }) => sealed !== undefined || meta.origin !== undefined || mustSayWhatIsSealed(type));
    if (!isAffected) return events;
    const given = await Promise.all(events.map((event) => this.withSealedOrigin(stream, event)));
    const holders = new Set(events.flatMap(({ sealed = [], ...event }) => sealed.filter((part) => holds(event, part.fields)).map(({ of }) => of)));
    const keys = new Map(await Promise.all([...holders].map(async (holder) => [holder, await this.keyFor(holder, stream, expectedVersion)] as const)));
    return given.map((event) => sealedBy(stream, event, keys, this.justSealed));
  }

  /** Opens stored records with one question to the keys, which is about those that somebody looks into. One whose key is not there throws when somebody does. */
  async inClear(records: readonly RecordedEvent[], looksInto: LooksInto = () => true): Promise<readonly RecordedEvent[]> {
    const closed = records.filter(isClosed);
    if (closed.length === 0) return records;
    // Who looks into what may be another thing once the keys are there.
    const wanted = new Set(closed.filter(looksInto));
    const found: Found = wanted.size === 0 ? new Map() : await this.found([...wanted]);
    return records.map((record) => (!isClosed(record) ? record : wanted.has(record) ? this.open(record, found) : new UnopenedRecord(record)));
  }

  /**
   * @throws KeyMissing where the stream holds what was sealed with a key that is not there: under a new one, the old values could never be told from erased ones;
   *   HolderErased
   */
  private async keyFor(holder: string, stream: string, version: number): Promise<DataKey> {
    const purpose = purposeOf(holder, environmentOf(stream));
    // Of a stream that begins nothing was sealed before.
    const isKnown = version === 0 || (await this.keys.findMany([purpose])).has(purpose);
    const wasSealed = (record: RecordedEvent): boolean => sealedIn(record).some(({ of, fields }) => of === holder && holds(record, fields));
    if (!isKnown && (await this.events.read(stream)).some(wasSealed)) throw new KeyMissing(purpose);
    try {
      return await this.keys.obtain(purpose);
    } catch (error) {
      // Whoever decided has met them a moment ago.
      throw error instanceof KeyDestroyed ? new HolderErased() : error;
    }
  }

  /** Without it, where its month has ended: clocks may say so. */
  private async withSealedOrigin(stream: string, event: NewEvent): Promise<NewEvent> {
    const { origin, ...meta } = event.meta;
    if (typeof origin !== 'object') return event;
    try {
      const key = await this.keys.obtain(originPurpose(stream, meta.at));
      return { ...event, meta: { ...meta, origin: sealedOrigin(key, stream, event, origin) } };
    } catch (error) {
      if (error instanceof KeyDestroyed) return { ...event, meta };
      throw error;
    }
  }

  /** What contracts mark, and nobody has sealed, must not lie in the log for ever. */
  private refuseInClear({ type, data, subject, sealed = [] }: NewEvent): void {
    const { personal, secret } = this.marked(type);
    const open = personal.length === 0 ? personal : openAmong(inHalves(personal), sealed);
    if (open.length > 0)
      replacedAt({ data, subject }, open, (_value, _at, path) => {
        throw new Error(`${type} holds ${path} in clear: its decider has to declare whose it is.`);
      });
    if (secret.length > 0)
      replacedAt({ data, subject }, inHalves(secret), (value, _at, path) => {
        if (!isSealed(value)) throw new Error(`${type} holds the secret ${path} in clear: it has to be sealed before it is decided on.`);
        return value;
      });
  }

  /** @throws what keeps one of them from being read */
  private readable(records: readonly RecordedEvent[]): readonly RecordedEvent[] {
    for (const record of records) {
      if (record instanceof UnreadableRecord) throw record.reason;
      if (isClosed(record)) void [record.data, record.subject];
    }
    return records;
  }

  /** The keys of these records; in the place of one that cannot be read stands why. */
  private async found(records: readonly RecordedEvent[]): Promise<Found> {
    const purposes = [...new Set(records.flatMap(purposesOf))];
    try {
      return await this.keys.findMany(purposes);
    } catch (error) {
      if (isUnavailable(error) || purposes.length === 1) return new Map(purposes.map((purpose) => [purpose, { error }]));
      // One that is damaged says nothing of the others.
      const each = await Promise.all(
        purposes.map(async (purpose) => this.keys.findMany([purpose]).catch((reason: unknown) => new Map([[purpose, { error: reason }]]))),
      );
      return new Map(each.flatMap((some: Found) => [...some]));
    }
  }

  private open(record: RecordedEvent, found: Found): RecordedEvent {
    const keys = purposesOf(record).map((purpose) => found.get(purpose));
    const before = this.opened.get(record);
    // What was erased may not live on in memory.
    if (before?.keys.every((key, index) => isSameKey(key, keys[index])) === true) return before.record;
    const parts = sealedIn(record);
    const environment = environmentOf(record.stream);
    const openOne = ({ of, fields }: SealedPart, content: object): object => {
      const purpose = purposeOf(of, environment);
      return replacedAt(content, fields, (value, at) =>
        openedValue(purpose, found.get(purpose), { stream: record.stream, id: record.id, at }, value, this.justSealed),
      );
    };
    const openAll = (content: object): object => parts.reduce((half, part) => openOne(part, half), content);
    const opened = withContent(record.sealed === undefined ? { ...record, sealed: parts } : record, {
      data: () => (openAll({ data: record.data }) as Pick<RecordedEvent, 'data'>).data,
      subject: () => (openAll({ subject: record.subject }) as Pick<RecordedEvent, 'subject'>).subject,
    });
    this.opened.set(record, { record: opened, keys });
    return opened;
  }
}

/** Why a key could not be read. */
interface Failure {
  readonly error: unknown;
}

type Found = ReadonlyMap<KeyPurpose, FoundKey | Failure>;

interface Opened {
  readonly record: RecordedEvent;
  /** What it is opened with. */
  readonly keys: readonly (FoundKey | Failure | undefined)[];
}

function isClosed(record: RecordedEvent): boolean {
  return sealedIn(record).length > 0;
}

function isSameKey(one: FoundKey | Failure | undefined, other: FoundKey | Failure | undefined): boolean {
  if (one === 'erased' || other === 'erased') return one === other;
  return one !== undefined && other !== undefined && 'id' in one && 'id' in other && one.id === other.id;
}

function purposesOf(record: RecordedEvent): readonly ErasablePurpose[] {
  const environment = environmentOf(record.stream);
  return sealedIn(record).map(({ of }) => purposeOf(of, environment));
}

const halves = new WeakMap<readonly Path[], readonly Path[]>();

/** Paths of a value where they stand in a record. */
function inHalves(paths: readonly Path[]): readonly Path[] {
  let known = halves.get(paths);
  if (known === undefined) halves.set(paths, (known = lasting(paths.flatMap((path) => [`data.${path}`, `subject.${path}`]))));
  return known;
}

/** By lists that last: of paths that are marked, and of what is sealed. */
const openPaths = new WeakMap<readonly Path[], WeakMap<readonly Path[], readonly Path[]>>();

/** Those of these paths that none of the fields covers. Most events name the same fields each time. */
function openAmong(paths: readonly Path[], sealed: readonly SealedPart[]): readonly Path[] {
  const look = (): readonly Path[] => paths.filter((path) => !sealed.some(({ fields }) => covers(fields, path)));
  if (sealed.length !== 1) return look();
  const [{ fields }] = sealed as readonly [SealedPart];
  let known = openPaths.get(paths);
  if (known === undefined) openPaths.set(paths, (known = new WeakMap()));
  let open = known.get(fields);
  if (open === undefined) known.set(fields, (open = look()));
  return open;
}

/** Whether any of these fields is there, and not null. */
function holds({ data, subject }: Pick<NewEvent, 'data' | 'subject'>, fields: readonly Path[]): boolean {
  return isAnythingAt({ data, subject }, fields);
}

/** What it says to be sealed, sealed; and of that what was there. */
function sealedBy(stream: string, event: NewEvent, keys: ReadonlyMap<string, DataKey>, justSealed: JustSealed): NewEvent {
  let content: Pick<NewEvent, 'data' | 'subject'> = { data: event.data, subject: event.subject };
  const sealed: SealedPart[] = [];
  for (const { of, fields } of event.sealed ?? []) {
    const there = new Set<Path>();
    content = replacedAt(content, fields, (value, at, path) => {
      there.add(path);
      const place: ValuePlace = { stream, id: event.id, at };
      const text = JSON.stringify(value);
      const sealedText = sealText(keys.get(of)!, bindingOf(place), text);
      justSealed.remember(place, sealedText, text);
      return sealedText;
    });
    if (there.size > 0) sealed.push({ of, fields: fields.filter((path) => there.has(path)) });
  }
  return { ...event, ...content, sealed: sealed.length > 0 || mustSayWhatIsSealed(event.type) ? sealed : undefined };
}

/** @throws KeyMissing; what the keys answered instead of the key; Error where the value was moved or altered */
function openedValue(purpose: KeyPurpose, key: FoundKey | Failure | undefined, place: ValuePlace, value: unknown, justSealed: JustSealed): unknown {
  if (key === 'erased') return null;
  if (key === undefined) throw new KeyMissing(purpose);
  if ('error' in key) throw key.error;
  // Of a restore that mixed keys and log: this one was made after the right one was lost.
  if (!isSealedWith(key, value as string)) throw new KeyMissing(purpose, 'is another one than this log was sealed with');
  return JSON.parse(justSealed.take(place, value as string) ?? openText(key, bindingOf(place), value as string));
}

/** Where exactly a value lies: moved elsewhere, it does not open. */
function bindingOf({ stream, id, at }: ValuePlace): string {
  return `${stream} ${id} ${at}`;
}
