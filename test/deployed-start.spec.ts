import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventStoreDBClient, jsonEvent, NO_STREAM } from '@eventstore/db-client';
import { Kafka, logLevel, type KafkaConfig } from 'kafkajs';
import { MongoClient } from 'mongodb';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { APPS, type ClusterProcess } from '#libs/testing/src/cluster/cluster-process';
import { SharedCluster } from '#libs/testing/src/cluster/shared-cluster';
import { imageOfDockerfile } from '#libs/testing/src/deployment/image';
import { messagesInKafka } from '#libs/testing/src/kafka-messages';
import { throughNamespaces } from '#libs/testing/src/namespaces';
import { ROOT } from '#libs/testing/src/process';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

/** The cluster of this run was started as the manifests of production say or, where specs may hurt it, as Compose does. */
const isCompose = environmentVariables()['SPECS'] === 'hurt';
const names = APPS.flatMap((app) => [`${app}-1`, `${app}-2`]);
const itContained = throughNamespaces('mount').length === 0 ? it.skip : it;

let cluster: SharedCluster;
let suite: GivenSuite;
beforeAll(async () => {
  suite = await givenSuite();
  cluster = await SharedCluster.get();
});

const processOf = (name: string): ClusterProcess => cluster.processes.find((each) => each.name === name)!;
const told = (name: string, file: string): string => readFileSync(`/proc/${processOf(name).pid}/${file}`, 'utf8');
const statusOf = (name: string, field: string): string => new RegExp(`^${field}:\\s+(.*)$`, 'm').exec(told(name, 'status'))![1]!;

/** A connection string that a process is told, with files where they lie on this machine. */
const urlOf = (name: string, setting: 'EVENTSTORE_URL' | 'MONGODB_URL'): string => {
  const url = processOf(name).planned.variables[setting]!;
  return cluster.tls === null ? url : url.replace('/etc/gatehouse/engines-ca.crt', cluster.tls.ca);
};

itContained('no process shows a secret among its arguments, where everybody on the machine reads it', () => {
  const given = names.flatMap((name) => Object.entries(processOf(name).planned.variables));
  const secrets = new Set([
    ...given.flatMap(([name, value]) => (/^(MASTER_KEYS|\w+_(PASSWORD|KEY))$/.test(name) ? value : [])),
    ...given.flatMap(([name, value]) => (name.endsWith('_URL') ? (/:([^:@/]+)@/.exec(value)?.[1] ?? []) : [])),
  ]);
  expect(secrets.size).toBeGreaterThanOrEqual(5);
  const shown = readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .flatMap((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      } catch {
        // It has ended.
        return [];
      }
    });
  expect(shown.filter((word) => [...secrets].some((secret) => word.includes(secret)))).toEqual([]);
});

describe.each(names)('the process %s', (name) => {
  itContained('is the program of the image, and is told what its container is told', () => {
    const { variables, app } = processOf(name).planned;
    const [, ...entrypoint] = imageOfDockerfile().entrypoint;
    expect(told(name, 'cmdline').split('\0').slice(1, -1)).toEqual([...entrypoint, app]);
    const environment = told(name, 'environ').split('\0').filter(Boolean);
    const { PATH: _of, ...rest } = Object.fromEntries(environment.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
    expect(rest).toEqual(variables);
    expect(rest['GATEHOUSE_MODE']).toBe('production');
  });

  itContained('has no right that an ordinary program lacks, and can write to nothing but /tmp', () => {
    const rights = ['CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((field) => statusOf(name, field));
    expect(rights).toEqual(Array(4).fill('0'.repeat(16)));
    expect([statusOf(name, 'NoNewPrivs'), statusOf(name, 'Uid').split('\t')[0]]).toEqual(['1', process.getuid!() === 0 ? '10001' : expect.anything()]);
    const mounts = told(name, 'mountinfo')
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([, , , , path, options]) => ({ path: path!, isWritable: options!.split(',').includes('rw') }));
    // The root itself, and what of the machine it sees there.
    expect(mounts.find(({ path }) => path === '/')).toMatchObject({ isWritable: false });
    expect(mounts.filter(({ path, isWritable }) => isWritable && !/^\/(dev|proc)(\/|$)/.test(path)).map(({ path }) => path)).toEqual(['/tmp']);
  });

  if (!isCompose)
    it('answers what Kubernetes and Prometheus ask, where the manifests say', async () => {
      const { asked } = processOf(name).planned;
      expect(Object.keys(asked).sort()).toEqual(['livenessProbe', 'metrics', 'readinessProbe', 'startupProbe']);
      for (const [who, url] of Object.entries(asked)) {
        const answer = await fetch(url);
        expect([who, answer.status]).toEqual([who, 200]);
        if (who === 'metrics') expect(await answer.text()).toContain('gatehouse_');
      }
    });

  if (isCompose)
    it('is healthy, as the health check of the image finds', async () => {
      const { OPERATIONS_PORT } = processOf(name).planned.variables;
      const check = spawn(process.execPath, [join(ROOT, 'docker/health.mjs')], { env: { OPERATIONS_PORT }, stdio: 'inherit' });
      expect(await once(check, 'exit')).toEqual([0, null]);
    });
});

if (!isCompose)
  it('what fills views before a rollout ends well', async () => {
    const { command, variables } = cluster.jobs['views-fill']!;
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-views-fill-'));
    try {
      const job = spawn(command[0]!, command.slice(1), { cwd: folder, env: { PATH: environmentVariables()['PATH'], ...variables } });
      let printed = '';
      for (const stream of [job.stdout, job.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
      const [code] = (await once(job, 'close')) as [number];
      expect({ code, printed }).toEqual({ code: 0, printed: expect.any(String) });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

describe('a cluster that was started so', () => {
  it('serves a request, shows it through every gateway, and announces it', async () => {
    const { id } = await suite.post('/organizations', { name: 'Acme' }).expect(201);
    for (const url of suite.urls) {
      const answer = await fetch(`${url}/organizations/${id}`, { headers: { Authorization: `Bearer ${suite.key}` } });
      expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ id, name: 'Acme' })]);
    }
    const { brokers, ...credentials } = cluster.kafkaClient();
    // The topic appears with its first event.
    const announced = () => messagesInKafka(brokers, (topic) => topic.endsWith('.identity'), credentials);
    await eventually(async () => {
      const values = (await announced()).map(({ value }) => value);
      expect(values.filter((value) => value.includes('"organization.created"') && value.includes(id))).toHaveLength(1);
    }, 20_000);
  }, 120_000);

  it('has a Kafka that lets in nobody without the password', async () => {
    const asked: Omit<KafkaConfig, 'brokers'> = { logLevel: logLevel.NOTHING, connectionTimeout: 5_000, retry: { retries: 0 } };
    const isLetIn = async (config: KafkaConfig): Promise<boolean> => {
      const admin = new Kafka({ ...asked, ...config }).admin();
      return admin.connect().then(
        () => admin.disconnect().then(() => true),
        () => false,
      );
    };
    expect(await isLetIn(cluster.kafkaClient())).toBe(true);
    expect(await isLetIn(cluster.kafkaClient('wrong'))).toBe(false);
    expect(await isLetIn({ ...cluster.kafkaClient(), ssl: isCompose })).toBe(false);
  });

  it('has a MongoDB that lets in nobody without a password, and the gateway to no view', async () => {
    const outcomeOf = async (url: string, collection: string, database = 'gatehouse'): Promise<unknown> => {
      const client = new MongoClient(url, { serverSelectionTimeoutMS: 2_000 });
      try {
        await client.db(database).collection(collection).findOne({});
        return null;
      } catch (error) {
        return (error as { readonly code?: unknown }).code;
      } finally {
        await client.close();
      }
    };
    const [service, gateway] = [urlOf('identity-1', 'MONGODB_URL'), urlOf('gateway-1', 'MONGODB_URL')];
    expect(service).not.toBe(gateway);
    expect(await outcomeOf(service, 'rows.any')).toBeNull();
    expect(await outcomeOf(gateway, 'leases')).toBeNull();
    const [UNAUTHORIZED, AUTHENTICATION_FAILED] = [13, 18];
    expect(await outcomeOf(gateway, 'rows.any')).toBe(UNAUTHORIZED);
    expect(await outcomeOf(service, 'rows.any', 'elsewhere')).toBe(UNAUTHORIZED);
    // It adds keys, and removes none.
    const client = new MongoClient(gateway);
    await expect(
      client
        .db('gatehouse')
        .collection('keys')
        .deleteOne({ _id: 'none' as never }),
    ).rejects.toMatchObject({ code: UNAUTHORIZED });
    await client.close();
    expect(await outcomeOf(service.replace(/:[^:@/]+@/, ':wrong@'), 'rows.any')).toBe(AUTHENTICATION_FAILED);
    expect(await outcomeOf(service.replace(/\/\/[^@]+@/, '//').replace(/authSource=\w+&?/, ''), 'rows.any')).toBe(UNAUTHORIZED);
  });

  if (!isCompose)
    it('has an EventStoreDB that lets in nobody without a password, and the gateway to append to nothing', async () => {
      const outcomeOf = async (url: string): Promise<string | null> => {
        const client = EventStoreDBClient.connectionString(url);
        try {
          await client.appendToStream(`foreign-${crypto.randomUUID()}`, jsonEvent({ type: 'foreign', data: {} }), {
            expectedRevision: NO_STREAM,
            deadline: 5_000,
          });
          return null;
        } catch (error) {
          return (error as Error).constructor.name;
        } finally {
          await client.dispose();
        }
      };
      const [service, gateway] = [urlOf('identity-1', 'EVENTSTORE_URL'), urlOf('gateway-1', 'EVENTSTORE_URL')];
      expect(service).not.toBe(gateway);
      expect(await outcomeOf(gateway)).toBe('AccessDeniedError');
      expect(await outcomeOf(service.replace(/:[^:@/]+@/, ':wrong@'))).not.toBeNull();
      expect(await outcomeOf(service.replace(/\/\/[^@]+@/, '//'))).not.toBeNull();
    });
});
