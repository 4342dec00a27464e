import { ContainerEngine } from './container-engine.ts';
import type { Engine, EngineDefinition } from './engine.ts';
import type { WatchedDirectory } from './watched-directory.ts';

/** Starts one for the caller alone, in a container where Docker is at hand. @throws EngineMissing */
export async function startEngine(definition: EngineDefinition, directory: WatchedDirectory): Promise<Engine> {
  return (await ContainerEngine.start(definition)) ?? (await definition.startProcess(directory));
}
