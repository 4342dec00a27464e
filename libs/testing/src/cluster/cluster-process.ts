import { SERVICES } from '#libs/contracts/src/operation';
import type { WatchedDirectory } from '../engines/watched-directory.ts';
import { WatchedProcess } from '../engines/watched-process.ts';
import type { Startable } from './contained-process.ts';

/** In the order in which they are stopped: whoever asks, before whoever is asked. */
export const APPS = ['gateway', ...SERVICES.toReversed()] as const;
export type App = (typeof APPS)[number];

export interface PlannedProcess extends Startable {
  readonly app: App;
  readonly name: string;
  /** Where the API is asked, in a gateway. */
  readonly url: string;
  /** Where health and metrics are asked. */
  readonly operationsUrl: string;
  /** Where SCIM is asked, in directory-sync. */
  readonly scimUrl: string;
  /** What else somebody asks it, by who asks: addresses. */
  readonly asked: Readonly<Record<string, string>>;
}

/** One replica of an app: the program of the build. */
export class ClusterProcess extends WatchedProcess {
  readonly app: App;
  /** Where the API is asked, in a gateway. */
  readonly url: string;
  /** Where health and metrics are asked. */
  readonly operationsUrl: string;

  constructor(
    directory: WatchedDirectory,
    readonly planned: PlannedProcess,
  ) {
    const { app, name, command, variables, url, operationsUrl } = planned;
    super(directory, { name, command, variables, isReady: () => isReady(operationsUrl) });
    this.app = app;
    this.url = url;
    this.operationsUrl = operationsUrl;
  }

  /** One that runs already: another file of specs started it from this process. */
  static running(directory: WatchedDirectory, planned: PlannedProcess): ClusterProcess {
    const process = new ClusterProcess(directory, planned);
    process.find();
    return process;
  }

  /** Resolves when it is ready; `say` hears that, and of an end that nobody asked for. @throws Error with the last lines of its output */
  async start(say: (line: string) => void): Promise<void> {
    this.onUnexpectedEnd((how) => say(`${this.name} ended unexpectedly (${how}); what it printed is in ${this.log}.`));
    await this.run();
    say(`${this.name} runs as process ${this.pid}.`);
  }
}

async function isReady(operationsUrl: string): Promise<boolean> {
  try {
    const answer = await fetch(`${operationsUrl}/health/ready`, { signal: AbortSignal.timeout(2000) });
    await answer.arrayBuffer();
    return answer.status === 200;
  } catch {
    return false;
  }
}
