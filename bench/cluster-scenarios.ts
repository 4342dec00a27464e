import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { App } from '#libs/testing/src/cluster/cluster-process';
import type { Cluster } from '#libs/testing/src/cluster/cluster';
import { freePort } from '#libs/testing/src/engines/free-port';
import { kafka } from '#libs/testing/src/engines/kafka';
import { mongodb } from '#libs/testing/src/engines/mongodb';
import { fillViews, forward, type Bulk } from './bulk.ts';
import { accessQuestions } from './cluster-access.ts';
import { caughtUp, createdOrganizations, loadedCluster, pidsOf, timing, withCluster, withEngine, type ClusterResult } from './cluster-ground.ts';
import { memory } from './cluster-memory.ts';
import { medianHop } from './hop.ts';
import { atRest, ProcessorUse } from './processor.ts';
import { Program } from './program.ts';
import type { Ground, Row, Scenario } from './scenario.ts';
import { seed } from './seed.ts';
import { KEY } from './suite.ts';
import { count, rate, row, seconds, unique } from './table.ts';
import { takeOvers } from './takeover.ts';
import { load, type Load } from './wrk.ts';

const TAKE_OVERS = 3;
const TAKEN_OVER_WITHIN = 10_000;
/** After a start, what was compiled and read for it is collected. */
const SETTLED = 15_000;
const ONE = '/organizations/org_01J00000000000000000000000';

/** The gateway as it is shipped, over a service that answers from memory: its log lies in a directory, so that no engine takes part. */
const transport: Scenario = {
  name: 'cluster-transport',
  organizations: 'none',
  measure: async (ground, pace) => {
    const [servicePort, port] = [await freePort(), await freePort()];
    const address = `127.0.0.1:${servicePort}`;
    const shared = {
      SERVICE_KEY: randomBytes(32).toString('base64url'),
      IDENTITY_ADDRESS: address,
      AUTHORIZATION_ADDRESS: address,
      DIRECTORY_SYNC_ADDRESS: address,
      AUDIT_LOGS_ADDRESS: address,
      NOTIFICATIONS_ADDRESS: address,
    };
    const service = new Program('bench/answering-service.js', { ...shared, SERVICE_PORT: `${servicePort}` });
    const gateway = new Program('programs/gateway.js', {
      ...shared,
      DATA_DIR: join(ground.directory, 'gateway'),
      HOST: '127.0.0.1',
      PORT: `${port}`,
      RATE_LIMITS: 'off',
      LOG_LEVEL: 'error',
    });
    try {
      const url = `http://127.0.0.1:${port}`;
      await gateway.answers(`${url}/health/ready`);
      await answersFromMemory(url);
      const file = await ground.fileOf('one', [ONE]);
      const use = await ProcessorUse.begin(
        new Map([
          ['gateway', gateway.pid],
          ['service', service.pid],
        ]),
      );
      const result = await load({ url, script: 'get', arguments: [KEY, file], connections: 32, seconds: pace.seconds });
      const perRequest = await use.perRequest(result.requests);
      const hop = await medianHop(shared, pace.seconds);
      return [
        row('gateway and TCP to one replica, answer from memory, 32 connections', '≥ 8,000/s', timing({ ...result, perRequest }), result.perSecond >= 8_000),
        row('hop over TCP under a pre-shared key, one connection', '≤ 0.3 ms p50', `${hop.toFixed(3)} ms`, hop <= 0.3),
      ];
    } finally {
      await gateway.stop();
      await service.stop();
    }
  },
};

const get: Scenario = {
  name: 'cluster-get',
  organizations: 'none',
  measure: (ground, pace) =>
    withCluster({ replicas: 1, pace }, async (cluster) => {
      const paths = await createdOrganizations(cluster, pace.clusterOrganizations);
      await caughtUp(cluster);
      const file = await ground.fileOf('cluster', paths);
      const url = cluster.gateways[0]!.url;
      const result = await loadedCluster(cluster, { url, script: 'get', arguments: [cluster.key, file], connections: 32, seconds: pace.seconds });
      return [
        row(
          `\`GET /organizations/{id}\` through gateway, TCP and the MongoDB-protocol server, ${count(paths.length)} ids, 32 connections`,
          '≥ 3,000/s',
          timing(result),
          result.perSecond >= 3_000,
        ),
      ];
    }),
};

const check: Scenario = {
  name: 'cluster-check',
  organizations: 'none',
  measure: (ground, pace) =>
    withCluster({ replicas: 1, pace }, async (cluster) => {
      const questions = await accessQuestions(cluster);
      await caughtUp(cluster);
      const file = await ground.fileOf('cluster-checks', questions);
      const url = cluster.gateways[0]!.url;
      const result = await loadedCluster(cluster, { url, script: 'send', arguments: [cluster.key, file], connections: 32, seconds: pace.seconds });
      const what = `\`check\` through gateway and TCP to one replica, end of the log read, ${count(questions.length)} questions, 32 connections`;
      return [row(what, '≥ 8,000/s', timing(result), result.perSecond >= 8_000)];
    }),
};

const create: Scenario = {
  name: 'cluster-create',
  organizations: 'none',
  measure: (_ground, pace) =>
    withCluster({ replicas: 1, pace }, async (cluster) => {
      const load: Load = {
        url: `${cluster.gateways[0]!.url}/organizations`,
        script: 'create',
        arguments: [cluster.key, unique()],
        connections: 64,
        seconds: pace.seconds,
      };
      // What the engine still has to compile would be counted to those that come first, and few.
      await loadedCluster(cluster, load);
      const rows: Row[] = [];
      for (const connections of [1, 4, 16, 64]) {
        const result = await loadedCluster(cluster, { ...load, arguments: [cluster.key, unique()], connections });
        const what = `\`POST /organizations\` with \`Idempotency-Key\`, all engines as processes, ${connections} ${connections === 1 ? 'connection' : 'connections'}`;
        rows.push(
          row(
            what,
            connections === 64 ? '≤ 0.6 ms of the gateway and identity' : 'measured',
            timing(result),
            connections < 64 || ownMicroseconds(result) <= 600,
          ),
        );
      }
      return rows;
    }),
};

/** One of each service, and the engines, while nobody asks for anything. */
const idle: Scenario = {
  name: 'cluster-idle',
  organizations: 'none',
  measure: (_ground, pace) =>
    withCluster({ replicas: 1, pace }, async (cluster) => {
      await caughtUp(cluster);
      await pause(SETTLED);
      return [row('a cluster of one replica of each service with nothing to do', 'measured', await atRest(pidsOf(cluster), pace.seconds), true)];
    }),
};

const projector: Scenario = {
  name: 'cluster-projector',
  organizations: 'none',
  measure: async (ground, pace) => {
    const log = await seededLog(ground, 'projected', pace.bulkOrganizations);
    const bulk = await withEngine(mongodb, ({ address }) => fillViews(log, address));
    return [bulkRow('projector into the MongoDB-protocol server, in bulk', 10_000, bulk)];
  },
};

const forwarder: Scenario = {
  name: 'cluster-forwarder',
  organizations: 'none',
  measure: async (ground, pace) => {
    const log = await seededLog(ground, 'forwarded', pace.bulkOrganizations);
    const bulk = await withEngine(kafka, ({ address }) => forward(log, address.split(',')));
    return [bulkRow('forwarder into Kafka', 15_000, bulk)];
  },
};

const takeOver: Scenario = {
  name: 'cluster-takeover',
  organizations: 'none',
  measure: (_ground, pace) =>
    withCluster({ replicas: 2, pace }, async (cluster) => [await takenOver(cluster, 'identity'), await takenOver(cluster, 'notifications')]),
};

/** What needs more than one process; the engines are processes of this machine, or containers where Docker is at hand. */
export const CLUSTER_SCENARIOS: readonly Scenario[] = [transport, get, check, create, idle, projector, forwarder, takeOver, memory];

async function takenOver(cluster: Cluster, app: App): Promise<Row> {
  const results = await takeOvers(cluster, app, TAKE_OVERS);
  const worst = (of: 'list' | 'feed' | 'webhook'): number => Math.max(...results.map((result) => result[of]));
  const [list, feed, webhook] = [worst('list'), worst('feed'), worst('webhook')];
  return row(
    `take-over after \`kill -9\` of the ${app} that works, until an organization created after it is told of; worst of ${results.length}`,
    '≤ 10 s',
    `in the list ${seconds(list)}, in the feed ${seconds(feed)}, by webhook ${seconds(webhook)}`,
    Math.max(list, feed, webhook) <= TAKEN_OVER_WITHIN,
  );
}

async function answersFromMemory(url: string): Promise<void> {
  for (const deadline = performance.now() + 30_000; ; await pause(50)) {
    const answer = await fetch(url + ONE, { headers: { authorization: `Bearer ${KEY}` } });
    const text = await answer.text();
    if (answer.status === 200) return;
    if (performance.now() > deadline) throw new Error(`${ONE} answered ${answer.status}: ${text}`);
  }
}

async function seededLog(ground: Ground, name: string, organizations: number): Promise<string> {
  const directory = join(ground.directory, name);
  await seed(directory, organizations);
  return directory;
}

function bulkRow(what: string, target: number, { events, milliseconds, ownMilliseconds }: Bulk): Row {
  const perSecond = (events / milliseconds) * 1_000;
  const own = `${((ownMilliseconds / events) * 1_000).toFixed(0)} µs of processor each beside the engine's`;
  return row(what, `≥ ${count(target)} events/s`, `${rate(perSecond)} (${count(events)} events, ${seconds(milliseconds)}, ${own})`, perSecond >= target);
}

/** What the processes of the product spend that carry a request out. */
function ownMicroseconds({ perRequest }: ClusterResult): number {
  return [...perRequest].reduce((sum, [name, each]) => (/^(gateway|identity)/.test(name) ? sum + each : sum), 0);
}
