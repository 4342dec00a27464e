import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Certified } from '#libs/testing/src/certificates';

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What is answered; null: nothing, for as long as the receiver is there; `lost`: the connection breaks first. */
export type Answered = { readonly status: number; readonly text?: string; readonly headers?: Readonly<Record<string, string>> } | 'lost' | null;

/** Takes what is streamed, on the loopback, and keeps every request in order. */
export class StreamReceiver {
  readonly received: Received[] = [];

  private constructor(
    private readonly server: Server,
    private readonly scheme: 'http' | 'https',
    /** May be replaced at any time. */
    public answer: (request: Received) => Answered,
  ) {}

  /** With a certificate it is reached over TLS alone. */
  static async listen(answer: (request: Received) => Answered = () => ({ status: 200 }), certified: Certified | null = null): Promise<StreamReceiver> {
    const server = certified === null ? createServer() : createTlsServer(certified);
    const receiver = new StreamReceiver(server, certified === null ? 'http' : 'https', answer);
    server.on('request', (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        const received = { method: request.method!, path: request.url!, headers: request.headers, body };
        receiver.received.push(received);
        const answered = receiver.answer(received);
        if (answered === 'lost') request.socket.destroy();
        else if (answered !== null) response.writeHead(answered.status, answered.headers).end(answered.text);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return receiver;
  }

  get origin(): string {
    return `${this.scheme}://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}
