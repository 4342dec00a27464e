import { renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { basename } from 'node:path';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';

/**
 * Loaded before a program, with a folder after `?into=`: at SIGUSR2 everything that nobody refers to any more is collected, and how many bytes are left is written
 * there, under the name of the folder it works in.
 */
const directory = fileURLToPath(new URL(import.meta.url).searchParams.get('into')!);
// Code that was not run for a while would be forgotten, a megabyte now and then.
setFlagsFromString('--no-flush-bytecode');
process.on('SIGUSR2', () => void tell());

async function tell(): Promise<void> {
  const session = new Session();
  session.connect();
  // What was kept alive by what went first goes with the second.
  for (let collection = 0; collection < 2; collection++) {
    session.post('HeapProfiler.collectGarbage');
    await endOfTurn();
  }
  session.disconnect();
  const { heapUsed, external } = process.memoryUsage();
  const file = `${directory}/${basename(process.cwd())}`;
  writeFileSync(`${file}.next`, String(heapUsed + external));
  renameSync(`${file}.next`, file);
}
