import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Suite } from '#apps/suite/src/suite';
import type { Operation } from '#libs/contracts/src/operation';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { modeOf } from '#libs/platform/src/config/setting';
import { ManyReplicas } from '#libs/platform/src/replicas';
import type { Engines } from '#libs/runtime/src/engines';
import { openEngines } from '#libs/runtime/src/open-engines';
import { Gate, gated, GatedReadModels } from './gate.ts';
import { LEAST_HASH_COST } from './least-hash-cost.ts';
import type { InProcessOptions, RunningProduct } from './running-product.ts';

/**
 * Two gateways, each with all services behind it, in this process: what they know of each other they know from the embedded engines, which they share as replicas
 * share those of a cluster. Nothing that one of them keeps in memory is seen by the other.
 */
export class ReplicasInProcess implements RunningProduct {
  private constructor(
    private suites: readonly Suite[],
    private readonly start: () => Promise<readonly Suite[]>,
    private readonly directory: string,
    /** Where each of them can be stopped, as by SIGSTOP: it asks its engines nothing until it goes on. */
    readonly gates: readonly Gate[],
  ) {}

  static async open({ variables, log, clock }: InProcessOptions): Promise<ReplicasInProcess> {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-replicas-'));
    const gates = [new Gate(), new Gate()];
    const start = async (): Promise<readonly Suite[]> => {
      let shared: Engines | null = null;
      const suites: Suite[] = [];
      for (const gate of gates) {
        const suite = await Suite.start({
          variables: { PORT: '0', DATA_DIR: directory, DATA_MIN_FREE: '0', PASSWORD_HASH_COST: LEAST_HASH_COST[modeOf(variables)], ...variables },
          log,
          clock,
          // The first that opens them is the last that closes them.
          open: async (addresses, needs) => {
            const close = shared === null ? undefined : async (): Promise<void> => {};
            shared ??= await openEngines(addresses, needs);
            return { ...behind(gate, shared), directory: null, replicas: new ManyReplicas(), ...(close && { close }) };
          },
          onFatal: (sentence) => {
            throw new Error(sentence);
          },
        });
        suites.push(suite);
      }
      return suites;
    };
    return new ReplicasInProcess(await start(), start, directory, gates);
  }

  get url(): string {
    return this.urls[0]!;
  }

  get urls(): readonly string[] {
    return this.suites.map(({ url }) => url);
  }

  get scimUrls(): readonly string[] {
    return this.urls;
  }

  get key(): string {
    return this.suites[0]!.firstKey!.value;
  }

  get events(): EventStore {
    return this.suites[0]!.get(EventStore);
  }

  /** What no operation reaches, of one of them. */
  get<Port>(replica: number, port: abstract new (...args: never[]) => Port): Port {
    return this.suites[replica]!.get(port);
  }

  call<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.suites[0]!.call(operation);
  }

  async restart(): Promise<void> {
    await this.stop();
    this.suites = await this.start();
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  private async stop(): Promise<void> {
    for (const gate of this.gates) gate.open();
    for (const suite of this.suites.toReversed()) await suite.close();
  }
}

function behind(gate: Gate, engines: Engines): Engines {
  const { events, readModels, shortLived, blobs } = engines;
  return {
    ...engines,
    events: gated(events, gate, ['read', 'readBackwards', 'last', 'append', 'head']),
    readModels: new GatedReadModels(readModels, gate, ['get', 'getMany', 'page', 'idPage', 'write', 'replace', 'purge', 'checkpoint']),
    shortLived: gated(shortLived, gate, ['get', 'putIfAbsent', 'put', 'compareAndSet', 'take', 'add', 'lease', 'release']),
    blobs: gated(blobs, gate, ['get', 'put', 'remove']),
  };
}
