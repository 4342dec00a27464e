import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Seconds by path, as `npm run durations` writes them. */
const durations = JSON.parse(readFileSync(new URL('durations.json', import.meta.url), 'utf8'));

/** The order of the files: a long one that begins last would keep a run waiting. What nobody has measured may be long. `ORDER=shortest` turns it round. */
export default class LongestFirst {
  sort(tests) {
    const secondsOf = ({ path, context }) => durations[relative(context.config.rootDir, path)] ?? Infinity;
    const order = process.env.ORDER === 'shortest' ? -1 : 1;
    return [...tests].sort((one, other) => order * (secondsOf(other) - secondsOf(one) || 0) || (one.path < other.path ? -1 : 1));
  }

  /** What failed last time is of no interest: it would be another order on each machine. */
  allFailedTests() {
    return [];
  }

  cacheResults() {}

  shard(tests) {
    return tests;
  }
}
