import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { StartRefused } from '#libs/platform/src/start-refused';

/** `sun_path` has 108 bytes on Linux and 104 on macOS, with the ending zero. */
const LONGEST_SOCKET_PATH = 103;

/**
 * Where the running server listens for its command line: a socket in the data directory, which only its owner can enter. A path that is too long for
 * a socket moves to a directory of the user's own below the temporary one; Windows has named pipes instead.
 */
export function adminAddress(dataDir: string): string {
  const directory = resolve(dataDir);
  const digest = createHash('sha256').update(directory).digest('hex').slice(0, 32);
  if (process.platform === 'win32') return `\\\\.\\pipe\\gatehouse-${digest}`;
  const address = join(directory, 'admin.sock');
  return Buffer.byteLength(address) <= LONGEST_SOCKET_PATH ? address : join(ownDirectory(), `${digest}.sock`);
}

function ownDirectory(): string {
  const directory = join(tmpdir(), `gatehouse-${userInfo().uid}`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  // Someone else may have made it first, to listen in our place.
  const found = lstatSync(directory);
  if (!found.isDirectory() || found.uid !== userInfo().uid)
    throw new StartRefused(`${directory} belongs to another user: remove it, or set TMPDIR or a shorter DATA_DIR.`);
  chmodSync(directory, 0o700);
  return directory;
}
