import { join } from 'node:path';
import { modeOf } from '#libs/platform/src/config/setting';
import type { WatchedDirectory } from '../engines/watched-directory.ts';
import { WatchedProcess } from '../engines/watched-process.ts';
import { ROOT } from '../process.ts';

/** In the order in which they are stopped: whoever asks, before whoever is asked. */
export const APPS = ['gateway', 'notifications', 'authorization', 'identity'] as const;
export type App = (typeof APPS)[number];

export interface PlannedProcess {
  readonly app: App;
  readonly name: string;
  /** Of the API, or of the transport between services. */
  readonly port: number;
  readonly operationsPort: number;
  /** The same for every process of the cluster. */
  readonly settings: Readonly<Record<string, string>>;
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
    const { app, name, port, operationsPort, settings } = planned;
    const url = `http://127.0.0.1:${port}`;
    // In development mode a gateway answers for itself on the port of the API, as the suite does.
    const isApart = app !== 'gateway' || modeOf(settings) === 'production';
    const operationsUrl = isApart ? `http://127.0.0.1:${operationsPort}` : url;
    super(directory, {
      name,
      command: [process.execPath, join(ROOT, `dist/apps/${app}/src/main.js`)],
      variables: {
        ...(app === 'gateway' ? withoutKafka(settings) : settings),
        ...(isApart && { OPERATIONS_PORT: String(operationsPort) }),
        ...(app === 'gateway' ? { HOST: '127.0.0.1', PORT: String(port) } : { SERVICE_HOST: '127.0.0.1', SERVICE_PORT: String(port) }),
      },
      isReady: () => isReady(operationsUrl),
    });
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

/** A gateway does not speak to it, and has to get by without a word of it. */
function withoutKafka(settings: PlannedProcess['settings']): PlannedProcess['settings'] {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !name.startsWith('KAFKA_')));
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
