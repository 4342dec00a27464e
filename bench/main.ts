import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { machine } from './machine.ts';
import { Ground, type Pace, type Row, type Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';
import { hasWrk } from './wrk.ts';

const USAGE = `npm run bench -- [--only NAME]… [--seconds N] [--organizations N]

  --only NAME          one of: ${SCENARIOS.map(({ name }) => name).join(', ')}; may be repeated
  --seconds N          length of every load, instead of 20 s, 2 minutes (creation) and 10 minutes (mixed)
  --organizations N    size of the large data, instead of 1,000,000
  --users N            of the log whose followers' memory is measured, instead of 1,000,000
  --sessions N         that are refreshed, instead of 10,000, and four times as many users with codes by mail
  --people N           in a directory that is synced or listed, instead of 100,000; the targets are of 1,000,000
  --events N           of an audit trail that is exported, instead of 1,000,000: at least
  --listed N           of an audit trail that is read by pages, instead of 2,000,000
  --profiles DIR       the processes of a cluster, and those of sign-in, keys and directories, write what their processor did there, for a browser's developer tools`;

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    seconds: { type: 'string' },
    organizations: { type: 'string', default: '1000000' },
    users: { type: 'string', default: '1000000' },
    sessions: { type: 'string', default: '10000' },
    people: { type: 'string', default: '100000' },
    events: { type: 'string', default: '1000000' },
    listed: { type: 'string', default: '2000000' },
    profiles: { type: 'string' },
    help: { type: 'boolean' },
  },
});
const given = values.seconds === undefined ? null : Number(values.seconds);
const organizations = Number(values.organizations);
const pace: Pace = {
  seconds: given ?? 20,
  sustainedSeconds: given ?? 120,
  mixedSeconds: given ?? 600,
  clusterOrganizations: Math.min(10_000, organizations),
  bulkOrganizations: Math.min(100_000, organizations),
  users: Number(values.users),
  sessions: Number(values.sessions),
  people: Number(values.people),
  auditEvents: Number(values.events),
  listedAuditEvents: Number(values.listed),
  profiles: values.profiles === undefined ? null : resolve(values.profiles),
};
const chosen = SCENARIOS.filter(({ name }) => values.only?.includes(name) ?? true);
const sizes: Readonly<Record<Scenario['organizations'], number>> = {
  none: 0,
  some: Math.min(100_000, organizations),
  many: organizations,
};

if (values.help) console.log(USAGE);
else if (chosen.length === 0) stop(`There is no such scenario.\n${USAGE}`);
else if (!(await hasWrk())) stop('The bench needs wrk as its load generator: apt-get install wrk');
else await measureAll();

async function measureAll(): Promise<void> {
  const rows: Row[] = [];
  for (const size of ['none', 'some', 'many'] as const) {
    const scenarios = chosen.filter(({ organizations }) => organizations === size);
    if (scenarios.length === 0) continue;
    console.error(`preparing ${sizes[size].toLocaleString('en')} organizations …`);
    const ground = await Ground.prepare(sizes[size]).catch((error: Error) => failed(`${sizes[size].toLocaleString('en')} organizations`, error));
    if (!(ground instanceof Ground)) {
      rows.push(ground);
      continue;
    }
    for (const scenario of scenarios) rows.push(...(await measured(scenario, ground)));
    await ground.remove();
  }
  const table = await markdown(rows);
  await mkdir('bench/results', { recursive: true });
  await writeFile('bench/results/latest.md', table);
  console.log(table);
}

/** One scenario that fails is a row that says so, not the end of the others. */
async function measured(scenario: Scenario, ground: Ground): Promise<readonly Row[]> {
  console.error(`measuring ${scenario.name} …`);
  const rows = await scenario.measure(ground, pace).catch((error: Error) => [failed(scenario.name, error)]);
  for (const { what, measured: result } of rows) console.error(`  ${what}: ${result}`);
  return rows;
}

function failed(what: string, error: Error): Row {
  return { what, target: '', measured: `failed: ${error.message.split('\n')[0]}`, met: false };
}

async function markdown(rows: readonly Row[]): Promise<string> {
  const lines = rows.map(({ what, target, measured: result, met }) => `| ${what} | ${target} | ${result} | ${met ? 'yes' : '**no**'} |`);
  return [
    `Measured with \`wrk\` beside the server: ${await machine(tmpdir())}.`,
    '',
    '| what | target | measured | met |',
    '|---|---|---|---|',
    ...lines,
    '',
  ].join('\n');
}

function stop(message: string): void {
  console.error(message);
  process.exitCode = 1;
}
