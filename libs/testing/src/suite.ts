import 'reflect-metadata';
import { hash, randomUUID } from 'node:crypto';
import { CreateEnvironment, CreateEnvironmentKey, FindEnvironmentKey, ListEnvironments } from '#libs/contracts/src/environments/operations';
import { openApiDocument } from '#libs/contracts/src/openapi';
import type { Class, Operation } from '#libs/contracts/src/operation';
import { START, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { Clock } from '#libs/platform/src/clock';
import { environmentVariables } from '#libs/platform/src/config/environment';
import type { Variables } from '#libs/platform/src/config/setting';
import { PinoLog } from '#libs/platform/src/pino.log';
import { SYSTEM_ENVIRONMENT, type RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { answerMatches } from './answers.ts';
import { recordsAfter } from './records-after.ts';
import { ReplicasInProcess } from './replicas-in-process.ts';
import { ProductInProcess, type RunningProduct } from './running-product.ts';
import { eventually } from './until.ts';

export interface GivenSuiteOptions {
  /** Settings beside those of development mode; on a cluster, what has to be set there. */
  readonly variables?: Variables;
  readonly clock?: Clock;
  /** Two gateways with services of their own behind each, also on embedded engines. Processes are always two of each. */
  readonly replicas?: boolean;
  /** Where the log lines go; absent: nowhere. */
  readonly onLogLine?: (line: string) => void;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  readonly body: any;
}

type Headers = Readonly<Record<string, string>>;
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

const document = openApiDocument('0.1.0');

/** Requests with one API key. Every answer is held to the API document. */
export class Caller {
  private scimRequests = 0;

  constructor(
    private readonly baseUrl: () => string,
    readonly key: string,
    private readonly scimUrlsOf: () => readonly string[] = () => [baseUrl()],
  ) {}

  get(path: string, headers: Headers = {}): Asked {
    return new Asked(this.send('GET', path, undefined, headers));
  }

  post(path: string, body?: unknown, headers: Headers = {}): Asked {
    return new Asked(this.send('POST', path, body, headers));
  }

  put(path: string, body?: unknown, headers: Headers = {}): Asked {
    return new Asked(this.send('PUT', path, body, headers));
  }

  patch(path: string, body?: unknown, headers: Headers = {}): Asked {
    return new Asked(this.send('PATCH', path, body, headers));
  }

  delete(path: string, body?: unknown, headers: Headers = {}): Asked {
    return new Asked(this.send('DELETE', path, body, headers));
  }

  /** Asks again and again until the answer is 200 and has these fields. */
  async eventually(path: string, partial: object, timeoutMs?: number): Promise<Answer['body']> {
    return eventually(() => this.get(path).expect(200, partial), timeoutMs);
  }

  /** A request of a product of a customer, with a token of its directory; of one replica after the other unless it is said of which. */
  async scim(
    method: Method,
    directoryId: string,
    path: string,
    token: string,
    { body, headers = {}, replica = this.scimRequests++ }: { body?: unknown; headers?: Headers; replica?: number } = {},
  ): Promise<Answer> {
    const urls = this.scimUrlsOf();
    const response = await fetch(`${urls[replica % urls.length]}/scim/v2/${directoryId}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...(body !== undefined && { 'Content-Type': 'application/scim+json' }), ...headers },
      body: body === undefined ? null : typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, headers: Object.fromEntries(response.headers), text, body: text === '' ? undefined : JSON.parse(text) };
  }

  private async send(method: Method, path: string, body: unknown, headers: Headers): Promise<Answer> {
    const response = await fetch(this.baseUrl() + path, {
      method,
      headers: { Authorization: `Bearer ${this.key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? null : typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
      redirect: 'manual',
    });
    const text = await response.text();
    const answer = { status: response.status, headers: Object.fromEntries(response.headers), text };
    answerMatches(document, method, path, answer.status, answer.headers, text);
    return { ...answer, body: text === '' ? undefined : JSON.parse(text) };
  }
}

/** A request on its way: await it for the whole answer, or say what is expected of it. */
class Asked implements PromiseLike<Answer> {
  constructor(private readonly answer: Promise<Answer>) {}

  then<Done, Failed>(
    onAnswer?: ((answer: Answer) => Done | PromiseLike<Done>) | null,
    onFailure?: ((reason: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Done | Failed> {
    return this.answer.then(onAnswer, onFailure);
  }

  /** The parsed body, once its status and the given fields are as expected. */
  async expect(status: number, partial?: object): Promise<Answer['body']> {
    const answer = await this.answer;
    // An answer that nobody expected says why.
    expect(answer.status === status ? status : `${answer.status} ${answer.text}`).toBe(status);
    if (partial !== undefined) expect(answer.body).toMatchObject(partial);
    return answer.body;
  }
}

/** Requests with the key of an environment that a spec has made. */
class OtherEnvironment extends Caller {
  constructor(
    baseUrl: () => string,
    key: string,
    /** Stands in what is recorded of it. */
    readonly id: string,
    scimUrlsOf: () => readonly string[],
  ) {
    super(baseUrl, key, scimUrlsOf);
  }
}

/** What was there before a suite was opened: others share its engines. */
interface Past {
  readonly end: Position;
  readonly environments: ReadonlySet<string>;
}

const NO_PAST: Past = { end: START, environments: new Set() };

/**
 * The whole product, in this process on embedded engines or (`SUITE=processes`) as processes of their own on the engines of a cluster: one cluster for the specs of
 * many files, in which each suite has an environment of its own.
 */
export class GivenSuite extends Caller {
  private constructor(
    private readonly product: RunningProduct,
    key: string,
    private readonly past: Past,
  ) {
    super(
      () => product.url,
      key,
      () => product.scimUrls,
    );
  }

  static async open({ variables = {}, clock, replicas = false, onLogLine }: GivenSuiteOptions): Promise<GivenSuite> {
    const log = new PinoLog({
      level: onLogLine ? 'debug' : 'silent',
      readable: false,
      destination: { write: (line: string) => onLogLine?.(line) },
    });
    if (environmentVariables()['SUITE'] !== 'processes') {
      const options = { variables, log, clock };
      return GivenSuite.alone(await (replicas ? ReplicasInProcess.open(options) : ProductInProcess.open(options)));
    }
    // Loaded where it is wanted: the drivers of its engines take a second.
    const { ProductInProcesses } = await import('./product-in-processes.ts');
    return GivenSuite.amongOthers(await ProductInProcesses.open({ variables, log }));
  }

  private static alone(product: RunningProduct): GivenSuite {
    return new GivenSuite(product, product.key, NO_PAST);
  }

  private static async amongOthers(product: RunningProduct): Promise<GivenSuite> {
    const first = GivenSuite.alone(product);
    const environments = (await first.call(ListEnvironments, {})).map(({ id }) => id);
    const past = { end: await first.head(), environments: new Set(environments) };
    return new GivenSuite(product, (await first.otherEnvironment('own')).key, past);
  }

  get url(): string {
    return this.product.url;
  }

  /** All of its gateways. */
  get urls(): readonly string[] {
    return this.product.urls;
  }

  /** Where SCIM is asked, through each replica that takes it. */
  get scimUrls(): readonly string[] {
    return this.product.scimUrls;
  }

  /** Stops and starts again on the same data; the port may change. */
  restart(): Promise<void> {
    return this.product.restart();
  }

  /** Another environment of the same suite: what is done with its key must not be seen with ours. */
  async otherEnvironment(name = 'other'): Promise<OtherEnvironment> {
    const unique = `${name}-${randomUUID().slice(0, 8)}`;
    const { id } = await this.call(CreateEnvironment, { name: unique });
    const { value } = await this.call(CreateEnvironmentKey, { environment_name: unique, name: 'test' });
    return new OtherEnvironment(
      () => this.product.url,
      value,
      id,
      () => this.product.scimUrls,
    );
  }

  /** What names the environment of a caller where no key is shown. */
  async clientIdOf({ key }: Pick<Caller, 'key'>): Promise<string> {
    return (await this.call(FindEnvironmentKey, { hash: hash('sha256', key, 'hex') })).client_id;
  }

  /** The end of the log. */
  head(): Promise<Position> {
    return this.product.events.head();
  }

  /** What the log holds after a position, and what is recorded from then on, until the signal aborts. */
  follow(after: Position, signal: AbortSignal): AsyncIterable<readonly RecordedEvent[]> {
    return this.product.events.subscribe(after, signal);
  }

  /** What was recorded since it was opened, oldest first; only of these types when some are given. What the trail of an environment tells comes by itself, whenever that is: it has to be asked for. */
  async records(...types: readonly string[]): Promise<readonly RecordedEvent[]> {
    const { end, environments } = this.past;
    const records = await this.recordsAfter(end);
    return records.filter(
      ({ type, meta, stream }) => !environments.has(meta.environment) && (types.length === 0 ? !isToldOfEnvironment(stream) : types.includes(type)),
    );
  }

  /** Everything that was recorded after a position, oldest first; only what holds one of these names when some are given. */
  recordsAfter(position: Position, ...names: readonly string[]): Promise<readonly RecordedEvent[]> {
    return recordsAfter(this.product.events, position, ...names);
  }

  /** An operation that no HTTP request reaches, as the command line asks it. */
  call<Answered>(type: Class<Operation<Answered>>, fields: object, context: Partial<RequestContext> = {}): Promise<Answered> {
    const operation = Object.assign(new type(), fields);
    operation.context = { ...systemContext(SYSTEM_ENVIRONMENT, Date.now()), ...context };
    return this.product.call(operation);
  }

  close(): Promise<void> {
    return this.product.close();
  }
}

/** Trail, checkpoints and keys of an environment itself. */
function isToldOfEnvironment(stream: string): boolean {
  return /^audit_(?:trail|checkpoint|keys)-(?<environment>[^-]+)-\k<environment>$/.test(stream);
}

const given = new Set<GivenSuite>();

/** Opens the suite; it is closed after the last test of the file. */
export async function givenSuite(options: GivenSuiteOptions = {}): Promise<GivenSuite> {
  const suite = await GivenSuite.open(options);
  given.add(suite);
  return suite;
}

// Where this file is imported, so that it stands outside of any test or hook.
afterAll(async () => {
  for (const suite of given) await suite.close();
});
