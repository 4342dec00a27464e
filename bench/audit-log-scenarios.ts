import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '#libs/testing/src/engines/free-port';
import { proofTimes } from './audit-proofs.ts';
import {
  asked,
  caughtUp,
  createdOrganizations,
  loadedCluster,
  loadedFirst,
  made,
  timing as clusterTiming,
  withCluster,
  type ClusterResult,
} from './cluster-ground.ts';
import { Program } from './program.ts';
import { reference } from './reference.ts';
import type { Ground, Pace, Row, Scenario } from './scenario.ts';
import { loaded, timing, type SuiteResult } from './suite-load.ts';
import { KEY, settingsFor, Suite } from './suite.ts';
import { count, percent, rate, row, unique } from './table.ts';

const ORGANIZATIONS = 1_000;
const BYTES = 2_500;
/** Until rows are in their lists, and what the log has written lies on disk. */
const SETTLED = 15_000;
const FILLED_SECONDS = 20;
const UNDISTURBED = 5_000;
/** In milliseconds. */
const OTHERS_EVERY = 10;
/** As `wrk/events.lua` sends them. */
const ACTIONS = ['document.shared', 'document.viewed', 'member.invited', 'settings.updated'];
const SCHEMA = {
  actor: { metadata: { type: 'object', properties: { role: { type: 'string', enum: ['owner', 'member'] } } } },
  targets: [{ type: 'document' }],
  metadata: { type: 'object', properties: { request_id: { type: 'string' }, plan: { type: 'string' }, pages: { type: 'integer' } }, required: ['request_id'] },
};
/** Places all over a trail: with so many, what is opened for a page is forgotten before it is asked for again. */
const PLACES = 1_000;
const LEAVES = 10_000_000;
const PROOFS = 500;

export const AUDIT_LOG_SCENARIOS: readonly Scenario[] = [
  { name: 'audit-events', organizations: 'none', measure: auditEvents },
  { name: 'cluster-audit', organizations: 'none', measure: auditEventsInCluster },
  { name: 'audit-stream', organizations: 'none', measure: auditStream },
  { name: 'audit-exports', organizations: 'none', measure: auditExports },
  { name: 'audit-pages', organizations: 'none', measure: auditPages },
  { name: 'audit-proofs', organizations: 'none', measure: auditProofs },
];

async function auditEvents(ground: Ground, pace: Pace): Promise<readonly Row[]> {
  const directory = join(ground.directory, 'audit-events');
  const suite = await Suite.start(directory, pace.profiles === null ? [] : [await loadedFirst('profiler.js', join(pace.profiles, 'audit-events'))]);
  try {
    const ids = await Promise.all(Array.from({ length: ORGANIZATIONS }, async (_, index) => organization(suite, index)));
    for (const action of ACTIONS) await suite.post(schemasOf(action), SCHEMA);
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
        `\`POST /audit_logs/events\` of 600 bytes with schema and \`Idempotency-Key\`, 64 connections, ${count(ORGANIZATIONS)} organizations`,
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

/** Two replicas of each service: events of many organizations, then of one alone beside which others go on. */
async function auditEventsInCluster(ground: Ground, pace: Pace): Promise<readonly Row[]> {
  return withCluster({ replicas: 2, pace }, async (cluster) => {
    const paths = await createdOrganizations(cluster, ORGANIZATIONS);
    const ids = paths.map((path) => path.slice(path.lastIndexOf('/') + 1));
    for (const action of ACTIONS) await made(cluster, schemasOf(action), SCHEMA);
    await caughtUp(cluster);
    const [all, one] = [await ground.fileOf('organizations', ids), await ground.fileOf('organization', ids.slice(0, 1))];
    const record = (file: string): Promise<ClusterResult> =>
      loadedCluster(cluster, {
        url: `${cluster.gateways[0]!.url}/audit_logs/events`,
        script: 'events',
        arguments: [cluster.key, file, unique()],
        connections: 64,
        seconds: pace.seconds,
      });
    // What is compiled at first, and keys and heads of trails that are read then.
    await record(all);
    const many = await record(all);
    const others = (event: object): Promise<unknown> => asked(cluster, '/audit_logs/events', { organization_id: ids[1]!, event });
    let alone!: ClusterResult;
    const waited = await othersDuring(others, async () => void (alone = await record(one)));
    const what = '`POST /audit_logs/events` with schema and `Idempotency-Key`, two replicas of each service, all engines as processes, 64 connections';
    return [
      row(`${what}, ${count(ORGANIZATIONS)} organizations`, 'reported', clusterTiming(many), true),
      row('the same, all of one organization', '≥ 3,000/s', clusterTiming(alone), alone.perSecond >= 3_000),
      row('events of another organization meanwhile', 'p99 ≤ 20 ms', `p99 ${waited.toFixed(1)} ms`, waited <= 20),
    ];
  });
}

/** How one export of a large trail goes, and what others notice of it, who record an event every so many milliseconds. */
async function auditExports(ground: Ground, pace: Pace): Promise<readonly Row[]> {
  const directory = join(ground.directory, 'audit-exports');
  const suite = await Suite.start(directory, pace.profiles === null ? [] : [await loadedFirst('profiler.js', join(pace.profiles, 'audit-exports'))]);
  try {
    const [large, other] = [await organization(suite, 0), await organization(suite, 1)];
    const file = await ground.fileOf('large', [large]);
    const events = `${suite.url}/audit_logs/events`;
    let recorded = 0;
    while (recorded < pace.auditEvents)
      recorded += (await loaded(suite, { url: events, script: 'events', arguments: [KEY, file, unique()], connections: 64, seconds: FILLED_SECONDS })).requests;
    await suite.caughtUp();
    await pause(SETTLED);
    const others = (event: object): Promise<unknown> => suite.ask('/audit_logs/events', { organization_id: other, event });
    const quiet = await othersDuring(others, () => pause(UNDISTURBED));
    const before = await suite.rssAnonMegabytes();
    const processor = await suite.processorSeconds();
    let most = before;
    let exported: { readonly milliseconds: number; readonly bytes: number } | null = null;
    const busy = await othersDuring(others, async () => {
      exported = await exportOf(suite, large, async () => void (most = Math.max(most, await suite.rssAnonMegabytes())));
    });
    const { milliseconds, bytes } = exported!;
    const used = ((await suite.processorSeconds()) - processor) * (1_000_000 / recorded);
    const inMillion = (milliseconds / recorded) * 1_000;
    return [
      row(
        `export of ${count(recorded)} events to CSV (${(bytes / 2 ** 20).toFixed(0)} MiB), with its proof`,
        '1,000,000 in ≤ 40 s',
        `${(milliseconds / 1_000).toFixed(1)} s, a million in ${inMillion.toFixed(1)} s; ${used.toFixed(0)} µs of processor an event`,
        inMillion <= 40,
      ),
      row('memory that it takes (`RssAnon`)', '≤ 50 MB', `${(most - before).toFixed(0)} MB`, most - before <= 50),
      row('events of others meanwhile', 'p99 ≤ 20 ms', `p99 ${busy.toFixed(1)} ms; ${quiet.toFixed(1)} ms without it`, busy <= 20),
    ];
  } finally {
    await suite.stop();
  }
}

async function exportOf(suite: Suite, id: string, look: () => Promise<void>): Promise<{ readonly milliseconds: number; readonly bytes: number }> {
  const now = Date.now();
  const range = { range_start: new Date(now - 86_400_000).toISOString(), range_end: new Date(now + 86_400_000).toISOString() };
  let made = (await suite.post('/audit_logs/exports', { organization_id: id, ...range })) as Export;
  for (; made.state === 'pending'; made = JSON.parse(await suite.get(`/audit_logs/exports/${made.id}`)) as Export) {
    await look();
    await pause(200);
  }
  if (made.url === null) throw new Error(`The export ended as ${made.state}.`);
  const { pathname, search } = new URL(made.url);
  const bytes = Number((await fetch(suite.url + pathname + search, { method: 'HEAD' })).headers.get('content-length'));
  return { milliseconds: Date.parse(made.updated_at) - Date.parse(made.created_at), bytes };
}

interface Export {
  readonly id: string;
  readonly state: string;
  readonly url: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** The 99th percentile of what it takes to record an event, in milliseconds, while something else goes on. */
async function othersDuring(send: (event: object) => Promise<unknown>, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  let isOver = false;
  const record = async (): Promise<void> => {
    const event = { action: 'other', occurred_at: new Date().toISOString(), actor: { id: unique(), type: 'user' }, targets: [], context: { location: '' } };
    const began = performance.now();
    await send(event);
    times.push(performance.now() - began);
  };
  const asking: Promise<void>[] = [];
  const others = (async () => {
    for (; !isOver; await pause(OTHERS_EVERY)) asking.push(record());
  })();
  await work();
  isOver = true;
  await others;
  await Promise.all(asking);
  return times.toSorted((one, another) => one - another)[Math.floor(times.length * 0.99)]!;
}

/** To a receiver on this machine that takes whatever comes. */
async function auditStream(ground: Ground, pace: Pace): Promise<readonly Row[]> {
  const suite = await Suite.start(join(ground.directory, 'audit-stream'));
  const port = await freePort();
  const receiver = new Program('bench/webhook-receiver.js', {}, [`${port}`]);
  try {
    const url = `http://127.0.0.1:${port}`;
    await receiver.answers(url);
    const id = await organization(suite, 0);
    const file = await ground.fileOf('streamed', [id]);
    await loaded(suite, { url: `${suite.url}/audit_logs/events`, script: 'events', arguments: [KEY, file, unique()], connections: 64, seconds: pace.seconds });
    await suite.caughtUp();
    const path = `/admin/organizations/${id}/audit_log_stream`;
    const begun = Date.now();
    const { waiting_events: events } = (await suite.put(path, { type: 'GenericHttps', url, secret: unique(), from: 'beginning' })) as StreamShown;
    let shown: StreamShown;
    do {
      await pause(100);
      shown = JSON.parse(await suite.get(path)) as StreamShown;
    } while (shown.waiting_events > 0);
    const perSecond = (events / (Date.parse(shown.last_synced_at!) - begun)) * 1_000;
    return [row(`${count(events)} events of 600 bytes of one organization, streamed to a local receiver`, '≥ 5,000/s', rate(perSecond), perSecond >= 5_000)];
  } finally {
    await receiver.stop().catch(() => undefined);
    await suite.stop();
  }
}

/** Where the tiles of a tree lie, a proof asks nothing else: the tree is there without the events. */
async function auditProofs(ground: Ground): Promise<readonly Row[]> {
  const { first, others } = await proofTimes(join(ground.directory, 'audit-proofs'), LEAVES, PROOFS);
  const [p50, p99] = [0.5, 0.99].map((part) => others[Math.floor(others.length * part)]!) as [number, number];
  const measured = `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms; the first of a process ${first.toFixed(1)} ms`;
  return [row(`proof of inclusion among ${count(LEAVES)} events, by its tiles`, '≤ 5 ms', measured, p99 <= 5)];
}

/** Pages of a long trail: from places all over it, and from its end, where each shares most events with the next. */
async function auditPages(ground: Ground, pace: Pace): Promise<readonly Row[]> {
  const directory = join(ground.directory, 'audit-pages');
  const events = pace.listedAuditEvents;
  const made = await Suite.start(directory);
  const id = await organization(made, 0);
  for (const action of ACTIONS) await made.post(schemasOf(action), SCHEMA);
  await made.stop();
  const seeded = await new Program('bench/audit-seed.js', { ...settingsFor(directory), PORT: '0' }, [ACTIONS.join(), id, String(events)]).ended();
  const suite = await Suite.start(directory, pace.profiles === null ? [] : [await loadedFirst('profiler.js', join(pace.profiles, 'audit-pages'))]);
  try {
    await suite.caughtUp();
    const list = `/audit_logs/events?organization_id=${id}&actions=document.shared`;
    const [first, last] = await Promise.all(
      ['asc', 'desc'].map(async (order) => Date.parse((await pageOf(suite, `${list}&limit=1&order=${order}`))[0]!.occurred_at)),
    );
    const paths: string[] = [];
    while (paths.length < PLACES) {
      const time = new Date(first! + Math.random() * (last! - first!)).toISOString();
      const [found] = await pageOf(suite, `${list}&limit=1&range_end=${time}`);
      if (found !== undefined) paths.push(`${list}&limit=100&after=${found.id}`);
    }
    const file = await ground.fileOf('places', paths);
    const read = (): Promise<SuiteResult> => loaded(suite, { url: suite.url, script: 'get', arguments: [KEY, file], connections: 32, seconds: pace.seconds });
    // What is compiled at first, and pages of the disk.
    await read();
    const anywhere = await read();
    const newest = await filteredPages(ground, suite, id, pace);
    const what = `\`GET /audit_logs/events\`, pages of 100, one action, over ${count(events)} events of one organization`;
    return [
      row(`${what}, from ${count(PLACES)} places all over it`, '≥ 500/s', timing(anywhere), anywhere.perSecond >= 500),
      row('the same, from its end', '≥ 500/s', timing(newest), newest.perSecond >= 500),
      row('recording them, without HTTP', 'measured', rate((events / seeded) * 1_000), true),
    ];
  } finally {
    await suite.stop();
  }
}

async function pageOf(suite: Suite, path: string): Promise<readonly { readonly id: string; readonly occurred_at: string }[]> {
  return (JSON.parse(await suite.get(path)) as { readonly data: readonly { readonly id: string; readonly occurred_at: string }[] }).data;
}

interface StreamShown {
  readonly waiting_events: number;
  readonly last_synced_at: string | null;
}

function schemasOf(action: string): string {
  return `/audit_logs/actions/${action}/schemas`;
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
