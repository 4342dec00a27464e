import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { DomainError } from './domain-error.ts';
import type { WrittenAnswer } from './http-face.ts';
import { pathAndQueryOf, refusedOverflow } from './request-head.ts';
import { requestIdOf } from './request-id.ts';

/** Answers what is no HTTP request, or none in time; there is no request object yet. `target`: what was asked for, where that much could be read. */
export function answerUnreadable(error: Error, socket: Socket, answerOf: (refused: DomainError, requestId: string, target: string) => WrittenAnswer): void {
  const { code, rawPacket } = error as { readonly code?: string; readonly rawPacket?: Buffer };
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const requestId = requestIdOf({ headers: {} });
  const { status, headers, text } = answerOf(causeOf(code, rawPacket), requestId, pathAndQueryOf(targetOf(rawPacket) ?? targetBegun(socket) ?? ''));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...Object.entries({ 'X-Request-ID': requestId, ...headers, 'Content-Length': Buffer.byteLength(text), Connection: 'close' }).map(
      ([name, value]) => `${name}: ${value}`,
    ),
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`);
}

function causeOf(code: string | undefined, packet: Buffer | undefined): DomainError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new DomainError('invalid', 'request_timeout', 'The request did not arrive completely in time.');
    case 'HPE_HEADER_OVERFLOW':
      return refusedOverflow(packet);
    default:
      return new DomainError('invalid', 'bad_request', 'The request cannot be read.');
  }
}

function targetOf(packet: Buffer | undefined): string | undefined {
  return /^[A-Z]{3,10} ([^ \r\n]*)/.exec(packet?.toString('latin1', 0, LONGEST_TARGET) ?? '')?.[1];
}

/** Of a request whose head was read and whose body does not come to its end: Node knows it by the answer that waits on the socket, and says so nowhere else. */
function targetBegun(socket: Socket & { readonly _httpMessage?: ServerResponse | null }): string | undefined {
  return socket._httpMessage?.req.url;
}

const LONGEST_TARGET = 1_024;
