import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { lockDirectory } from '#libs/platform/src/storage/kernel-lock';
import { ROOT } from '../process.ts';
import type { EngineDefinition } from './engine-definition.ts';
import { WatchedDirectory } from './watched-directory.ts';

/** Long enough for the next file of specs, short enough to be gone when somebody looks. */
const UNUSED_SECONDS = 10;

/** One engine for all test processes of this checkout: the first of them starts it, and it ends after the last. */
export async function sharedEngine(definition: EngineDefinition): Promise<string> {
  const checkout = createHash('sha256').update(`${ROOT} ${userInfo().username}`).digest('hex').slice(0, 12);
  const path = join(tmpdir(), `gatehouse-engines-${checkout}`);
  const folder = join(path, `${definition.name}-lock`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = await lockDirectory(folder, { wait: Infinity });
  try {
    const shared = join(path, definition.name);
    return (await joined(shared, definition)) ?? (await started(shared, definition));
  } finally {
    lock.release();
  }
}

async function joined(path: string, { answers }: EngineDefinition): Promise<string | null> {
  const file = join(path, 'address');
  if (WatchedDirectory.join(path) === null || !existsSync(file)) return null;
  const address = readFileSync(file, 'utf8');
  return (await answers(address)) ? address : null;
}

async function started(path: string, { startProcess }: EngineDefinition): Promise<string> {
  const directory = WatchedDirectory.createShared(path, UNUSED_SECONDS);
  try {
    const { address } = await startProcess(directory);
    // Written when it is ready, so that half a start is not taken for an engine.
    writeFileSync(join(path, 'address'), address);
    return address;
  } catch (error) {
    directory.remove();
    throw error;
  }
}
