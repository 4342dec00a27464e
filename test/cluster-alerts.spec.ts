import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { statfs } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster } from '#libs/testing/src/cluster/cluster';
import { givenKafka } from '#libs/testing/src/engines/given';
import { alertRules, Prometheus } from '#libs/testing/src/engines/prometheus';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { givenProgram } from '#libs/testing/src/given-program';
import { SuiteProcess } from '#libs/testing/src/process';

const program = givenProgram('prometheus');
const described = program === null || (await givenKafka()) === null ? describe.skip : describe;
/** What an engine needs to come back, and a rule to fall silent, on a machine that is busy with everything at once. */
const RECOVERED = 60_000;
/** Rates and latencies look back this far, instead of five minutes. */
const SOON = { '[5m]': '[15s]' };

/** One process of each app with a Prometheus beside it; each fault, and the rule that is there to tell of it. */
described('the alert rules, over a cluster that is hurt', () => {
  const directory = WatchedDirectory.create('cluster-alerts');
  let cluster: Cluster;
  let prometheus: Prometheus;
  let headers: Readonly<Record<string, string>>;

  beforeAll(async () => {
    cluster = await Cluster.start({ replicas: 1, variables: { DNS_SERVERS: '127.0.0.1:1' } });
    headers = { Authorization: `Bearer ${cluster.key}`, 'Content-Type': 'application/json' };
    prometheus = await Prometheus.start(
      program!,
      directory,
      cluster.processes.map(({ operationsUrl }) => operationsUrl),
    );
  }, 180_000);

  afterAll(async () => {
    await prometheus.close();
    await cluster.stop();
    directory.remove();
  }, 60_000);

  const ask = (method: 'GET' | 'POST', path: string, body?: object): Promise<number> =>
    fetch(cluster.gateways[0]!.url + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }).then(
      async (response) => (await response.arrayBuffer(), response.status),
    );
  const create = (): Promise<number> => ask('POST', '/organizations', { name: 'Watched' });

  /** Customers go on asking while it lasts. */
  async function asking<Result>(while_: () => Promise<Result>, ask: () => Promise<number> = create): Promise<Result> {
    const done = new AbortController();
    const customers = Array.from({ length: 8 }, async () => {
      while (!done.signal.aborted) {
        await ask().catch(() => {});
        await pause(20);
      }
    });
    try {
      return await while_();
    } finally {
      done.abort();
      await Promise.all(customers);
    }
  }

  async function silent(alert: string, instead: Readonly<Record<string, string>> = {}): Promise<void> {
    for (const deadline = Date.now() + RECOVERED; ; await pause(500)) {
      const samples = await prometheus.speaks(alert, instead);
      if (samples.length === 0) return;
      if (Date.now() > deadline) throw new Error(`${alert} does not fall silent: ${JSON.stringify(samples)}`);
    }
  }

  /** Hurts, waits until the rule speaks, mends, and waits until it is silent. */
  const told = async (
    alert: string,
    instead: Readonly<Record<string, string>>,
    fault: { readonly hurt: () => Promise<void>; readonly mend: () => Promise<void> },
  ) => {
    await silent(alert, instead);
    await fault.hurt();
    try {
      await prometheus.eventuallySpeaks(alert, { instead, timeoutMs: RECOVERED });
    } finally {
      await fault.mend();
    }
    await silent(alert, instead);
  };

  it(
    'are silent while nothing is wrong',
    async () => {
      // Its parts have only just found each other.
      while ((await create()) !== 201) await pause(100);
      await pause(3_000);
      for (const { alert } of alertRules()) await silent(alert);
    },
    RECOVERED * 2,
  );

  it(
    'tell that announcements wait, while Kafka is down',
    () =>
      told(
        'GatehouseForwarderBehind',
        { '> 300': '> 5' },
        {
          hurt: async () => {
            await cluster.engines.kafka.stop();
            expect(await create()).toBe(201);
          },
          mend: () => cluster.engines.kafka.restart(),
        },
      ),
    RECOVERED * 3,
  );

  it(
    'tell that work has no holder, and that requests fail, while a service is down',
    () =>
      asking(async () => {
        const [identity] = cluster.of('identity');
        await told(
          'GatehouseLeaseWithoutHolder',
          {},
          {
            hurt: () => identity!.kill(),
            mend: async () => {
              await prometheus!.eventuallySpeaks('GatehouseRequestsFail', { instead: SOON, timeoutMs: RECOVERED });
              await identity!.restart();
            },
          },
        );
        await silent('GatehouseRequestsFail', SOON);
      }),
    RECOVERED * 4,
  );

  it(
    'tell that a gateway hears nothing, while the event store hangs',
    () =>
      told(
        'GatehouseLogSilent',
        { '> 30': '> 5' },
        {
          hurt: () => cluster.engines.eventstore.pause(),
          mend: () => cluster.engines.eventstore.resume(),
        },
      ),
    RECOVERED * 3,
  );

  it(
    'tell that appends are slow, while the event store stumbles',
    async () => {
      const stumbling = new AbortController();
      let stumble: Promise<void> = Promise.resolve();
      await told('GatehouseAppendsSlow', SOON, {
        hurt: async () => {
          stumble = asking(async () => {
            while (!stumbling.signal.aborted) {
              await cluster.engines.eventstore.pause();
              await pause(1_000);
              await cluster.engines.eventstore.resume();
              await pause(200);
            }
          });
        },
        // Nothing is asked any more either: on a busy machine appends may be slow by themselves.
        mend: async () => {
          stumbling.abort();
          await stumble;
        },
      });
    },
    RECOVERED * 3,
  );

  it(
    'tell that views wait, while MongoDB hangs',
    () =>
      told(
        'GatehouseViewsBehind',
        { '> 300': '> 3' },
        {
          // Some of them have recorded their events when it stops, and not yet written their rows.
          hurt: () =>
            asking(async () =>
              pause(1_000)
                .then(() => cluster.engines.mongodb.pause())
                .then(() => pause(500)),
            ),
          mend: () => cluster.engines.mongodb.resume(),
        },
      ),
    RECOVERED * 3,
  );

  it(
    'tell that webhooks wait, while they are many and their receiver hangs',
    async () => {
      const receiver = await hangingReceiver();
      try {
        await told(
          'GatehouseWebhooksBehind',
          { '> 3600': '> 5' },
          {
            hurt: async () => {
              const endpoint_url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
              expect(await ask('POST', '/webhook_endpoints', { endpoint_url, events: ['organization.created'] })).toBe(201);
              await Promise.all(Array.from({ length: 100 }, create));
            },
            mend: async () => {
              receiver.removeAllListeners('request').on('request', (request, response) => {
                request.resume();
                response.end();
              });
              receiver.closeAllConnections();
            },
          },
        );
      } finally {
        receiver.closeAllConnections();
        receiver.close();
      }
    },
    RECOVERED * 3,
  );

  it(
    'tell that the disk of a process that stores by itself is nearly full',
    async () => {
      const { bavail, bsize } = await statfs(directory.path);
      const suite = await SuiteProcess.start({ DATA_DIR: `${directory.path}/suite`, DATA_MIN_FREE: `${Math.floor((bavail * bsize * 0.7) / 2 ** 20)}MiB` });
      try {
        prometheus.lookAt([suite.url]);
        await prometheus.eventuallySpeaks('GatehouseDiskNearlyFull');
      } finally {
        await suite.stop();
      }
    },
    RECOVERED,
  );
});

/** Takes every request and answers none. */
async function hangingReceiver(): Promise<Server> {
  const server = createServer();
  server.on('request', (request) => request.resume());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
