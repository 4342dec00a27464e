import type { Variables } from '#libs/platform/src/config/setting';
import { ContainerEngine } from './container-engine.ts';
import { EngineMissing, type EngineDefinition } from './engine-definition.ts';
import type { Engine } from './engine.ts';
import { EngineProcess } from './engine-process.ts';
import { eventstore } from './eventstore.ts';
import { kafka } from './kafka.ts';
import { mongodb } from './mongodb.ts';
import type { WatchedDirectory } from './watched-directory.ts';

const DEFINITIONS = [kafka, mongodb, eventstore];

interface StartOptions {
  /** An engine whose setting is among them runs already. */
  readonly variables: Variables;
  readonly directory: WatchedDirectory;
  /** Told what was started and what ended. */
  readonly say: (line: string) => void;
}

/** One of them, and how it is started. */
export interface EngineStart {
  readonly definition: EngineDefinition;
  /** @throws EngineMissing */
  readonly start: () => Promise<Engine>;
}

/** Starts one for the caller alone, in a container where Docker is at hand. @throws EngineMissing */
export async function startEngine(definition: EngineDefinition, directory: WatchedDirectory): Promise<Engine> {
  return (await ContainerEngine.start(definition)) ?? (await definition.startProcess(directory));
}

/** All engines that a cluster stores in. */
export class StartedEngines {
  private readonly started = new Map<EngineDefinition, Engine>();

  private constructor(private readonly options: StartOptions) {}

  /** Starts those whose settings are not set. @throws EngineMissing */
  static start(options: StartOptions): Promise<StartedEngines> {
    const missing = DEFINITIONS.filter(({ setting }) => !options.variables[setting]);
    return StartedEngines.startAll(
      missing.map((definition) => ({ definition, start: () => startEngine(definition, options.directory) })),
      options,
    );
  }

  /** @throws EngineMissing */
  static async startAll(starts: readonly EngineStart[], options: StartOptions): Promise<StartedEngines> {
    const engines = new StartedEngines(options);
    // All are waited for, so that none starts after another has failed and all were closed.
    const results = await Promise.allSettled(starts.map((start) => engines.start(start)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return engines;
    await engines.close();
    throw failed.reason;
  }

  /** Those that were started here. */
  get kafka(): Engine {
    return this.started.get(kafka)!;
  }

  get mongodb(): Engine {
    return this.started.get(mongodb)!;
  }

  get eventstore(): Engine {
    return this.started.get(eventstore)!;
  }

  /** The addresses of all, by setting. */
  get settings(): Readonly<Record<string, string>> {
    const { variables } = this.options;
    return Object.fromEntries(DEFINITIONS.map((definition) => [definition.setting, this.started.get(definition)?.address ?? variables[definition.setting]!]));
  }

  /** They end, and their data is gone. */
  async close(): Promise<void> {
    await Promise.all([...this.started.values()].map((engine) => engine.close()));
  }

  private async start({ definition, start }: EngineStart): Promise<void> {
    const { title, setting } = definition;
    const { say } = this.options;
    const engine = await start().catch((error: unknown) => {
      throw error instanceof EngineMissing
        ? new EngineMissing(`${title} cannot be started: ${error.message}. Start Docker, or set ${setting} to one that runs.`)
        : error;
    });
    this.started.set(definition, engine);
    if (!(engine instanceof EngineProcess)) return say(`${title} runs in a container of ${definition.image}.`);
    say(`${definition.process} runs as process ${engine.pid}.`);
    engine.onUnexpectedEnd((how) => say(`${title} ended unexpectedly (${how}); what it printed is in ${engine.log}.`));
  }
}
