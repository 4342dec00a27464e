import { BSON } from 'mongodb';

/** A message of MongoDB's protocol: a command as one document, whichever of the two forms it came in. */
export interface WireCommand {
  readonly requestId: number;
  readonly isLegacy: boolean;
  readonly document: BSON.Document;
}

const HEADER = 16;
const OP_REPLY = 1;
const OP_QUERY = 2_004;
const OP_MSG = 2_013;
/** Numbers stay of the type that was sent. */
const AS_SENT = { promoteValues: false, promoteLongs: false } as const;

/** Cuts a stream of bytes into messages. */
export class WireMessages {
  private rest = Buffer.alloc(0);

  *add(bytes: Buffer): Generator<WireCommand> {
    this.rest = Buffer.concat([this.rest, bytes]);
    while (this.rest.length >= HEADER && this.rest.length >= this.rest.readInt32LE(0)) {
      const length = this.rest.readInt32LE(0);
      yield commandOf(this.rest.subarray(0, length));
      this.rest = this.rest.subarray(length);
    }
  }
}

export function replyTo({ requestId, isLegacy }: WireCommand, document: BSON.Document): Buffer {
  const body = BSON.serialize(document);
  // Of a reply to the older form: flags, cursor, place in it, number of documents. Of the newer one: flags, and the kind of what follows.
  const before = isLegacy ? Buffer.alloc(20) : Buffer.alloc(5);
  if (isLegacy) before.writeInt32LE(1, 16);
  const header = Buffer.alloc(HEADER);
  header.writeInt32LE(HEADER + before.length + body.length, 0);
  header.writeInt32LE(requestId, 8);
  header.writeInt32LE(isLegacy ? OP_REPLY : OP_MSG, 12);
  return Buffer.concat([header, before, body]);
}

function commandOf(message: Buffer): WireCommand {
  const requestId = message.readInt32LE(4);
  const operation = message.readInt32LE(12);
  if (operation === OP_QUERY) {
    // Flags, the name of a collection, two numbers.
    const end = message.indexOf(0, HEADER + 4);
    return { requestId, isLegacy: true, document: BSON.deserialize(message.subarray(end + 9), AS_SENT) };
  }
  if (operation !== OP_MSG) throw new Error(`A message of the kind ${operation} is not understood.`);
  return { requestId, isLegacy: false, document: documentOf(message.subarray(HEADER + 4)) };
}

/** The sections of a message: the command, and lists that belong to it. */
function documentOf(sections: Buffer): BSON.Document {
  const document: BSON.Document = {};
  for (let at = 0; at < sections.length;) {
    const isList = sections[at] === 1;
    const size = sections.readInt32LE(at + 1);
    const section = sections.subarray(at + 1, at + 1 + size);
    if (isList) {
      const end = section.indexOf(0, 4);
      const list: BSON.Document[] = [];
      for (let from = end + 1; from < size; from += section.readInt32LE(from))
        list.push(BSON.deserialize(section.subarray(from, from + section.readInt32LE(from)), AS_SENT));
      document[section.toString('utf8', 4, end)] = list;
    } else Object.assign(document, BSON.deserialize(section, AS_SENT));
    at += 1 + size;
  }
  return document;
}
