import { createServer, type Server } from 'node:http';
import type { Metrics } from '../metrics.ts';
import type { Readiness } from '../readiness.ts';
import { StartRefused } from '../start-refused.ts';

export interface OperationsAnswer {
  readonly status: 200 | 503;
  readonly contentType: string;
  readonly body: string;
}

export const OPERATIONS_PATHS = ['/health/live', '/health/ready', '/metrics'] as const;
export type OperationsPath = (typeof OPERATIONS_PATHS)[number];

/** Of damages, which may be many: enough to begin with. */
const NAMED = 20;
const JSON_TYPE = 'application/json; charset=utf-8';

/** What of the log is damaged, each as it is shown. */
interface Damages {
  list(): readonly object[];
}

/** What an orchestrator and a monitoring system ask: on a port of its own in production, beside the API in development. */
export class OperationsSurface {
  constructor(
    private readonly readiness: Readiness,
    private readonly metrics: Metrics,
    private readonly damage: Damages,
  ) {}

  async answer(path: OperationsPath): Promise<OperationsAnswer> {
    switch (path) {
      // That the event loop comes round to answering is the whole statement.
      case '/health/live':
        return { status: 200, contentType: JSON_TYPE, body: '{"status":"live"}' };
      case '/health/ready': {
        const obstacle = this.readiness.obstacle();
        // Every process has the same log, so what is damaged there is no reason to send requests to another.
        return obstacle === null
          ? { status: 200, contentType: JSON_TYPE, body: JSON.stringify({ status: 'ready', ...this.damages() }) }
          : { status: 503, contentType: JSON_TYPE, body: JSON.stringify({ status: 'not_ready', reason: obstacle, ...this.damages() }) };
      }
      case '/metrics':
        return { status: 200, contentType: this.metrics.contentType, body: await this.metrics.text() };
    }
  }

  /** @throws StartRefused when the port is taken */
  async listen(host: string, port: number): Promise<Server> {
    const server = createServer((request, response) => {
      const path = OPERATIONS_PATHS.find((known) => known === request.url?.split('?')[0]);
      if (path === undefined || request.method !== 'GET') {
        response.writeHead(404, { 'content-type': JSON_TYPE }).end('{"message":"No such path.","code":"route_not_found"}');
        return;
      }
      this.answer(path).then(
        ({ status, contentType, body }) => response.writeHead(status, { 'content-type': contentType }).end(body),
        () => response.writeHead(500, { 'content-type': JSON_TYPE }).end('{"message":"The metrics could not be collected.","code":"internal_error"}'),
      );
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => reject(portRefused(error, 'OPERATIONS_PORT', host, port)));
      server.listen(port, host, resolve);
    });
    return server;
  }

  /** What of the log is damaged; nothing where nothing is. */
  private damages(): object {
    const damages = this.damage.list();
    return damages.length === 0 ? {} : { log_damage: { count: damages.length, first: damages.slice(0, NAMED) } };
  }
}

/** The way out when an address cannot be listened on. */
export function portRefused(error: NodeJS.ErrnoException, setting: string, host: string, port: number): Error {
  switch (error.code) {
    case 'EADDRINUSE':
      return new StartRefused(`Port ${port} on ${host} is taken: stop the process that listens there, or set ${setting} to another port.`);
    case 'EACCES':
      return new StartRefused(`Port ${port} may not be used by this user: set ${setting} to a port above 1023.`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new StartRefused(`${host} is no address of this machine: set HOST to one, or to 127.0.0.1.`);
    default:
      return error;
  }
}
