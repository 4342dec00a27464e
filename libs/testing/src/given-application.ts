import { hash } from 'node:crypto';
import { FindEnvironmentKey } from '#libs/contracts/src/environments/operations';
import type { Variables } from '#libs/platform/src/config/setting';
import { PinoLog } from '#libs/platform/src/pino.log';
import { type RequestContext, SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { ProductInProcess } from './running-product.ts';
import { SettableClock } from './settable-clock.ts';
import { eventually } from './until.ts';

type Body = Readonly<Record<string, unknown>>;

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  readonly body: any;
}

/** An application that signs people in: the product in this process, by a clock of the spec's own, so that what no operation reaches can be asked for as well. */
export class GivenApplication {
  private constructor(
    readonly product: ProductInProcess,
    readonly clock: SettableClock,
    /** That of its key. */
    readonly environment: string,
    readonly client_id: string,
  ) {}

  /** `now`: milliseconds since the epoch. To be closed. */
  static async open({ variables = {}, now = Date.now() }: { readonly variables?: Variables; readonly now?: number } = {}): Promise<GivenApplication> {
    const clock = new SettableClock(now);
    const product = await ProductInProcess.open({ variables, log: new PinoLog({ level: 'silent', readable: false }), clock });
    const context = systemContext(SYSTEM_ENVIRONMENT, clock.now());
    const found = await product.call(Object.assign(new FindEnvironmentKey(), { hash: hash('sha256', product.key, 'hex'), context }));
    return new GivenApplication(product, clock, found.environment_id, found.client_id);
  }

  close(): Promise<void> {
    return this.product.close();
  }

  context(): RequestContext {
    return systemContext(this.environment, this.clock.now());
  }

  /** With the key of its environment, unless `headers` say otherwise. */
  async send(method: string, path: string, body?: Body, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const all = { ...(body && { 'Content-Type': 'application/json' }), Authorization: `Bearer ${this.product.key}`, ...headers };
    const response = await fetch(this.product.url + path, { method, headers: all, body: body === undefined ? null : JSON.stringify(body) });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  }

  /** As `send`, once it is answered as expected. @throws Error */
  async done(method: string, path: string, body?: Body): Promise<Answer['body']> {
    const answer = await this.send(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** As an application that keeps a secret. */
  authenticate(body: Body): Promise<Answer> {
    return this.send(
      'POST',
      '/user_management/authenticate',
      { client_id: this.client_id, client_secret: this.product.key, ...body },
      { Authorization: 'none' },
    );
  }

  /** Time goes on, and the gateway hears from the log that its keys are still good. */
  async later(milliseconds: number): Promise<void> {
    this.clock.forward(milliseconds);
    await eventually(() => this.done('GET', '/organizations'));
  }
}
