import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Suite } from '#apps/suite/src/suite';
import type { Operation } from '#libs/contracts/src/operation';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import type { Clock } from '#libs/platform/src/clock';
import { modeOf, type Variables } from '#libs/platform/src/config/setting';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import type { Log } from '#libs/platform/src/log';
import { LEAST_HASH_COST } from './least-hash-cost.ts';

/** The product, running somewhere for a spec. */
export interface RunningProduct {
  /** Of its API, through one of the gateways. */
  readonly url: string;
  /** Through each of them. */
  readonly urls: readonly string[];
  /** Where SCIM is asked, through each replica that takes it. */
  readonly scimUrls: readonly string[];
  /** An API key of its first environment. */
  readonly key: string;
  readonly events: EventStore;
  /** An operation that no HTTP request reaches. */
  call<Answer>(operation: Operation<Answer>): Promise<Answer>;
  /** On the same data; its address may change. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export interface InProcessOptions {
  readonly variables: Variables;
  readonly log: Log;
  readonly clock?: Clock;
}

/** In this process, on embedded engines in a directory of its own. */
export class ProductInProcess implements RunningProduct {
  private constructor(
    private suite: Suite,
    private readonly start: () => Promise<Suite>,
    private readonly directory: string,
  ) {}

  static async open({ variables, log, clock }: InProcessOptions): Promise<ProductInProcess> {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-suite-'));
    const start = () =>
      Suite.start({
        variables: { PORT: '0', DATA_DIR: directory, DATA_MIN_FREE: '0', PASSWORD_HASH_COST: LEAST_HASH_COST[modeOf(variables)], ...variables },
        log,
        clock,
        onFatal: (sentence) => {
          throw new Error(sentence);
        },
      });
    return new ProductInProcess(await start(), start, directory);
  }

  get url(): string {
    return this.suite.url;
  }

  get urls(): readonly string[] {
    return [this.url];
  }

  get scimUrls(): readonly string[] {
    return this.urls;
  }

  get key(): string {
    // Production mode makes no key: it is given one in the settings.
    return this.suite.firstKey?.value ?? this.suite.process.settings.of(IdentitySettings).GATEHOUSE_API_KEY!;
  }

  get events(): EventStore {
    return this.suite.get(EventStore);
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.suite.call(operation);
  }

  /** What no operation reaches. */
  get<Port>(port: abstract new (...args: never[]) => Port): Port {
    return this.suite.get(port);
  }

  async restart(): Promise<void> {
    await this.suite.close();
    this.suite = await this.start();
  }

  async close(): Promise<void> {
    await this.suite.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
