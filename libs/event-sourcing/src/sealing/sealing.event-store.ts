import type { KeyObject } from 'node:crypto';
import { EventStore, type Appended, type NewEvent, type Position, type RecordedEvent } from '../event-store.ts';
import type { KeyStore } from './key-store.ts';
import type { SealedFields, SealedFieldsOf } from './sealed-fields.ts';
import { isSealed, isSealedWith, openText, sealText } from './vault.ts';

/**
 * The log as everybody else sees it: personal fields lie in it sealed under a key per person, and are read in clear until that key is destroyed; then they read as
 * null. Secrets come sealed already (`Vault`) and stay so. Events of types without such fields pass as they are.
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
    return this.inClear(await this.events.read(stream, from));
  }

  async readBackwards(stream: string, count: number, from?: number): Promise<readonly RecordedEvent[]> {
    return this.inClear(await this.events.readBackwards(stream, count, from));
  }

  async last(stream: string): Promise<RecordedEvent | null> {
    const record = await this.events.last(stream);
    return record !== null && this.isPersonal(record.type) ? this.open(record) : record;
  }

  /** Sealed text differs at every attempt; a repeat is told by its ids. @throws Error for a secret in clear */
  async append(stream: string, expectedVersion: number, events: readonly NewEvent[]): Promise<Appended> {
    const isAffected = events.some(({ type }) => this.sealedFields(type) !== null);
    return this.events.append(stream, expectedVersion, isAffected ? await Promise.all(events.map((event) => this.sealed(stream, event))) : events);
  }

  head(): Promise<Position> {
    return this.events.head();
  }

  async *subscribe(after: Position, signal: AbortSignal, pace?: 'prompt'): AsyncIterable<readonly RecordedEvent[]> {
    for await (const batch of this.events.subscribe(after, signal, pace)) yield this.inClear(batch);
  }

  private async sealed(stream: string, event: NewEvent): Promise<NewEvent> {
    const fields = this.sealedFields(event.type);
    if (fields === null) return event;
    const key = hasPersonal(fields) ? await this.keys.obtain(`person.${stream}`) : null;
    const seal: Replace = (value, kind, path) => {
      if (kind === 'personal') return sealText(key!, bindingOf(stream, event, path), JSON.stringify(value));
      if (!isSealed(value)) throw new Error(`${event.type} holds the secret ${path} in clear: it has to be sealed before it is decided on.`);
      return value;
    };
    return { ...event, data: replaced(event.data, fields, 'data', seal), subject: replaced(event.subject, fields, 'subject', seal) };
  }

  private async inClear(records: readonly RecordedEvent[]): Promise<readonly RecordedEvent[]> {
    if (!records.some(({ type }) => this.isPersonal(type))) return records;
    return Promise.all(records.map(async (record) => (this.isPersonal(record.type) ? this.open(record) : record)));
  }

  private isPersonal(type: string): boolean {
    const fields = this.sealedFields(type);
    return fields !== null && hasPersonal(fields);
  }

  private async open(record: RecordedEvent): Promise<RecordedEvent> {
    const known = this.opened.get(record);
    if (known !== undefined) return known;
    const key = await this.keys.find(`person.${record.stream}`);
    const fields = this.sealedFields(record.type)!;
    const open: Replace = (value, kind, path) => (kind === 'personal' ? openedValue(key, bindingOf(record.stream, record, path), value) : value);
    const opened = { ...record, data: replaced(record.data, fields, 'data', open), subject: replaced(record.subject, fields, 'subject', open) };
    // What was erased may not live on in memory.
    if (key !== null) this.opened.set(record, opened);
    return opened;
  }
}

function openedValue(key: KeyObject | null, binding: string, value: unknown): unknown {
  // Once a key was destroyed, what was recorded later is under another one.
  return key === null || !isSealedWith(key, value as string) ? null : JSON.parse(openText(key, binding, value as string));
}

function bindingOf(stream: string, { id }: NewEvent, path: string): string {
  return `${stream} ${id} ${path}`;
}

function hasPersonal(fields: SealedFields): boolean {
  return Object.values(fields).some((field) => field === 'personal' || (typeof field === 'object' && hasPersonal(field)));
}

type Replace = (value: unknown, kind: 'personal' | 'secret', path: string) => unknown;

/** A copy with every sealed field replaced, in which nothing else changes; what is absent or null stays so. */
function replaced(value: unknown, fields: SealedFields, path: string, replace: Replace): unknown {
  if (Array.isArray(value)) return value.map((item, index) => replaced(item, fields, `${path}.${index}`, replace));
  if (typeof value !== 'object' || value === null) return value;
  const copy: Record<string, unknown> = { ...value };
  for (const [name, field] of Object.entries(fields)) {
    if (!Object.hasOwn(copy, name) || copy[name] === null || copy[name] === undefined) continue;
    const inner = `${path}.${name}`;
    copy[name] = typeof field === 'string' ? replace(copy[name], field, inner) : replaced(copy[name], field, inner, replace);
  }
  return copy;
}
