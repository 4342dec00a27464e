import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineDefinition } from './engine-definition.ts';
import { EngineProcess } from './engine-process.ts';
import { freePort } from './free-port.ts';
import { JavaLibraries, type JavaProgram } from './java.ts';
import { WatchedDirectory } from './watched-directory.ts';

interface JavaServer extends Omit<JavaProgram, 'args'> {
  readonly args: (port: number) => readonly string[];
  /** Puts what it needs into the folder that it will work in. */
  readonly prepare?: (folder: string, port: number, libraries: JavaLibraries) => Promise<void>;
  /** Where it listens; a free port where none is given. */
  readonly port?: number;
  /** Asked instead of the definition's, by those who are let in. */
  readonly isReady?: () => Promise<boolean>;
}

/** Starts an engine whose server is a Java program. @throws EngineMissing */
export async function startJavaEngine(definition: EngineDefinition, server: JavaServer, directory: WatchedDirectory): Promise<EngineProcess> {
  const { name, addressAt, answers } = definition;
  const libraries = await JavaLibraries.get();
  const start = async (where: WatchedDirectory, ...flags: readonly string[]): Promise<EngineProcess> => {
    const port = server.port ?? (await freePort());
    const folder = join(where.path, name);
    mkdirSync(folder);
    await server.prepare?.(folder, port, libraries);
    const command = libraries.command({ ...server, flags: [...(server.flags ?? []), ...flags], args: server.args(port) });
    return EngineProcess.open(where, { name, address: addressAt(port), command, isReady: server.isReady ?? (() => answers(addressAt(port))) });
  };
  // An archive takes classes from libraries only.
  if (server.isOurs) return start(directory);
  // Most of a start goes into loading classes. From an archive of those that the first one loaded, it takes a third of the work.
  const archive = await libraries.once(`${name}.jsa`, async (file) => {
    const first = WatchedDirectory.create(`${name}-first`);
    await (await start(first, `-XX:ArchiveClassesAtExit=${file}`)).stop();
    first.remove();
  });
  return start(directory, `-XX:SharedArchiveFile=${archive}`);
}
