import { isUnavailable } from '#libs/platform/src/domain-error';
import { EventStore, type Appended, type NewEvent, type Position, type RecordedEvent, UnreadableRecord } from '../log/event-store.ts';
import { withContent } from '../log/lazy-record.ts';
import { KeyMissing, type DataKey, type ErasablePurpose, type FoundKey, type KeyPurpose, type KeyStore } from './key-store.ts';
import { hasPersonal, replaced, type Replace, type SealedFieldsOf } from './sealed-fields.ts';
import { isSealed, isSealedWith, openText, sealText } from './vault.ts';

/**
 * The log as everybody else sees it: personal fields lie in it sealed under a key per person, and are read in clear until that key is destroyed; then they read as
 * null. Where the key is missing, reading a stream is refused, and whoever follows the log meets `KeyMissing` when it looks into that record. Secrets come sealed already
 * (`Vault`) and stay so. Events of types without such fields pass as they are.
 */
export class SealingEventStore extends EventStore {
  /** A record is opened once for all its readers, and stays the same object for them. */
  private readonly opened = new WeakMap<RecordedEvent, RecordedEvent>();

  constructor(
    private readonly events: EventStore,
    private readonly keys: KeyStore,
    private readonly sealedFields: SealedFieldsOf,
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

  /** Sealed text differs at every attempt; a repeat is told by its ids. @throws Error for a secret in clear, and for personal fields of who was erased */
  async append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    const isAffected = events.some(({ type }) => this.sealedFields(type) !== null);
    if (!isAffected) return this.events.append(stream, expectedVersion, events);
    const key = events.some((event) => this.holdsPersonal(event)) ? await this.keyFor(stream, expectedVersion) : null;
    return this.events.append(
      stream,
      expectedVersion,
      events.map((event) => this.sealed(stream, event, key)),
    );
  }

  head(): Promise<Position> {
    return this.events.head();
  }

  async *subscribe(after: Position, signal: AbortSignal, pace?: 'prompt'): AsyncIterable<readonly RecordedEvent[]> {
    for await (const batch of this.events.subscribe(after, signal, pace)) yield this.inClear(batch);
  }

  /** @throws KeyMissing where the stream holds what was sealed with a key that is not there: under a new one, the old values could never be told from erased ones */
  private async keyFor(stream: string, version: number): Promise<DataKey> {
    const purpose = purposeOf(stream);
    const isKnown = (await this.keys.findMany([purpose])).has(purpose);
    if (!isKnown && version > 0 && (await this.events.read(stream)).some((record) => this.holdsPersonal(record))) throw new KeyMissing(purpose);
    return this.keys.obtain(purpose);
  }

  private sealed(stream: string, event: NewEvent, key: DataKey | null): NewEvent {
    const fields = this.sealedFields(event.type);
    if (fields === null) return event;
    const seal: Replace = (value, kind, path) => {
      if (kind === 'personal') return sealText(key!, bindingOf(stream, event, path), JSON.stringify(value));
      if (!isSealed(value)) throw new Error(`${event.type} holds the secret ${path} in clear: it has to be sealed before it is decided on.`);
      return value;
    };
    return { ...event, data: replaced(event.data, fields, 'data', seal), subject: replaced(event.subject, fields, 'subject', seal) };
  }

  /** @throws what keeps one of them from being read */
  private readable(records: readonly RecordedEvent[]): readonly RecordedEvent[] {
    for (const record of records) {
      if (record instanceof UnreadableRecord) throw record.reason;
      if (this.isPersonal(record.type)) void [record.data, record.subject];
    }
    return records;
  }

  private async inClear(records: readonly RecordedEvent[]): Promise<readonly RecordedEvent[]> {
    const closed = records.filter((record) => this.isPersonal(record.type) && !this.opened.has(record));
    const found = closed.length === 0 ? NOBODY : await this.found(closed);
    return records.map((record) => (this.isPersonal(record.type) ? (this.opened.get(record) ?? this.open(record, found)) : record));
  }

  /** The keys of these records; in the place of one that cannot be read stands why. */
  private async found(records: readonly RecordedEvent[]): Promise<ReadonlyMap<KeyPurpose, FoundKey | Failure>> {
    const purposes = [...new Set(records.map(({ stream }) => purposeOf(stream)))];
    try {
      return await this.keys.findMany(purposes);
    } catch (error) {
      if (isUnavailable(error) || purposes.length === 1) return new Map(purposes.map((purpose) => [purpose, { error }]));
      // One that is damaged says nothing of the others.
      const each = await Promise.all(records.map((record) => this.found([record])));
      return new Map(each.flatMap((found) => [...found]));
    }
  }

  private isPersonal(type: string): boolean {
    const fields = this.sealedFields(type);
    return fields !== null && hasPersonal(fields);
  }

  private holdsPersonal({ type, data, subject }: NewEvent): boolean {
    const fields = this.sealedFields(type);
    if (fields === null) return false;
    let holds = false;
    const look: Replace = (value, kind) => {
      holds ||= kind === 'personal';
      return value;
    };
    replaced(data, fields, '', look);
    replaced(subject, fields, '', look);
    return holds;
  }

  private open(record: RecordedEvent, found: ReadonlyMap<KeyPurpose, FoundKey | Failure>): RecordedEvent {
    const purpose = purposeOf(record.stream);
    const key = found.get(purpose);
    const fields = this.sealedFields(record.type)!;
    const open: Replace = (value, kind, path) => (kind === 'personal' ? openedValue(purpose, key, bindingOf(record.stream, record, path), value) : value);
    const opened = withContent(record, {
      data: () => replaced(record.data, fields, 'data', open),
      subject: () => replaced(record.subject, fields, 'subject', open),
    });
    // What was erased may not live on in memory.
    if (key !== undefined && key !== 'erased' && !('error' in key)) this.opened.set(record, opened);
    return opened;
  }
}

/** Why a key could not be read. */
interface Failure {
  readonly error: unknown;
}

const NOBODY: ReadonlyMap<KeyPurpose, FoundKey> = new Map();

/** @throws KeyMissing; what the keys answered instead of the key; Error where the value was moved or altered */
function openedValue(purpose: KeyPurpose, key: FoundKey | Failure | undefined, binding: string, value: unknown): unknown {
  if (key === 'erased') return null;
  if (key === undefined) throw new KeyMissing(purpose);
  if ('error' in key) throw key.error;
  // Of a restore that mixed keys and log: this one was made after the right one was lost.
  if (!isSealedWith(key, value as string)) throw new KeyMissing(purpose, 'is another one than this log was sealed with');
  return JSON.parse(openText(key, binding, value as string));
}

function purposeOf(stream: string): ErasablePurpose {
  return `person.${stream}`;
}

function bindingOf(stream: string, { id }: NewEvent, path: string): string {
  return `${stream} ${id} ${path}`;
}
