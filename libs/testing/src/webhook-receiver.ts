import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Certified } from './certificates.ts';

export interface ReceivedWebhook {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const ARRIVAL_TIMEOUT_MS = 15_000;

/** Takes webhooks on the loopback, and keeps every attempt in order. */
export class WebhookReceiver {
  readonly received: ReceivedWebhook[] = [];
  private status = 200;
  private text = '';

  private constructor(
    private readonly server: Server,
    private readonly scheme: 'http' | 'https',
  ) {}

  /** With a certificate it is reached over TLS alone. */
  static async listen(certified: Certified | null = null): Promise<WebhookReceiver> {
    const server = certified === null ? createServer() : createTlsServer(certified);
    const receiver = new WebhookReceiver(server, certified === null ? 'http' : 'https');
    server.on('request', (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        receiver.received.push({ path: request.url!, headers: request.headers, body });
        response.writeHead(receiver.status).end(receiver.text);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return receiver;
  }

  get url(): string {
    return `${this.scheme}://127.0.0.1:${(this.server.address() as AddressInfo).port}/webhooks`;
  }

  /** From now on every attempt is answered so. */
  answers(status: number, text = ''): void {
    this.status = status;
    this.text = text;
  }

  /** Waits for a webhook whose event is such. @throws Error when it does not come */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an event, it also asserts
  async receives(isSuch: (event: any) => boolean): Promise<ReceivedWebhook> {
    for (const deadline = Date.now() + ARRIVAL_TIMEOUT_MS; ; await pause(10)) {
      const found = this.received.find(({ body }) => isSuch(JSON.parse(body)));
      if (found !== undefined) return found;
      if (Date.now() > deadline) throw new Error(`${this.received.length} webhooks came, and none was the expected one.`);
    }
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}
