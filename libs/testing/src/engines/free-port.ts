import { once } from 'node:events';
import { createServer } from 'node:net';

/** A cluster asks for two dozen before it uses the first: one of a hundred clusters would be given one twice. */
const given = new Set<number>();

/**
 * A port of this machine that nobody listens on, and that was not given before. Below those that the system gives to outgoing connections (from 32,768 on): there another connection
 * could take it while its server restarts.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (given.has(port)) continue;
    if (!(await isFree(port))) continue;
    given.add(port);
    return port;
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
