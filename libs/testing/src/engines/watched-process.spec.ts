import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { until } from '../until.ts';
import { ROOT } from '../process.ts';
import { WatchedDirectory } from './watched-directory.ts';
import { WatchedProcess } from './watched-process.ts';

const SLEEP = { name: 'sleep', command: ['sleep', '1000'], isReady: async () => true };

/** One that somebody else has started, as a file of specs finds those of another. */
class FoundProcess extends WatchedProcess {
  static in(directory: WatchedDirectory): FoundProcess {
    const found = new FoundProcess(directory, SLEEP);
    found.find();
    return found;
  }
}

function lives(pid: number): boolean {
  try {
    // A zombie is still known by its number.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

describe('a watched process', () => {
  let directory: WatchedDirectory;
  beforeEach(() => (directory = WatchedDirectory.create('watched-spec')));
  afterEach(() => directory.remove());

  it('ends when it is asked to, also while it is paused, and starts again', async () => {
    const sleep = await WatchedProcess.start(directory, SLEEP);
    const pid = sleep.pid!;
    await sleep.pause();
    expect(lives(pid)).toBe(true);
    await sleep.stop();
    expect([sleep.pid, lives(pid)]).toEqual([null, false]);
    await sleep.restart();
    expect(sleep.pid).not.toBe(pid);
    await sleep.kill();
    expect(sleep.pid).toBeNull();
  });

  it('ends and starts again for who did not start it, also while it is paused', async () => {
    const pid = (await WatchedProcess.start(directory, SLEEP)).pid!;
    const found = FoundProcess.in(directory);
    expect(found.pid).toBe(pid);
    await found.pause();
    await found.stop();
    expect([found.pid, lives(pid)]).toEqual([null, false]);
    await found.restart();
    expect(lives(found.pid!)).toBe(true);
    expect(FoundProcess.in(directory).pid).toBe(found.pid);
    await found.kill();
    expect(found.pid).toBeNull();
  });

  it('tells of an end that nobody asked for, and of no other', async () => {
    const told: string[] = [];
    const sleep = await WatchedProcess.start(directory, SLEEP);
    sleep.onUnexpectedEnd((how) => told.push(how));
    await sleep.restart();
    expect(told).toEqual([]);
    process.kill(sleep.pid!, 'SIGKILL');
    await until(() => told.length > 0);
    expect(told).toEqual(['SIGKILL']);
  });

  it('refuses to start with what the program said', async () => {
    const wrong = { name: 'wrong', command: ['/bin/sh', '-c', 'echo the disk is gone >&2; exit 3'], isReady: () => pause(300, false) };
    await expect(WatchedProcess.start(directory, wrong)).rejects.toThrow(/wrong ended with 3 before it was ready: the disk is gone/);
  });

  it('does not outlive a killed owner, even paused', async () => {
    const built = (file: string): string => pathToFileURL(join(ROOT, `dist/libs/testing/src/engines/${file}.js`)).href;
    const program = `
      const { WatchedDirectory } = await import('${built('watched-directory')}');
      const { WatchedProcess } = await import('${built('watched-process')}');
      const directory = WatchedDirectory.create('watched-spec');
      const sleep = await WatchedProcess.start(directory, { name: 'sleep', command: ['sleep', '1000'], isReady: async () => true });
      await sleep.pause();
      console.log(sleep.pid + ' ' + directory.path);
      setInterval(() => {}, 1000);`;
    const owner = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(owner.stdout.setEncoding('utf8'), 'data')) as [string];
    const [pid, path] = line.trim().split(' ') as [string, string];
    expect(lives(Number(pid))).toBe(true);
    owner.kill('SIGKILL');
    await until(() => !lives(Number(pid)) && !existsSync(path));
  });

  it('ends when somebody removes the folder beneath it, also where it works elsewhere by then, and not when the folder is moved', async () => {
    const works = await WatchedProcess.start(directory, SLEEP);
    const away = await WatchedProcess.start(directory, {
      ...SLEEP,
      name: 'away',
      command: ['sh', '-c', 'sleep 3; cd /; touch "$0"; exec sleep 1000', `${directory.path}/left`],
    });
    await until(() => existsSync(join(directory.path, 'left')));
    for (const { pid } of [works, away]) expect(lives(pid!)).toBe(true);
    await works.pause();
    rmSync(directory.path, { recursive: true });
    await until(() => !lives(works.pid!) && !lives(away.pid!));

    const path = mkdtempSync(join(tmpdir(), 'gatehouse-watched-spec-'));
    for (const folder of ['users', 'other']) mkdirSync(join(path, folder));
    writeFileSync(join(path, 'users', String(process.pid)), '');
    const other = spawn('sleep', ['1000'], { cwd: join(path, 'other'), stdio: 'ignore' });
    writeFileSync(join(path, 'other/pid'), String(other.pid));
    const watch = spawn('/bin/sh', [join(ROOT, 'libs/testing/engines/watch.sh'), path, '0'], { stdio: 'ignore' });
    try {
      await until(() => readlinkSync(`/proc/${watch.pid}/cwd`) === path);
      renameSync(path, `${path}-moved`);
      await once(watch, 'exit');
      expect(lives(other.pid!)).toBe(true);
    } finally {
      other.kill('SIGKILL');
      rmSync(`${path}-moved`, { recursive: true });
    }
  });

  it('is left alone when its number has passed to another process', async () => {
    const other = spawn('sleep', ['1000'], { stdio: 'ignore' });
    const path = mkdtempSync(join(tmpdir(), 'gatehouse-watched-spec-'));
    for (const folder of ['users', 'other']) mkdirSync(join(path, folder));
    writeFileSync(join(path, 'other/pid'), String(other.pid));
    try {
      execFileSync('/bin/sh', [join(ROOT, 'libs/testing/engines/watch.sh'), path, '0']);
      expect(existsSync(path)).toBe(false);
      expect(lives(other.pid!)).toBe(true);
    } finally {
      other.kill('SIGKILL');
    }
  });
});
