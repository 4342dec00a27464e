import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A webhook receiver that counts how often each event reached it. */
export class Receiver {
  readonly received = new Map<string, number>();

  private constructor(private readonly server: Server) {}

  static async listen(): Promise<Receiver> {
    const server = createServer();
    const receiver = new Receiver(server);
    server.on('request', (request, response) => {
      const id = String(request.headers['webhook-id']);
      request.resume().on('end', () => {
        receiver.received.set(id, (receiver.received.get(id) ?? 0) + 1);
        response.end();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/events`;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}
