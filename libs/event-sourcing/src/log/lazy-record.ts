import type { RecordedEvent } from './event-store.ts';

/** What is known of a record without its content. */
export type Envelope = Omit<RecordedEvent, 'data' | 'subject'>;

/** JSON text, or what makes the value; it may throw, and may be asked again. */
type Unread = string | (() => unknown);

interface UnreadContent {
  readonly data: Unread;
  readonly subject: Unread;
  readonly bytes?: number;
}

const UNMADE = Symbol('unmade');

/**
 * A record whose content is made when somebody asks for it, each half once for all who read it at about the same time; whoever goes by the envelope alone pays nothing
 * for it.
 */
export class LazyRecord implements RecordedEvent {
  readonly id: RecordedEvent['id'];
  readonly type: RecordedEvent['type'];
  readonly shape: RecordedEvent['shape'];
  readonly public: RecordedEvent['public'];
  readonly sealed: RecordedEvent['sealed'];
  readonly meta: RecordedEvent['meta'];
  readonly stream: RecordedEvent['stream'];
  readonly version: RecordedEvent['version'];
  readonly position: RecordedEvent['position'];
  /** About as many as its content takes as text. */
  readonly bytes: number;
  #data: unknown = UNMADE;
  #subject: unknown = UNMADE;
  readonly #unreadData: Unread;
  readonly #unreadSubject: Unread;
  readonly #source: LazyRecord | null;

  /** `source`: of whose content its own is made. */
  constructor(envelope: Envelope, { data, subject, bytes = lengthOf(data) + lengthOf(subject) }: UnreadContent, source: LazyRecord | null = null) {
    this.id = envelope.id;
    this.type = envelope.type;
    this.shape = envelope.shape;
    this.public = envelope.public;
    this.sealed = envelope.sealed;
    this.meta = envelope.meta;
    this.stream = envelope.stream;
    this.version = envelope.version;
    this.position = envelope.position;
    this.bytes = bytes;
    this.#unreadData = data;
    this.#unreadSubject = subject;
    this.#source = source;
  }

  get data(): unknown {
    if (this.#data === UNMADE) this.#data = valueOf(this.#unreadData);
    return this.#data;
  }

  get subject(): unknown {
    if (this.#subject === UNMADE) this.#subject = valueOf(this.#unreadSubject);
    return this.#subject;
  }

  /** What was made of its content is made again for whoever asks from now on. */
  letGo(): void {
    this.#data = UNMADE;
    this.#subject = UNMADE;
    this.#source?.letGo();
  }

  toJSON(): RecordedEvent {
    return { ...envelopeOf(this), data: this.data, subject: this.subject };
  }
}

/** A record whose content cannot be read: whoever needs that meets the reason, and nobody else does. */
export class UnreadableRecord extends LazyRecord {
  constructor(
    envelope: Envelope,
    readonly reason: unknown,
  ) {
    const unreadable = (): never => {
      throw reason;
    };
    super(envelope, { data: unreadable, subject: unreadable, bytes: bytesOf(envelope) });
  }
}

/** A sealed record that nobody here was to look into: its keys were not asked for. */
export class UnopenedRecord extends UnreadableRecord {
  constructor(envelope: Envelope) {
    super(envelope, new Error('Nobody was to look into this record.'));
  }
}

/** The same record with other content, which is made when somebody asks for it. A spread copy would have none. */
export function withContent(
  record: Envelope,
  { shape = record.shape, data, subject }: { readonly shape?: number; readonly data: () => unknown; readonly subject: () => unknown },
): RecordedEvent {
  const source = record instanceof LazyRecord ? record : null;
  return new LazyRecord(shape === record.shape ? record : { ...envelopeOf(record), shape }, { data, subject, bytes: bytesOf(record) }, source);
}

/** About as many as the content of a record takes as text; 0 where that is not known. */
export function bytesOf(record: Envelope): number {
  return (record as Partial<LazyRecord>).bytes ?? 0;
}

function envelopeOf({ id, type, shape, public: announced, sealed, meta, stream, version, position }: Envelope): Envelope {
  return { id, type, shape, public: announced, sealed, meta, stream, version, position };
}

function lengthOf(unread: Unread): number {
  return typeof unread === 'string' ? unread.length : 0;
}

function valueOf(unread: Unread): unknown {
  return typeof unread === 'string' ? JSON.parse(unread) : unread();
}

const DATA = '\n,"data":';
const SUBJECT = '\n,"subject":';
/** What a stored record has beside its members. */
export const SEPARATORS = 2;

/** As a record is stored: one JSON object, in which data and subject come last, behind the only two line breaks that it has. */
export function storedText(envelope: object, { data, subject }: { readonly data: string; readonly subject: string }): string {
  return `${JSON.stringify(envelope).slice(0, -1)}${DATA}${data}${SUBJECT}${subject}}`;
}

/** Content as it is stored. */
export function contentText(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}

/** The envelope, and the content as text; as values where an earlier release stored it among the envelope. @throws SyntaxError */
export function readStored(text: string): { readonly envelope: Readonly<Record<string, unknown>>; readonly content: UnreadContent } {
  const end = text.indexOf(DATA);
  const middle = end === -1 ? -1 : text.indexOf(SUBJECT, end + DATA.length);
  if (middle !== -1) {
    const envelope = JSON.parse(`${text.slice(0, end)}}`) as Readonly<Record<string, unknown>>;
    return { envelope, content: { data: text.slice(end + DATA.length, middle), subject: text.slice(middle + SUBJECT.length, -1) } };
  }
  const whole = JSON.parse(text) as Readonly<Record<string, unknown>>;
  return { envelope: whole, content: { data: () => whole['data'], subject: () => whole['subject'], bytes: text.length } };
}
