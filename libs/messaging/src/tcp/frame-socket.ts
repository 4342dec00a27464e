import type { Socket } from 'node:net';
import { TcpSocket } from '@nestjs/microservices';

/** What a message is; the numbers are those on the wire. Above the line, a client sends them; below, a server. */
export const MESSAGE = {
  /** The first one each way. The server's tells its clock, and that the client is let in. */
  hello: 1,
  ping: 2,
  request: 3,
  /** Nobody waits for the answer to the request of this id any more. */
  cancel: 4,
  // ---
  pong: 5,
  /** JSON of the answer's class. */
  answer: 6,
  /** JSON that went through the allow-list serialiser already: a stored row, a page of rows. */
  serialised: 7,
  empty: 8,
  refusal: 9,
  /** A bug; the service's log has the cause. */
  failure: 10,
  /** The request was not begun; another replica may be asked. */
  declined: 11,
  /** The server is about to stop: nothing new, please. */
  leave: 12,
} as const;

export interface Message {
  readonly type: number;
  /** Of the request that it belongs to. */
  readonly id: number;
  /** About the message: JSON, or empty. */
  readonly head: string;
  /** What it carries: JSON, or empty. */
  readonly text: string;
}

const MAX_FRAME = 1024 * 1024;
/** A page of a hundred objects of 64 KB each, which travels as several frames, one right after the other. */
export const MAX_MESSAGE = 16 * MAX_FRAME;
/** Enough for a greeting: who has not been let in may not make us keep more. */
const MAX_GREETING = 1024;

const LENGTH = 4;
/** The uppermost bit of a frame's length: the message goes on in the next one. */
const GOES_ON = 0x8000_0000;
/** Type, id, length of the head. */
const PREFIX = 9;
/** Messages are written into pages, so that all of one turn of the event loop leave in one piece. */
const PAGE = 64 * 1024;
const SMALL = 16 * 1024;

/** How long a message may take to arrive from its first byte, and how long a peer may take nothing of what is sent to it. */
const PEER_TIMEOUT_MS = 10_000;
/** With so much waiting to leave, a server reads nothing more from this peer. */
const SLOW_READER = MAX_FRAME;
/** Pages of the greatest length that may wait at once for a peer that does read. */
const MAX_BACKLOG = 8 * MAX_MESSAGE;

/**
 * Messages on a connection, in frames of bounded length. Nest's own socket takes text of any length up to 128 MB and lets a sender that drips go on for ever; this one
 * closes on the first frame that is too long, on a message that takes too long, and on a peer that does not read.
 */
export class FrameSocket extends TcpSocket {
  /** How many messages have arrived; who counts them knows that the peer lives. */
  heard = 0;
  private maxMessage = MAX_GREETING;
  private chunks: Buffer[] = [];
  private buffered = 0;
  private needed = LENGTH;
  private parts: Buffer[] = [];
  private partsLength = 0;
  private incompleteSince: number | null = null;

  private page = Buffer.alloc(0);
  private sealed = 0;
  private filled = 0;
  private outgoing: Buffer[] = [];
  private waitingLength = 0;
  private willFlush = false;
  private written = 0;
  private taken = 0;
  private stuckSince: number | null = null;

  /** `pausing`: reads nothing from a peer that does not read what is sent to it. Only one side may, or the two would wait for each other. */
  constructor(
    socket: Socket,
    private readonly pausing = false,
  ) {
    super(socket);
    socket.setNoDelay(true);
  }

  /** The peer has shown who it is: from now on messages of full length are read. */
  letIn(): void {
    this.maxMessage = MAX_MESSAGE;
  }

  /** Bytes that have not left yet. */
  get backlog(): number {
    return this.socket.writableLength + this.waitingLength;
  }

  /** Why the connection has to be cut, or null. Asked about once a second, instead of a timer for each message. */
  fault(now: number): string | null {
    if (this.incompleteSince !== null && now - this.incompleteSince > PEER_TIMEOUT_MS) return 'a message did not arrive completely in time';
    const taken = this.written - this.socket.writableLength;
    if (this.socket.writableLength === 0 || taken !== this.taken) this.stuckSince = null;
    else this.stuckSince ??= now;
    this.taken = taken;
    return this.stuckSince !== null && now - this.stuckSince > PEER_TIMEOUT_MS ? 'it does not read what is sent to it' : null;
  }

  cut(reason: string): void {
    this.handleDataError(new Error(reason), { destroy: true });
  }

  protected handleData(data: Buffer): void {
    try {
      this.take(data);
    } catch (error) {
      this.cut((error as Error).message);
    }
  }

  private take(data: Buffer): void {
    this.chunks.push(data);
    this.buffered += data.length;
    if (this.buffered < this.needed) {
      this.incompleteSince ??= performance.now();
      // Single bytes cost far more than their length.
      if (this.chunks.length > 256) this.chunks = [Buffer.concat(this.chunks)];
      return;
    }
    const buffer = this.chunks.length === 1 ? data : Buffer.concat(this.chunks);
    let at = 0;
    for (;;) {
      const left = buffer.length - at;
      if (left < LENGTH) {
        this.needed = LENGTH;
        break;
      }
      const word = buffer.readUInt32BE(at);
      const goesOn = word >= GOES_ON;
      const length = goesOn ? word - GOES_ON : word;
      if (length > MAX_FRAME || this.partsLength + length > this.maxMessage) throw new Error('a message is too long');
      // Only what does not fit into one frame is sent in several; anything else would be a way to make us keep many small pieces.
      if (goesOn && length !== MAX_FRAME) throw new Error('a frame is not as it should be');
      this.needed = LENGTH + length;
      if (left < this.needed) break;
      const piece = buffer.subarray(at + LENGTH, at + this.needed);
      at += this.needed;
      if (!goesOn) this.incompleteSince = null;
      this.receive(piece, goesOn);
      if (this.socket.destroyed) return;
    }
    const rest = buffer.length - at;
    this.chunks = rest === 0 ? [] : [buffer.subarray(at)];
    this.buffered = rest;
    if (rest > 0 || this.parts.length > 0) this.incompleteSince ??= performance.now();
  }

  private receive(piece: Buffer, goesOn: boolean): void {
    if (goesOn) {
      this.parts.push(piece);
      this.partsLength += piece.length;
      return;
    }
    let bytes = piece;
    if (this.parts.length > 0) {
      bytes = Buffer.concat([...this.parts, piece]);
      this.parts = [];
      this.partsLength = 0;
    }
    if (bytes.length < PREFIX) throw new Error('a frame is not as it should be');
    const text = PREFIX + bytes.readUInt32BE(5);
    if (text > bytes.length) throw new Error('a frame is not as it should be');
    this.heard++;
    const message: Message = { type: bytes[0]!, id: bytes.readUInt32BE(1), head: bytes.toString('utf8', PREFIX, text), text: bytes.toString('utf8', text) };
    this.socket.emit('message', message);
  }

  protected handleSend({ type, id, head, text }: Message): void {
    const most = LENGTH + PREFIX + 3 * (head.length + text.length);
    if (most > SMALL) {
      this.sendLarge(type, id, head, text);
      return;
    }
    if (this.filled + most > this.page.length) this.turnPage();
    const at = this.filled + LENGTH;
    const headLength = head === '' ? 0 : this.page.write(head, at + PREFIX);
    const textLength = text === '' ? 0 : this.page.write(text, at + PREFIX + headLength);
    writePrefix(this.page, at, type, id, headLength);
    const length = PREFIX + headLength + textLength;
    this.page.writeUInt32BE(length, this.filled);
    this.filled = at + length;
    this.flushLater();
  }

  private sendLarge(type: number, id: number, head: string, text: string): void {
    const headLength = Buffer.byteLength(head);
    const message = Buffer.allocUnsafe(PREFIX + headLength + Buffer.byteLength(text));
    writePrefix(message, 0, type, id, headLength);
    message.write(head, PREFIX);
    message.write(text, PREFIX + headLength);
    this.closeSegment();
    for (let at = 0; at < message.length; at += MAX_FRAME) {
      const piece = message.subarray(at, at + MAX_FRAME);
      const length = Buffer.allocUnsafe(LENGTH);
      length.writeUInt32BE(at + MAX_FRAME < message.length ? piece.length + GOES_ON : piece.length, 0);
      this.outgoing.push(length, piece);
      this.waitingLength += length.length + piece.length;
    }
    this.flushLater();
  }

  private turnPage(): void {
    this.closeSegment();
    // Bytes once written are never written over: the socket may still hold them.
    this.page = Buffer.allocUnsafeSlow(PAGE);
    this.sealed = this.filled = 0;
  }

  private closeSegment(): void {
    if (this.filled === this.sealed) return;
    this.outgoing.push(this.page.subarray(this.sealed, this.filled));
    this.waitingLength += this.filled - this.sealed;
    this.sealed = this.filled;
  }

  private flushLater(): void {
    if (this.willFlush) return;
    this.willFlush = true;
    setImmediate(() => this.flush());
  }

  private flush(): void {
    this.willFlush = false;
    this.closeSegment();
    const { socket, outgoing } = this;
    this.outgoing = [];
    this.waitingLength = 0;
    if (socket.destroyed || !socket.writable) return;
    if (outgoing.length > 1) socket.cork();
    for (const bytes of outgoing) {
      this.written += bytes.length;
      socket.write(bytes);
    }
    if (outgoing.length > 1) socket.uncork();
    if (socket.writableLength > MAX_BACKLOG) this.cut('it does not read what is sent to it');
    else if (this.pausing && socket.writableLength > SLOW_READER && !socket.isPaused()) {
      socket.pause();
      socket.once('drain', () => socket.resume());
    }
  }

  /** Sends what is there, and closes. */
  finish(): void {
    this.flush();
    this.socket.end();
  }
}

function writePrefix(buffer: Buffer, at: number, type: number, id: number, headLength: number): void {
  buffer[at] = type;
  buffer.writeUInt32BE(id, at + 1);
  buffer.writeUInt32BE(headLength, at + 5);
}
