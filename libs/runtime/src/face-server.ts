import type { AddressInfo } from 'node:net';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { DomainError } from '#libs/platform/src/domain-error';
import type { HttpFace, WrittenAnswer } from '#libs/platform/src/http-face';
import { portRefused } from '#libs/platform/src/operations/operations-surface';
import { pathAndQueryOf, refusedHead } from '#libs/platform/src/request-head';
import { requestIdOf } from '#libs/platform/src/request-id';
import { answerUnreadable } from '#libs/platform/src/unreadable-request';
import type { FaceAddress } from './app.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const CHECK_TIMEOUTS_MS = 1_000;

/** The HTTP server of a face in a process that has no API. */
export class FaceServer {
  private constructor(
    private readonly server: FastifyInstance,
    readonly url: string,
  ) {}

  /** @throws StartRefused when the port is taken */
  static async listen(face: HttpFace, { host, port, setting, trustedProxies }: FaceAddress): Promise<FaceServer> {
    const server = fastify({
      requestTimeout: REQUEST_TIMEOUT_MS,
      http: { headersTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: CHECK_TIMEOUTS_MS, requireHostHeader: false },
      rewriteUrl: ({ url = '/' }) => pathAndQueryOf(url),
      requestIdHeader: false,
      genReqId: requestIdOf,
      trustProxy: trustedProxies.length > 0 && [...trustedProxies],
      frameworkErrors: (_error: Error, request: FastifyRequest, reply: FastifyReply) =>
        sendAs(reply.header('X-Request-ID', request.id), face.refusalOf(new DomainError('invalid', 'bad_request', 'The path cannot be read.'), request.id)),
      clientErrorHandler: (error, socket) => answerUnreadable(error, socket, (refused, requestId) => face.refusalOf(refused, requestId)),
      return503OnClosing: false,
      forceCloseConnections: 'idle',
    }) as unknown as FastifyInstance;
    server.addHook('onRequest', (request, reply, done) => {
      reply.header('X-Request-ID', request.id);
      const refused = refusedHead(request.raw);
      if (refused !== null) reply.header('Connection', 'close');
      done(refused ?? undefined);
    });
    const noSuchPath = new DomainError('not-found', 'route_not_found', 'No such path.');
    server.setNotFoundHandler((request, reply) => sendAs(reply, face.refusalOf(noSuchPath, request.id)));
    server.setErrorHandler((error, request, reply) => sendAs(reply, face.refusalOf(error, request.id)));
    await face.mount(server);
    await server.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
      throw portRefused(error, setting, host, port);
    });
    const { address, family, port: own } = server.server.address() as AddressInfo;
    return new FaceServer(server, `http://${family === 'IPv6' ? `[${address}]` : address}:${own}`);
  }

  /** Finishes what is in flight, for at most so many milliseconds. */
  async close(milliseconds: number): Promise<void> {
    const timer = setTimeout(() => this.server.server.closeAllConnections(), milliseconds);
    await this.server.close();
    clearTimeout(timer);
  }
}

function sendAs(reply: FastifyReply, { status, headers, text }: WrittenAnswer): void {
  void reply.code(status).headers(headers).send(text);
}
