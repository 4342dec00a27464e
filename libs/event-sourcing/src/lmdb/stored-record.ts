import { crc32 } from 'node:zlib';
import type { Arena } from '#libs/platform/src/storage/arena';
import type { EventMeta } from '../log/event-store.ts';
import { type Envelope, LazyRecord, readStored } from '../log/lazy-record.ts';
import { environmentOf } from '../log/naming.ts';

/**
 * A record as it lies in the tree: a checksum, a byte that says in which form, and three lines of JSON. The first is the envelope as a list, in which neither names are repeated nor what
 * the key of the tree and the name of the stream say; then data and subject. Earlier releases wrote one JSON object, which begins with a brace where the form stands.
 */

const CHECKSUM_BYTES = 4;
/** Counts up with each form that a record is written in; every one is read for ever. */
const FORM = 1;
const BRACE = 0x7b;
const HEADER_BYTES = CHECKSUM_BYTES + 1;
/** More than names and what follows from others take in one that EventStoreDB is given: it is what is left out here. */
export const LEFT_OUT_BYTES = 256;
/** Stands in the data for the record's own id, which most data begin with. JSON has no such character. */
const OWN_ID = '\x01';
/** What is not there. */
const NONE = 0;

type OrNone<Value> = Exclude<Value, undefined> | typeof NONE;

type StoredEnvelope = [
  id: string,
  stream: string,
  version: number,
  type: string,
  shape: number,
  announced: Envelope['public'] | typeof NONE,
  sealed: OrNone<Envelope['sealed']>,
  /** Where it is not that of the stream. */
  environment: string | typeof NONE,
  organization: string | typeof NONE,
  actor: string,
  actorSource: string,
  actorName: string | typeof NONE,
  requestId: string,
  commandId: string,
  at: number,
  others?: OtherMeta,
];

/** What few records have. Each of them has to be named where one is stored. */
type OtherMeta = { readonly [Name in Exclude<keyof EventMeta, 'environment' | 'organization' | 'actor' | 'requestId' | 'commandId' | 'at'>]: EventMeta[Name] };

interface Content {
  /** JSON, as JSON.stringify writes it: on one line. */
  readonly data: string;
  readonly subject: string;
}

/** The bytes of a record at a position. */
export function storedRecord(arena: Arena, position: number, envelope: Envelope, { data, subject }: Content): Buffer {
  const own = data.indexOf(envelope.id);
  const shortened = own === -1 || envelope.id === '' ? data : data.slice(0, own) + OWN_ID + data.slice(own + envelope.id.length);
  const bytes = arena.text(HEADER_BYTES, `${JSON.stringify(listOf(envelope))}\n${shortened}\n${subject}`);
  bytes[CHECKSUM_BYTES] = FORM;
  writeChecksum(bytes, position);
  return bytes;
}

/** Null where the bytes are not those that were written at this position (a number; `text` as records say it). @throws SyntaxError */
export function readRecord(bytes: Buffer, position: number, text: string): LazyRecord | null {
  if (!isWhole(bytes, position)) return null;
  const form = bytes[CHECKSUM_BYTES];
  if (form === BRACE) {
    const { envelope, content } = readStored(bytes.toString('utf8', CHECKSUM_BYTES));
    return new LazyRecord(envelope as unknown as Envelope, content);
  }
  if (form !== FORM) throw new SyntaxError(`The record is stored in the form ${form}, which this release does not know.`);
  const stored = bytes.toString('utf8', HEADER_BYTES);
  const [end, middle] = [stored.indexOf('\n'), stored.lastIndexOf('\n')];
  const envelope = envelopeOf(JSON.parse(stored.slice(0, end)) as StoredEnvelope, text);
  const data = stored.slice(end + 1, middle);
  const own = data.indexOf(OWN_ID);
  return new LazyRecord(envelope, {
    data: own === -1 ? data : data.slice(0, own) + envelope.id + data.slice(own + OWN_ID.length),
    subject: stored.slice(middle + 1),
  });
}

function listOf({ id, stream, version, type, shape, public: announced, sealed, meta }: Envelope): StoredEnvelope {
  const { environment, organization, actor, requestId, commandId, at, causationId, traceparent, origin } = meta;
  const others: OtherMeta | null = causationId === undefined && traceparent === undefined && origin === undefined ? null : { causationId, traceparent, origin };
  const list: StoredEnvelope = [
    id,
    stream,
    version,
    type,
    shape,
    announced.length === 0 ? NONE : announced,
    sealed ?? NONE,
    environment === environmentOf(stream) ? NONE : environment,
    organization ?? NONE,
    actor.id,
    actor.source,
    actor.name ?? NONE,
    requestId,
    commandId,
    at,
  ];
  if (others !== null) list.push(others);
  return list;
}

function envelopeOf(list: StoredEnvelope, position: string): Envelope {
  const [id, stream, version, type, shape, announced, sealed, environment, organization, actor, source, name, requestId, commandId, at, others] = list;
  return {
    id,
    stream,
    version,
    position,
    type,
    shape,
    public: announced === NONE ? [] : announced,
    ...(sealed !== NONE && { sealed }),
    meta: {
      environment: environment === NONE ? environmentOf(stream) : environment,
      ...(organization !== NONE && { organization }),
      actor: { id: actor, source, name: name === NONE ? null : name },
      requestId,
      commandId,
      ...others,
      at,
    },
  };
}

/** Over the whole value, its own bytes being zero, and the position: a record in another's place is damage too. */
function writeChecksum(bytes: Buffer, position: number): void {
  bytes.writeUInt32LE(0, 0);
  bytes.writeUInt32LE(crc32(bytes, position >>> 0), 0);
}

function isWhole(bytes: Buffer, position: number): boolean {
  if (bytes.length <= CHECKSUM_BYTES) return false;
  const stored = bytes.readUInt32LE(0);
  bytes.writeUInt32LE(0, 0);
  const isSame = crc32(bytes, position >>> 0) === stored;
  bytes.writeUInt32LE(stored, 0);
  return isSame;
}
