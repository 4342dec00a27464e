import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MAX_BODY } from '#libs/contracts/src/operation';
import type { GatewaySettings, ProxySettings } from '#libs/platform/src/config/settings';
import { badRequest, type DomainError } from '#libs/platform/src/domain-error';
import type { HttpFace } from '#libs/platform/src/http-face';
import { pathAndQueryOf, uriTooLong } from '#libs/platform/src/request-head';
import { requestIdOf } from '#libs/platform/src/request-id';
import { answerUnreadable } from '#libs/platform/src/unreadable-request';
import { writtenRefusal } from './http-answer.ts';

/** Of what is decoded: 255 characters of two units each. */
const MAX_PARAMETER = 512;
/** How often slow requests are looked for. */
const CHECK_TIMEOUTS = 1_000;

/** The HTTP server under Nest. Answers to unknown paths and errors are the gateway's own (`Gateway`), so Nest's are not installed. */
export class GatewayAdapter extends FastifyAdapter {
  /** `faceOf`: whose words a path is answered in, where they are not ours. */
  constructor(
    { REQUEST_TIMEOUT, TRUSTED_PROXIES }: Pick<GatewaySettings, 'REQUEST_TIMEOUT'> & ProxySettings,
    faceOf: (url: string) => HttpFace | null = () => null,
  ) {
    const refusalOf = (error: DomainError, requestId: string, url: string) => faceOf(url)?.refusalOf(error, requestId) ?? writtenRefusal(error);
    super({
      bodyLimit: MAX_BODY,
      routerOptions: { maxParamLength: MAX_PARAMETER },
      requestTimeout: REQUEST_TIMEOUT,
      http: { headersTimeout: REQUEST_TIMEOUT, connectionsCheckingInterval: Math.min(CHECK_TIMEOUTS, REQUEST_TIMEOUT), requireHostHeader: false },
      trustProxy: TRUSTED_PROXIES.length > 0 && [...TRUSTED_PROXIES],
      rewriteUrl: ({ url = '/' }) => pathAndQueryOf(url),
      requestIdHeader: false,
      genReqId: requestIdOf,
      // The gateway drains before the server closes; what still arrives then is answered.
      return503OnClosing: false,
      // Found before any route or hook: an encoding that means nothing, a parameter longer than any.
      frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => {
        const refused = codeOf(error) === 'FST_ERR_MAX_PARAM_LENGTH' ? uriTooLong() : badRequest('The path cannot be read.');
        const { status, headers, text } = refusalOf(refused, request.id, request.url);
        reply
          .code(status)
          .headers({ 'X-Request-ID': request.id, ...headers })
          .send(text);
      },
      clientErrorHandler: (error, socket) => answerUnreadable(error, socket, refusalOf),
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

function codeOf(error: Error): string | undefined {
  return (error as { readonly code?: string }).code;
}
