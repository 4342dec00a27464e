import { rmSync } from 'node:fs';
import type { Engine } from './engine.ts';
import type { WatchedDirectory } from './watched-directory.ts';
import { WatchedProcess, type WatchedCommand } from './watched-process.ts';

interface EngineCommand extends WatchedCommand {
  readonly address: string;
}

/** An engine as a plain process on loopback. */
export class EngineProcess extends WatchedProcess implements Engine {
  readonly address: string;

  private constructor(directory: WatchedDirectory, command: EngineCommand) {
    super(directory, command);
    this.address = command.address;
  }

  /** Resolves when it answers. @throws Error with the last lines of its output, when it ends before that */
  static async open(directory: WatchedDirectory, command: EngineCommand): Promise<EngineProcess> {
    const engine = new EngineProcess(directory, command);
    await engine.run();
    return engine;
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
