import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '#libs/testing/src/engines/free-port';
import { API_KEY_SCENARIOS } from './api-key-scenarios.ts';
import { AUDIT_LOG_SCENARIOS } from './audit-log-scenarios.ts';
import { AUTHORIZATION_SCENARIOS } from './authorization-scenarios.ts';
import { CLUSTER_SCENARIOS } from './cluster-scenarios.ts';
import { DIRECTORY_SCENARIOS } from './directory-scenarios.ts';
import { atRest } from './processor.ts';
import { Program } from './program.ts';
import { reference } from './reference.ts';
import type { Ground, Pace, Row, Scenario } from './scenario.ts';
import { SIGN_IN_SCENARIOS } from './sign-in-scenarios.ts';
import { loaded, timing, type SuiteResult } from './suite-load.ts';
import { KEY, type Suite } from './suite.ts';
import { count, percent, rate, row, seconds, unique } from './table.ts';
import type { Load } from './wrk.ts';

const MEGABYTES_AT_REST = 150;
/** Growth over the mixed run that counts as flat: what caches of bounded size may still fill. */
const FLAT_MEGABYTES = 50;

/** At so many connections a creation may take so much of the processor (milliseconds); null: it is told, and no more. */
const COMPANY = [
  { connections: 1, most: 1 },
  { connections: 4, most: null },
  { connections: 16, most: 0.4 },
  { connections: 64, most: 0.2 },
] as const;
const ALONE_MS = 3;
/** After a start, what was compiled and read for it is collected. */
const SETTLED = 15_000;

const start: Scenario = {
  name: 'start',
  organizations: 'none',
  measure: (ground) =>
    ground.withSuite(async (suite) => {
      await pause(10_000);
      const memory = await suite.rssAnonMegabytes();
      return [
        row('start to ready, empty', '≤ 1.5 s', seconds(suite.startToReady), suite.startToReady <= 1_500),
        row('memory at rest (`RssAnon`)', `≤ ${MEGABYTES_AT_REST} MB`, `${memory.toFixed(0)} MB`, memory <= MEGABYTES_AT_REST),
      ];
    }),
};

/** What it takes that nobody asks for anything. The first seconds after a start are not counted. */
const idle: Scenario = {
  name: 'idle',
  organizations: 'none',
  measure: (ground, pace) =>
    ground.withSuite(async (suite) => {
      await pause(SETTLED);
      return [row('the suite with nothing to do', 'measured', await atRest(new Map([['suite', suite.pid]]), pace.seconds), true)];
    }),
};

const create: Scenario = { name: 'create', organizations: 'none', measure: sustainedCreates };

/** What a write costs that comes alone, and what it costs in company. */
const createAlone: Scenario = {
  name: 'create-alone',
  organizations: 'none',
  measure: (ground, pace) =>
    ground.withSuite(async (suite) => {
      const rows: Row[] = [];
      // What the engine still has to compile would be counted to those that come first, and few.
      await creates(suite, pace.seconds);
      for (const { connections, most } of COMPANY) {
        const before = await suite.appends();
        const result = await creates(suite, pace.seconds, connections);
        const after = await suite.appends();
        const beyond = result.p50 - (after.milliseconds - before.milliseconds) / (after.count - before.count);
        const isFast = connections > 1 || beyond <= ALONE_MS;
        rows.push(
          row(
            `\`POST /organizations\` with \`Idempotency-Key\`, ${connections} ${connections === 1 ? 'connection' : 'connections'}`,
            `${connections === 1 ? `≤ ${ALONE_MS} ms beyond the append, ` : ''}${most === null ? 'processor measured' : `≤ ${most} ms of processor`}`,
            `${timing(result)}; p50 is ${beyond.toFixed(1)} ms beyond the append`,
            isFast && result.microseconds / 1_000 <= (most ?? Infinity),
          ),
        );
      }
      return rows;
    }),
};

const webhooks: Scenario = {
  name: 'webhooks',
  organizations: 'none',
  measure: async (ground, pace) => {
    const without = await ground.withSuite((suite) => creates(suite, pace.seconds));
    return withReceiver((receiver) =>
      ground.withSuite(async (suite) => {
        await suite.post('/webhook_endpoints', { endpoint_url: `${receiver}/hook`, events: ['organization.created'] });
        const result = await creates(suite, pace.seconds);
        const delivered = await deliveries(receiver, result.requests);
        const share = result.perSecond / without.perSecond;
        return [
          row(
            'webhook deliveries to a local receiver',
            '≥ 3,000/s',
            `${rate(delivered.perSecond)} (${count(delivered.deliveries)} of ${count(result.requests)})`,
            delivered.perSecond >= 3_000,
          ),
          row('creation with webhooks on', '≥ 70 % of without', `${percent(share)} (${rate(result.perSecond)} of ${rate(without.perSecond)})`, share >= 0.7),
        ];
      }),
    );
  },
};

const get: Scenario = {
  name: 'get',
  organizations: 'some',
  measure: async (ground, pace) => {
    const plain = await reference(pace.seconds);
    const result = await reads(ground, 'organizations', ground.seeded.organizationPaths, pace.seconds);
    const share = result.perSecond / plain.perSecond;
    return [
      row(
        `\`GET /organizations/{id}\`, ${count(ground.seeded.organizationPaths.length)} ids, 32 connections`,
        '≥ 30,000/s, p99 ≤ 3 ms',
        timing(result),
        result.perSecond >= 30_000 && result.p99 <= 3,
      ),
      row('the same, of a plain Fastify POST with a schema', '≥ 50 %', `${percent(share)} of ${rate(plain.perSecond)}`, share >= 0.5),
    ];
  },
};

const rebuild: Scenario = {
  name: 'rebuild',
  organizations: 'many',
  measure: async ({ rebuild: { events, milliseconds } }) => {
    const perSecond = (events / milliseconds) * 1_000;
    return [row('rebuild of all views', '≥ 50,000 events/s', `${rate(perSecond)} (${count(events)} events, ${seconds(milliseconds)})`, perSecond >= 50_000)];
  },
};

const restart: Scenario = {
  name: 'restart',
  organizations: 'many',
  measure: (ground) =>
    ground.withSuite(async (suite) => {
      await pause(10_000);
      const memory = await suite.rssAnonMegabytes();
      return [
        row(`start to ready, ${count(ground.rebuild.events)} events`, '≤ 5 s', seconds(suite.startToReady), suite.startToReady <= 5_000),
        row(
          `memory at rest, ${count(ground.organizations)} organizations`,
          `≤ ${MEGABYTES_AT_REST} MB`,
          `${memory.toFixed(0)} MB`,
          memory <= MEGABYTES_AT_REST,
        ),
      ];
    }),
};

const list: Scenario = {
  name: 'list',
  organizations: 'many',
  measure: async (ground, pace) => {
    const { organizationPaths, domainPaths, searchPaths } = ground.seeded;
    const pages = organizationPaths.slice(0, 1_000).map((path) => `/organizations?limit=100&after=${path.slice(path.lastIndexOf('/') + 1)}`);
    const page = await reads(ground, 'pages', ['/organizations?limit=100', ...pages], pace.seconds);
    const domains = await reads(ground, 'domains', domainPaths, pace.seconds);
    const search = await reads(ground, 'search', searchPaths, pace.seconds);
    const over = `over ${count(ground.organizations)}`;
    return [
      row(`\`GET /organizations?limit=100\` ${over}`, '≥ 2,500/s', timing(page), page.perSecond >= 2_500),
      row(`\`GET /organizations?domains=\` ${over}`, '≥ 20,000/s', timing(domains), domains.perSecond >= 20_000),
      row(`\`GET /organizations?search=\` ${over}`, '≥ 5,000/s', timing(search), search.perSecond >= 5_000),
    ];
  },
};

const createMany: Scenario = { name: 'create-many', organizations: 'many', measure: sustainedCreates };

const mixed: Scenario = {
  name: 'mixed',
  organizations: 'some',
  measure: async (ground, pace) => {
    const file = await ground.fileOf('mixed', ground.seeded.organizationPaths);
    return ground.withSuite(async (suite) => {
      const samples: number[] = [];
      const timer = setInterval(() => void suite.rssAnonMegabytes().then((megabytes) => samples.push(megabytes)), 5_000);
      const mixedLoad: Load = { url: suite.url, script: 'mixed', arguments: [KEY, file, unique()], connections: 16, seconds: pace.mixedSeconds };
      const result = await loaded(suite, mixedLoad).finally(() => clearInterval(timer));
      // The first minute warms the code up; the middle of a few samples does not ask where the collector just was.
      const warm = samples.slice(Math.min(12, samples.length >> 1));
      const early = middle(warm.slice(0, 12));
      const late = middle(warm.slice(-12));
      return [
        row(
          `memory over ${pace.mixedSeconds} s of mixed work`,
          'flat',
          `${early.toFixed(0)} MB after a minute, ${late.toFixed(0)} MB at the end (${timing(result)})`,
          late - early <= FLAT_MEGABYTES,
        ),
      ];
    });
  },
};

export const SCENARIOS: readonly Scenario[] = [
  start,
  idle,
  create,
  createAlone,
  webhooks,
  get,
  mixed,
  rebuild,
  restart,
  list,
  createMany,
  ...API_KEY_SCENARIOS,
  ...AUTHORIZATION_SCENARIOS,
  ...SIGN_IN_SCENARIOS,
  ...AUDIT_LOG_SCENARIOS,
  ...DIRECTORY_SCENARIOS,
  ...CLUSTER_SCENARIOS,
];

async function sustainedCreates(ground: Ground, pace: Pace): Promise<readonly Row[]> {
  return ground.withSuite(async (suite) => {
    const result = await creates(suite, pace.sustainedSeconds);
    const lags = await suite.lags();
    // No lag at all is a metric that was renamed, not a fast projector.
    const [name, worst] = [...lags].sort(([, one], [, other]) => other - one)[0] ?? ['no lag in /metrics', Number.NaN];
    const where = `at ${count(ground.organizations)} organizations`;
    return [
      row(
        `\`POST /organizations\` with \`Idempotency-Key\`, ${pace.sustainedSeconds} s, 64 connections, ${where}`,
        '≥ 8,000/s, p99 ≤ 20 ms',
        timing(result),
        result.perSecond >= 8_000 && result.p99 <= 20,
      ),
      row(`projector, forwarder, feed and webhooks behind at its end, ${where}`, '≤ 1 s', `${worst.toFixed(2)} s (${name})`, worst <= 1),
    ];
  });
}

function creates(suite: Suite, duration: number, connections = 64): Promise<SuiteResult> {
  return loaded(suite, { url: `${suite.url}/organizations`, script: 'create', arguments: [KEY, unique()], connections, seconds: duration });
}

async function reads(ground: Ground, name: string, paths: readonly string[], duration: number): Promise<SuiteResult> {
  const file = await ground.fileOf(name, paths);
  return ground.withSuite(async (suite) => {
    // A list that finds nothing would be fast.
    if (!(await suite.get(paths[0]!)).includes('"org_')) throw new Error(`${paths[0]} finds no organization.`);
    return loaded(suite, { url: suite.url, script: 'get', arguments: [KEY, file], connections: 32, seconds: duration });
  });
}

async function withReceiver<Result>(measure: (url: string) => Promise<Result>): Promise<Result> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const receiver = new Program('bench/webhook-receiver.js', {}, [`${port}`]);
  try {
    await receiver.answers(url);
    return await measure(url);
  } finally {
    await receiver.stop().catch(() => undefined);
  }
}

/** Waits until all have arrived, or none does any more. */
async function deliveries(receiver: string, expected: number): Promise<{ readonly deliveries: number; readonly perSecond: number }> {
  for (let before = -1; ;) {
    const now = (await (await fetch(receiver)).json()) as { deliveries: number; first: number; last: number };
    if (now.deliveries >= expected || now.deliveries === before)
      return { deliveries: now.deliveries, perSecond: (now.deliveries / (now.last - now.first)) * 1_000 };
    before = now.deliveries;
    await pause(5_000);
  }
}

function middle(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}
