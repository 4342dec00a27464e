import { readFile } from 'node:fs/promises';

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
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) / 1_024;
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

  /** `gateway 210 µs, identity 640 µs`: what each spent since the beginning, for each of so many requests. */
  async perRequest(requests: number): Promise<string> {
    const now = await secondsOf(this.pids);
    return [...now].map(([name, seconds]) => `${name} ${(((seconds - this.before.get(name)!) / requests) * 1_000_000).toFixed(0)} µs`).join(', ');
  }
}

async function secondsOf(pids: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>> {
  return new Map(await Promise.all([...pids].map(async ([name, pid]) => [name, await processorSeconds(pid)] as const)));
}
