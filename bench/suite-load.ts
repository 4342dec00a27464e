import type { Suite } from './suite.ts';
import { rate } from './table.ts';
import { load, type Load, type LoadResult } from './wrk.ts';

export interface SuiteResult extends LoadResult {
  /** Of processor time that the suite spent on one request. */
  readonly microseconds: number;
}

/** What one request cost the processor tells more than its rate where something else runs beside it. */
export async function loaded(suite: Suite, given: Load): Promise<SuiteResult> {
  // Where it is profiled, what a load costs is a part of its own.
  process.kill(suite.pid, 'SIGWINCH');
  const before = await suite.processorSeconds();
  const result = await load(given);
  return { ...result, microseconds: ((await suite.processorSeconds()) - before) * (1_000_000 / result.requests) };
}

export function timing({ perSecond, p50, p99, microseconds }: SuiteResult): string {
  return `${rate(perSecond)}, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ${microseconds.toFixed(0)} µs of processor each`;
}
