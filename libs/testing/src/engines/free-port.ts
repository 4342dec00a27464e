import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Below those that the system gives to outgoing connections (from 32,768 on): there another connection could take it while its server restarts. */
const [FIRST, COUNT] = [20_000, 12_000];
/** A note for each port that some process was given, by its id: between the look and the use, another spec would be given it too. */
const notes = join(tmpdir(), `gatehouse-ports-${process.getuid?.() ?? 'of-all'}`);
/** Processes begin apart, and each goes on from where it was. */
let next = (process.pid * 97) % COUNT;

/** A port of this machine that nobody listens on, and that no other process was given that still runs. */
export async function freePort(): Promise<number> {
  mkdirSync(notes, { recursive: true });
  for (;;) {
    const port = FIRST + (next++ % COUNT);
    if (isGiven(port) && (await isFree(port))) return port;
  }
}

function isGiven(port: number): boolean {
  const note = join(notes, String(port));
  try {
    writeFileSync(note, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    // Whoever comes next is given the port of a process that has ended: taken over, it could be taken from another who does the same.
    if (!isRunning(note)) rmSync(note, { force: true });
    return false;
  }
}

function isRunning(note: string): boolean {
  try {
    return process.kill(Number(readFileSync(note, 'utf8')), 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Whether somebody may listen on it; no port is beyond the last one. */
export async function isFree(port: number): Promise<boolean> {
  if (port > 65_535) return false;
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
