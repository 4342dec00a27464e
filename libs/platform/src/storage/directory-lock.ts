import { lstatSync, realpathSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartRefused } from '../start-refused.ts';

/** Another process works on the data directory. LMDB itself would let both write. */
export class DirectoryHeld extends StartRefused {
  constructor(readonly directory: string) {
    super(`Another process works on ${directory}: stop it first, or set DATA_DIR to another directory.`);
  }
}

export interface DirectoryLock {
  release(): Promise<void>;
}

/** Whoever spells the path differently, or comes by a link, means the same directory: it is known by device and inode. */
function addressOf(directory: string): string {
  const { dev, ino } = statSync(realpathSync(directory), { bigint: true });
  const name = `gatehouse-${dev.toString(36)}-${ino.toString(36)}`;
  if (process.platform === 'linux') return `\0${name}`;
  return process.platform === 'win32' ? `\\\\.\\pipe\\${name}` : join(tmpdir(), `${name}.sock`);
}

function listen(address: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    server.listen(address, () => resolve(server.unref()));
  });
}

function answers(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/**
 * Holds the directory until `release` or until the process ends, however it ends: the system forgets an abstract socket or a pipe with its process, so
 * nothing can be left behind. Elsewhere (macOS) a socket file is left by a crash, and is taken over when nobody answers on it.
 * @throws DirectoryHeld
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const address = addressOf(directory);
  const attempt = async (): Promise<Server> => {
    try {
      return await listen(address);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || (await answers(address))) throw new DirectoryHeld(directory);
      if (isSocketFile(address)) rmSync(address, { force: true });
      return listen(address);
    }
  };
  const server = await attempt();
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}

function isSocketFile(address: string): boolean {
  return process.platform !== 'linux' && process.platform !== 'win32' && lstatSync(address, { throwIfNoEntry: false })?.isSocket() === true;
}
