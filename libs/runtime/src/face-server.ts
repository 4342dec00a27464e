import type { AddressInfo } from 'node:net';
import { fastify, type FastifyInstance } from 'fastify';
import type { HttpFace } from '#libs/platform/src/http-face';
import { portRefused } from '#libs/platform/src/operations/operations-surface';
import { refusedHead } from '#libs/platform/src/request-head';
import { requestIdOf } from '#libs/platform/src/request-id';

interface Address {
  readonly host: string;
  readonly port: number;
  readonly setting: string;
}

const REQUEST_TIMEOUT_MS = 30_000;
const CHECK_TIMEOUTS_MS = 1_000;
const JSON_TYPE = 'application/json; charset=utf-8';

/** The HTTP server of a face in a process that has no API. */
export class FaceServer {
  private constructor(
    private readonly server: FastifyInstance,
    readonly url: string,
  ) {}

  /** @throws StartRefused when the port is taken */
  static async listen(face: HttpFace, { host, port, setting }: Address): Promise<FaceServer> {
    const server = fastify({
      requestTimeout: REQUEST_TIMEOUT_MS,
      http: { headersTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: CHECK_TIMEOUTS_MS, requireHostHeader: false },
      // A client that joins its base address and a path has two slashes there.
      rewriteUrl: ({ url = '/' }) => (url.startsWith('//') ? url.slice(1) : url),
      requestIdHeader: false,
      genReqId: requestIdOf,
      // Only what is in front of a service reaches it.
      trustProxy: true,
      return503OnClosing: false,
      forceCloseConnections: 'idle',
    }) as unknown as FastifyInstance;
    server.addHook('onRequest', (request, reply, done) => {
      reply.header('X-Request-ID', request.id);
      const refused = refusedHead(request.raw);
      if (refused !== null) reply.header('Connection', 'close');
      done(refused ?? undefined);
    });
    server.setNotFoundHandler(
      (_request, reply) => void reply.code(404).header('Content-Type', JSON_TYPE).send('{"message":"No such path.","code":"route_not_found"}'),
    );
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
