import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { root } from './files.mjs';

/**
 * npm run durations                    runs all specs that need no cluster, and writes how long each file took to .ci/durations.json
 * npm run durations -- RESULT.json …   takes it from what `npm test -- --json --outputFile=RESULT.json` wrote
 */
const list = join(root, '.ci/durations.json');
const given = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-durations-'));
const results = given.length > 0 ? given : ['waiting', 'working'].map(measured);
const durations = {};
for (const { name, startTime, endTime } of results.flatMap((file) => JSON.parse(readFileSync(file, 'utf8')).testResults))
  durations[relative(root, name)] = Math.max(0.1, Math.round((endTime - startTime) / 100) / 10);
writeFileSync(list, `${JSON.stringify(Object.fromEntries(Object.entries(durations).sort(([one], [other]) => (one < other ? -1 : 1))), null, 2)}\n`);
rmSync(folder, { recursive: true });
console.log(`${Object.keys(durations).length} durations are in .ci/durations.json.`);

function measured(suite) {
  const file = join(folder, `${suite}.json`);
  const { status } = spawnSync(process.execPath, ['run.mjs', suite, '--json', `--outputFile=${file}`], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  // What failed may have ended early.
  if (status !== 0) throw new Error(`The suite ${suite} failed: its durations would be wrong.`);
  return file;
}
