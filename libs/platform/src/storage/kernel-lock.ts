import { closeSync, fstatSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../log.ts';
import { StartRefused } from '../start-refused.ts';

/** The file that is locked. */
export const LOCK = 'lock';
const RETRY_MS = 100;

/** Another process works on the data directory. LMDB itself would let both write. */
export class DirectoryHeld extends StartRefused {
  constructor(readonly directory: string) {
    super(
      `Another process works on ${directory}: stop it first, or set DATA_DIR to another directory. In Kubernetes, a Deployment on this volume needs 'strategy: Recreate'.`,
    );
  }
}

export interface DirectoryLock {
  release(): void;
}

/** False when somebody else holds a lock on the open file. @throws Error when its file system knows no locks */
export type TryLock = (descriptor: number) => boolean;

interface Options {
  /** Milliseconds that whoever holds the directory has to end. */
  readonly wait?: number;
  readonly log?: Log;
  /** For tests: stands for a file system without locks. */
  readonly tryLock?: TryLock;
}

/**
 * Holds the directory until `release` or until the process ends, however it ends: the kernel forgets the lock on `lock` with its process, and knows it across network and
 * PID namespaces, so that two containers on one volume meet. The file is never removed: of two processes that lock two files of one name, neither would know of the other.
 * Without locks the directory is taken all the same, with a warning: the owner numbers of its environments stop whoever had it before.
 * @throws DirectoryHeld
 */
export async function lockDirectory(directory: string, { wait = 0, log, tryLock }: Options = {}): Promise<DirectoryLock> {
  const path = join(directory, LOCK);
  const deadline = performance.now() + wait;
  for (let hasTold = false; ;) {
    const descriptor = openSync(path, 'a', 0o600);
    const lock: DirectoryLock = { release: () => closeSync(descriptor) };
    const isLocked = await attempt(descriptor, tryLock).catch((error: unknown) => {
      log?.warn(`No lock can be had on ${path}: let only one process use this directory. Of two, the one that came first ends before it writes.`, { error });
      return true;
    });
    if (isLocked && isStillAt(path, descriptor)) return lock;
    lock.release();
    // Of a file that is no longer there: the next attempt is at the one in its place.
    if (isLocked) continue;
    if (performance.now() >= deadline) throw new DirectoryHeld(directory);
    if (!hasTold) log?.warn(`Another process works on ${directory}; this one waits up to ${wait / 1_000} s for its end.`);
    hasTold = true;
    await pause(RETRY_MS);
  }
}

/** The binding is imported when it is needed, since a machine may lack it as a file system may lack locks. */
async function attempt(descriptor: number, tryLock?: TryLock): Promise<boolean> {
  return tryLock ? tryLock(descriptor) : (await import('fs-native-extensions')).default.tryLock(descriptor);
}

/** Somebody may have put another directory in its place while the lock was waited for. */
function isStillAt(path: string, descriptor: number): boolean {
  const [here, locked] = [statSync(path, { throwIfNoEntry: false }), fstatSync(descriptor)];
  return here?.ino === locked.ino && here.dev === locked.dev;
}
