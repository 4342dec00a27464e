import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../process.ts';

const WATCH = join(ROOT, 'libs/testing/engines/watch.sh');

/** A folder with processes and their data; both end when no process that uses it lives any more, however that ended. */
export class WatchedDirectory {
  private constructor(readonly path: string) {}

  /** For this process alone. */
  static create(name: string): WatchedDirectory {
    return WatchedDirectory.watch(mkdtempSync(join(tmpdir(), `gatehouse-${name}-`)), 0);
  }

  /** Also for processes that come later: it is kept for some seconds after the last. */
  static createShared(path: string, seconds: number): WatchedDirectory {
    // What is there does not answer. Others may still use it: it ends after them.
    const left = `${path}-${randomUUID()}`;
    if (existsSync(path)) {
      renameSync(path, left);
      startWatch(left, 0);
    }
    mkdirSync(path, { mode: 0o700 });
    return WatchedDirectory.watch(path, seconds);
  }

  /** Uses one that another process may have created; null when there is none. */
  static join(path: string): WatchedDirectory | null {
    const directory = new WatchedDirectory(path);
    try {
      directory.use();
    } catch {
      return null;
    }
    // It may have been renamed, to be removed, just before.
    return existsSync(directory.user) ? directory : null;
  }

  private static watch(path: string, seconds: number): WatchedDirectory {
    const directory = new WatchedDirectory(path);
    mkdirSync(join(path, 'users'));
    directory.use();
    startWatch(path, seconds);
    return directory;
  }

  /** After everything in it has ended. */
  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }

  private get user(): string {
    return join(this.path, 'users', String(process.pid));
  }

  private use(): void {
    writeFileSync(this.user, '');
  }
}

/** In a group of its own, so that Ctrl-C in a terminal does not end it before those that it watches. */
function startWatch(path: string, seconds: number): void {
  spawn('/bin/sh', [WATCH, path, String(seconds)], { cwd: tmpdir(), detached: true, stdio: 'ignore' }).unref();
}
