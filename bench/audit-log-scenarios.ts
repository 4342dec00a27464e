import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { loadedFirst } from './cluster-ground.ts';
import { reference } from './reference.ts';
import type { Ground, Pace, Row, Scenario } from './scenario.ts';
import { loaded, timing, type SuiteResult } from './suite-load.ts';
import { KEY, Suite } from './suite.ts';
import { count, percent, rate, row, unique } from './table.ts';

const ORGANIZATIONS = 1_000;
const BYTES = 2_500;
/** Until rows are in their lists, and what the log has written lies on disk. */
const SETTLED = 15_000;

export const AUDIT_LOG_SCENARIOS: readonly Scenario[] = [{ name: 'audit-events', organizations: 'none', measure: auditEvents }];

async function auditEvents(ground: Ground, pace: Pace): Promise<readonly Row[]> {
  const directory = join(ground.directory, 'audit-events');
  const suite = await Suite.start(directory, pace.profiles === null ? [] : [await loadedFirst('profiler.js', join(pace.profiles, 'audit-events'))]);
  try {
    const ids = await Promise.all(Array.from({ length: ORGANIZATIONS }, async (_, index) => organization(suite, index)));
    const [all, one] = [await ground.fileOf('organizations', ids), await ground.fileOf('organization', ids.slice(0, 1))];
    const record = (file: string): Promise<SuiteResult> =>
      loaded(suite, { url: `${suite.url}/audit_logs/events`, script: 'events', arguments: [KEY, file, unique()], connections: 64, seconds: pace.seconds });
    await record(all);
    const plain = await reference(pace.seconds);
    const before = await stored(suite, directory);
    const result = await record(all);
    const bytes = ((await stored(suite, directory)) - before) / result.requests;
    const share = result.perSecond / plain.perSecond;
    const alone = await record(one);
    await suite.caughtUp();
    const pages = await filteredPages(ground, suite, ids[0]!, pace);
    return [
      row(
        `\`POST /audit_logs/events\` of 600 bytes with \`Idempotency-Key\`, 64 connections, ${count(ORGANIZATIONS)} organizations`,
        '≥ 7,000/s, p99 ≤ 40 ms',
        timing(result),
        result.perSecond >= 7_000 && result.p99 <= 40,
      ),
      row('the same, of a plain Fastify POST with a schema', '≥ 11 %', `${percent(share)} of ${rate(plain.perSecond)}`, share >= 0.11),
      row('bytes on disk for each of them, log and views', `≤ ${count(BYTES)}`, bytes.toFixed(0), bytes <= BYTES),
      row('the same, all of one organization', 'measured', timing(alone), true),
      row(
        `\`GET /audit_logs/events\`, pages of 100, one action, over ${count(alone.requests)} events`,
        '≥ 500/s over 2,000,000',
        timing(pages),
        pages.perSecond >= 500,
      ),
    ];
  } finally {
    await suite.stop();
  }
}

async function organization(suite: Suite, index: number): Promise<string> {
  return ((await suite.post('/organizations', { name: `Bench ${index}` })) as { readonly id: string }).id;
}

async function filteredPages(ground: Ground, suite: Suite, id: string, pace: Pace): Promise<SuiteResult> {
  const list = `/audit_logs/events?organization_id=${id}&actions=document.shared`;
  const { data } = JSON.parse(await suite.get(`${list}&limit=100`)) as { readonly data: readonly { readonly id: string }[] };
  if (data.length < 100) throw new Error(`${list} finds ${data.length} events.`);
  const file = await ground.fileOf('pages', [`${list}&limit=100`, ...data.map((event) => `${list}&limit=100&after=${event.id}`)]);
  return loaded(suite, { url: suite.url, script: 'get', arguments: [KEY, file], connections: 32, seconds: pace.seconds });
}

/** Bytes that files take on disk. */
async function stored(suite: Suite, directory: string): Promise<number> {
  await suite.caughtUp();
  await pause(SETTLED);
  const { stdout } = await promisify(execFile)('du', ['-s', '--block-size=1', directory]);
  return Number(/^\d+/.exec(stdout)![0]);
}
