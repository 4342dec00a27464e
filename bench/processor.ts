import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

/** Of Linux, on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Seconds of processor time that a process has used, all its threads together. */
export async function processorSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Memory that is the process's own: not the files that it reads, which the system takes back when it needs to. */
export async function rssAnonMegabytes(pid: number): Promise<number> {
  return (await residentMegabytes(pid)).own;
}

/** `own`: as `rssAnonMegabytes`; `all`: with the pages of files that it has mapped, such as those of LMDB. */
export async function residentMegabytes(pid: number): Promise<{ readonly own: number; readonly all: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const megabytes = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? Number.NaN) / 1_024;
  return { own: megabytes('RssAnon'), all: megabytes('VmRSS') };
}

/** Calls by which a process has written so far: to its files, and to the sockets by which it asks others. */
async function writeCalls(pid: number): Promise<number> {
  return Number(/^syscw: (\d+)$/m.exec(await readFile(`/proc/${pid}/io`, 'utf8'))?.[1] ?? Number.NaN);
}

/** `gateway 300 ms a minute, 12 writes/s`: what each takes that has nothing to do, over so many seconds. */
export async function atRest(pids: ReadonlyMap<string, number>, duration: number): Promise<string> {
  const look = (): Promise<readonly (readonly [string, number, number])[]> =>
    Promise.all([...pids].map(async ([name, pid]) => [name, await processorSeconds(pid), await writeCalls(pid)] as const));
  const before = await look();
  await pause(duration * 1_000);
  const after = await look();
  return after
    .map(([name, used, writes], index) => {
      const [, usedBefore, writesBefore] = before[index]!;
      return `${name} ${(((used - usedBefore) / duration) * 60_000).toFixed(0)} ms a minute, ${((writes - writesBefore) / duration).toFixed(0)} writes/s`;
    })
    .join('; ');
}

/** What some processes use while something is measured. */
export class ProcessorUse {
  private constructor(
    private readonly pids: ReadonlyMap<string, number>,
    private readonly before: ReadonlyMap<string, number>,
  ) {}

  static async begin(pids: ReadonlyMap<string, number>): Promise<ProcessorUse> {
    return new ProcessorUse(pids, await secondsOf(pids));
  }

  /** What each spent since the beginning, for each of so many requests (microseconds). */
  async perRequest(requests: number): Promise<ReadonlyMap<string, number>> {
    const now = await secondsOf(this.pids);
    return new Map([...now].map(([name, seconds]) => [name, ((seconds - this.before.get(name)!) / requests) * 1_000_000]));
  }
}

/** `gateway 210 µs, identity 640 µs`. */
export function inWords(microseconds: ReadonlyMap<string, number>): string {
  return [...microseconds].map(([name, each]) => `${name} ${each.toFixed(0)} µs`).join(', ');
}

async function secondsOf(pids: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>> {
  return new Map(await Promise.all([...pids].map(async ([name, pid]) => [name, await processorSeconds(pid)] as const)));
}
