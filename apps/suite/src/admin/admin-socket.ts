import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Origin } from '#libs/platform/src/request-context';

/** What the command line asks of the server: the words of a command and what followed them. */
export interface AdminRequest {
  readonly command: string;
  readonly input: CommandInput;
}

export interface CommandInput {
  readonly arguments: readonly string[];
  readonly options: Readonly<Record<string, string>>;
  /** Who typed it, and where. */
  readonly origin?: Origin;
}

/** Carries out a request; `tell` prints a line at the caller's terminal. Throwing tells the caller the error's message. */
export type AdminHandler = (request: AdminRequest, tell: (line: string) => void) => Promise<void>;

/** The server refused, in words for a person. */
export class AdminRefusal extends Error {}

/** Nobody listens there: the server does not run. */
export class NobodyListens extends Error {}

/** One JSON object per line: a request comes in; lines to print, and then the outcome, go out. */
type Line = { readonly tell: string } | { readonly done: true } | { readonly refused: string };

const LONGEST_REQUEST = 64 * 1024;

/** Listens at a socket that only its owner may open. */
export async function listenForAdmin(address: string, handle: AdminHandler): Promise<{ close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    void serve(socket, handle);
  });
  const isFile = process.platform !== 'win32';
  // Whoever listens holds the lock of the data directory, so a socket found here is left over from a crash.
  if (isFile) rmSync(address, { force: true });
  await listen(server, address);
  if (isFile) chmodSync(address, 0o600);
  return {
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

async function listen(server: Server, address: string): Promise<void> {
  // The file is made with the process's mask, before its mode can be set.
  const mask = process.platform === 'win32' ? undefined : process.umask(0o177);
  try {
    server.listen(address);
    await once(server, 'listening');
  } finally {
    if (mask !== undefined) process.umask(mask);
  }
}

async function serve(socket: Socket, handle: AdminHandler): Promise<void> {
  const send = (line: Line) => socket.writable && socket.write(`${JSON.stringify(line)}\n`);
  try {
    const request = await requestFrom(socket);
    await handle(request, (tell) => send({ tell }));
    send({ done: true });
  } catch (error) {
    send({ refused: error instanceof Error ? error.message : String(error) });
  }
  socket.end();
}

async function requestFrom(socket: Socket): Promise<AdminRequest> {
  let text = '';
  socket.setEncoding('utf8');
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<string>) {
    text += chunk;
    if (text.includes('\n')) return JSON.parse(text.slice(0, text.indexOf('\n'))) as AdminRequest;
    if (text.length > LONGEST_REQUEST) break;
  }
  throw new AdminRefusal('The request was cut off.');
}

/** @throws NobodyListens when no server runs, AdminRefusal with what the server said */
export async function askServer(address: string, request: AdminRequest, tell: (line: string) => void): Promise<void> {
  const socket = connect(address);
  try {
    await once(socket, 'connect').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') throw new NobodyListens('No server listens.');
      if (error.code === 'EACCES' || error.code === 'EPERM')
        throw new AdminRefusal(`${address} belongs to another user: run this as the user that runs the server.`);
      throw error;
    });
    socket.write(`${JSON.stringify(request)}\n`);
    for await (const text of createInterface({ input: socket })) {
      const line = JSON.parse(text) as Line;
      if ('tell' in line) tell(line.tell);
      else if ('refused' in line) throw new AdminRefusal(line.refused);
      else return;
    }
    throw new AdminRefusal('The server went away before it had finished.');
  } finally {
    socket.destroy();
  }
}
