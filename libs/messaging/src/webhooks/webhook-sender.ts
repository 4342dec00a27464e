import { Agent, type Dispatcher } from 'undici';
import type { TargetRule } from './target-address.ts';
import { checkedConnector, dnsResolve, TargetRefused, type Resolve } from './checked-connector.ts';
import { retryAfterOf } from './retry-after.ts';

/** How much of an answer is kept. */
const EXCERPT_BYTES = 1024;
/** An answer may be this long for its connection to be used again. */
const READ_BYTES = 64 * 1024;

export interface Request {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What came of one request. Exactly one of `status` and `error` may be null. */
export interface Answer {
  readonly status: number | null;
  /** Why there was no answer: a word from a closed set or the system's code, never an address. */
  readonly error: string | null;
  readonly excerpt: string | null;
  /** Milliseconds that the receiver asks to wait. */
  readonly retryAfter: number | null;
}

interface Options {
  readonly rule: TargetRule;
  /** Milliseconds for everything: name, connection, request and answer. */
  readonly timeout: number;
  readonly resolve?: Resolve;
}

/** Posts webhooks. Never follows a redirect: it would lead past the rule. */
export class WebhookSender {
  private readonly agent: Agent;

  constructor(private readonly options: Options) {
    const { rule, timeout, resolve = dnsResolve() } = options;
    // The queues bound how many requests an endpoint has at a time; a limit here would let endpoints on one host wait for each other.
    this.agent = new Agent({ connect: checkedConnector(rule, resolve, timeout), pipelining: 1, connections: null, headersTimeout: 0, bodyTimeout: 0 });
  }

  /** Never throws: a failure is an answer too. */
  send({ url, headers, body }: Request): Promise<Answer> {
    return new Promise((resolve) => {
      const exchange = new Exchange(this.options.timeout, resolve);
      this.agent.dispatch({ origin: url.origin, path: url.pathname + url.search, method: 'POST', headers: headers as Record<string, string>, body }, exchange);
    });
  }

  async close(): Promise<void> {
    await this.agent.destroy();
  }
}

/** One request on its way; below `undici.request`, which costs twice as much. */
class Exchange implements Dispatcher.DispatchHandler {
  private readonly timer: NodeJS.Timeout;
  private controller: Dispatcher.DispatchController | null = null;
  private status: number | null = null;
  private retryAfter: number | null = null;
  private readonly chunks: Buffer[] = [];
  private length = 0;
  private isOver = false;

  constructor(
    timeout: number,
    private readonly resolve: (answer: Answer) => void,
  ) {
    this.timer = setTimeout(() => this.fail('timeout'), timeout);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    // Its time ran out while it waited for a connection.
    if (this.isOver) controller.abort(new Error('timeout'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[] | undefined>): void {
    if (status < 200) return;
    this.status = status;
    const retryAfter = headers['retry-after'];
    this.retryAfter = retryAfterOf(typeof retryAfter === 'string' ? retryAfter : undefined, Date.now());
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.length < EXCERPT_BYTES) this.chunks.push(chunk.subarray(0, EXCERPT_BYTES - this.length));
    this.length += chunk.length;
    if (this.length <= READ_BYTES) return;
    this.end(null);
    controller.abort(new Error('The answer is too long.'));
  }

  onResponseEnd(): void {
    this.end(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(codeOf(error));
  }

  private fail(error: string): void {
    if (this.isOver) return;
    this.end(error);
    this.controller?.abort(new Error(error));
  }

  private end(error: string | null): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.timer);
    // An answer that broke off does not count.
    const status = error === null ? this.status : null;
    this.resolve({ status, error, excerpt: this.length === 0 ? null : excerptOf(this.chunks), retryAfter: this.retryAfter });
  }
}

function excerptOf(chunks: readonly Buffer[]): string {
  const text = Buffer.concat(chunks).toString();
  // Bytes that are no UTF-8 become characters of three bytes.
  return Buffer.byteLength(text) <= EXCERPT_BYTES ? text : text.slice(0, EXCERPT_BYTES / 4);
}

/** The messages of connection errors name addresses; their codes do not. */
function codeOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof TargetRefused) return error.code;
  if (code === undefined) return 'connection_failed';
  return code === 'UND_ERR_CONNECT_TIMEOUT' ? 'timeout' : code.startsWith('UND_ERR') ? 'connection_lost' : code;
}
