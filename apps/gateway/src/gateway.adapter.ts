import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MAX_BODY } from '#libs/contracts/src/operation';
import type { GatewaySettings } from '#libs/platform/src/config/settings';
import { DomainError } from '#libs/platform/src/domain-error';
import { badRequest, refusal, send } from './http-answer.ts';
import { refusedOverflow, uriTooLong } from '#libs/platform/src/request-head';
import { requestIdOf } from '#libs/platform/src/request-id';

/** 128 characters, each percent-encoded, with room to spare. */
const MAX_PARAMETER = 512;
/** How often slow requests are looked for. */
const CHECK_TIMEOUTS = 1_000;

/** The HTTP server under Nest. Answers to unknown paths and errors are the gateway's own (`Gateway`), so Nest's are not installed. */
export class GatewayAdapter extends FastifyAdapter {
  constructor({ REQUEST_TIMEOUT, TRUSTED_PROXIES }: Pick<GatewaySettings, 'REQUEST_TIMEOUT' | 'TRUSTED_PROXIES'>) {
    super({
      bodyLimit: MAX_BODY,
      routerOptions: { maxParamLength: MAX_PARAMETER },
      requestTimeout: REQUEST_TIMEOUT,
      http: { headersTimeout: REQUEST_TIMEOUT, connectionsCheckingInterval: Math.min(CHECK_TIMEOUTS, REQUEST_TIMEOUT), requireHostHeader: false },
      trustProxy: TRUSTED_PROXIES.length > 0 && [...TRUSTED_PROXIES],
      // A client that joins its base address and a path has two slashes there.
      rewriteUrl: ({ url = '/' }) => (url.startsWith('//') ? url.slice(1) : url),
      requestIdHeader: false,
      genReqId: requestIdOf,
      // The gateway drains before the server closes; what still arrives then is answered.
      return503OnClosing: false,
      // Found before any route or hook: an encoding that means nothing, a parameter longer than any.
      frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
        reply.header('X-Request-ID', request.id);
        send(reply, refusal(codeOf(error) === 'FST_ERR_MAX_PARAM_LENGTH' ? uriTooLong() : badRequest('The path cannot be read.'))!);
      },
      clientErrorHandler: answerUnreadable,
      // Nest middleware is not used, and looking for it costs every request.
      skipMiddie: true,
    });
  }

  override setNotFoundHandler(): FastifyInstance {
    return this.instance;
  }

  override setErrorHandler(): FastifyInstance {
    return this.instance;
  }
}

/** Answers what is no HTTP request, or none in time; there is no request object yet. */
function answerUnreadable(error: Error, socket: Socket): void {
  if (codeOf(error) === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, text } = refusal(causeOf(error))!;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `X-Request-ID: ${requestIdOf({ headers: {} })}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text!)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`);
}

function codeOf(error: Error): string | undefined {
  return (error as { readonly code?: string }).code;
}

function causeOf(error: Error): DomainError {
  switch (codeOf(error)) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new DomainError('invalid', 'request_timeout', 'The request did not arrive completely in time.');
    case 'HPE_HEADER_OVERFLOW':
      return refusedOverflow((error as { readonly rawPacket?: Buffer }).rawPacket);
    default:
      return badRequest('The request cannot be read.');
  }
}
