import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parse } from 'yaml';
import { ROOT } from '../process.ts';
import { freePort } from './free-port.ts';
import type { WatchedDirectory } from './watched-directory.ts';
import { WatchedProcess } from './watched-process.ts';

const RULES = join(ROOT, 'k8s/base/gatehouse.rules.yaml');

interface Rule {
  readonly alert: string;
  readonly expr: string;
}

/** One series that an expression yields. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The alert rules of the deployment, in order. */
export function alertRules(): readonly Rule[] {
  const { groups } = parse(readFileSync(RULES, 'utf8')) as { readonly groups: readonly { readonly rules: readonly Rule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

/** A Prometheus that looks at processes every second, so that specs can ask whether an alert rule would speak. */
export class Prometheus {
  private constructor(
    private readonly process: WatchedProcess,
    private readonly url: string,
    private readonly targets: string,
  ) {}

  /** `program` is its path; `operationsUrls`: where each process shows its metrics. */
  static async start(program: string, directory: WatchedDirectory, operationsUrls: readonly string[]): Promise<Prometheus> {
    const folder = join(directory.path, 'prometheus');
    const targets = join(folder, 'targets.json');
    const address = `127.0.0.1:${await freePort()}`;
    mkdirSync(folder, { recursive: true });
    writeFileSync(targets, targetsOf(operationsUrls));
    writeFileSync(join(folder, 'prometheus.yml'), CONFIGURATION);
    const process = await WatchedProcess.start(directory, {
      name: 'prometheus',
      command: [program, `--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${join(folder, 'data')}`, `--web.listen-address=${address}`],
      isReady: async () => (await fetch(`http://${address}/-/ready`).catch(() => null))?.ok === true,
    });
    return new Prometheus(process, `http://${address}`, targets);
  }

  /** Looks at these processes from now on. */
  lookAt(operationsUrls: readonly string[]): void {
    writeFileSync(this.targets, targetsOf(operationsUrls));
  }

  /** What the expression yields now. */
  async query(expression: string): Promise<readonly Sample[]> {
    const response = await fetch(`${this.url}/api/v1/query?${new URLSearchParams({ query: expression }).toString()}`);
    const { data, error } = (await response.json()) as { readonly data?: { readonly result: readonly Answered[] }; readonly error?: string };
    if (data === undefined) throw new Error(`Prometheus refuses ${expression}: ${error}`);
    return data.result.map(({ metric: labels, value }) => ({ labels, value: Number(value[1]) }));
  }

  /**
   * What the rule's expression yields now; nothing: the rule is silent. A test cannot wait for hours, so `instead` replaces parts of the expression: `{ '> 3600': '> 5' }`.
   * How long it has to hold (`for`) is left to the caller.
   */
  async speaks(alert: string, instead: Readonly<Record<string, string>> = {}): Promise<readonly Sample[]> {
    const rule = alertRules().find((each) => each.alert === alert);
    if (rule === undefined) throw new Error(`There is no alert rule ${alert}.`);
    return this.query(
      Object.entries(instead).reduce((expression, [part, other]) => {
        if (!expression.includes(part)) throw new Error(`The expression of ${alert} has no ${JSON.stringify(part)}: ${expression}`);
        return expression.replaceAll(part, other);
      }, rule.expr),
    );
  }

  /** Resolves with what it says as soon as the rule speaks. @throws Error when it has not within `timeoutMs` */
  async eventuallySpeaks(
    alert: string,
    { instead = {}, timeoutMs = 20_000 }: { readonly instead?: Readonly<Record<string, string>>; readonly timeoutMs?: number } = {},
  ) {
    for (const deadline = Date.now() + timeoutMs; ; await pause(250)) {
      const samples = await this.speaks(alert, instead);
      if (samples.length > 0) return samples;
      if (Date.now() > deadline) throw new Error(`${alert} did not speak within ${timeoutMs / 1_000} s.`);
    }
  }

  close(): Promise<void> {
    return this.process.kill();
  }
}

interface Answered {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

const CONFIGURATION = `
global: { scrape_interval: 1s, scrape_timeout: 900ms }
scrape_configs:
  - job_name: gatehouse
    file_sd_configs: [{ files: [targets.json], refresh_interval: 1s }]
`;

function targetsOf(operationsUrls: readonly string[]): string {
  return JSON.stringify([{ targets: operationsUrls.map((url) => new URL(url).host) }]);
}
