import { randomBytes } from 'node:crypto';
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Kafka, logLevel, type KafkaConfig, type SASLOptions } from 'kafkajs';
import type { EngineDefinition } from './engine-definition.ts';
import type { EngineGuard } from './engine.ts';
import type { EngineProcess } from './engine-process.ts';
import { freePort } from './free-port.ts';
import { startJavaEngine } from './java-engine.ts';
import type { JavaLibraries } from './java.ts';
import type { WatchedDirectory } from './watched-directory.ts';

/** A broker that is its own controller. */
export const kafka: EngineDefinition = {
  name: 'kafka',
  title: 'Kafka',
  process: 'Kafka',
  setting: 'KAFKA_BROKERS',
  addressAt: (port) => `127.0.0.1:${port}`,
  answers,
  startProcess,
  image: 'apache/kafka:4.1.0',
  imageVariables: (port) =>
    Object.fromEntries(
      Object.entries(propertiesOf({ port, host: '0.0.0.0', controller: '127.0.0.1:9093', data: '/tmp/kafka-logs' })).map(([name, value]) => [
        `KAFKA_${name.toUpperCase().replaceAll('.', '_')}`,
        String(value),
      ]),
    ),
};

const SERVER = {
  main: 'kafka.Kafka',
  // The quick compiler alone: it is started more often than it runs for long.
  flags: ['-Xmx320m', '-XX:TieredStopAtLevel=1'],
  args: () => ['server.properties'],
};

function startProcess(directory: WatchedDirectory): Promise<EngineProcess> {
  return startJavaEngine(kafka, { ...SERVER, prepare }, directory);
}

/** Users know each other by one of these. */
export type KafkaMechanism = 'plain' | 'scram-sha-256' | 'scram-sha-512';

/** As a process, at `localhost`, for one user. @throws EngineMissing */
export function startGuardedKafka(directory: WatchedDirectory, guard: EngineGuard & { readonly mechanism: KafkaMechanism }): Promise<EngineProcess> {
  const { port, tls, users, mechanism } = guard;
  const { name: username, password } = users[0]!;
  const client: KafkaConfig = {
    brokers: [`localhost:${port}`],
    ssl: tls === null ? false : { ca: readFileSync(tls.ca, 'utf8') },
    sasl: { mechanism, username, password } as SASLOptions,
  };
  return startJavaEngine(
    kafka,
    { ...SERVER, port, isReady: () => isReady(client), prepare: (folder, _port, libraries) => prepareGuarded(folder, guard, libraries) },
    directory,
  );
}

async function prepare(folder: string, port: number, libraries: JavaLibraries): Promise<void> {
  const data = join(folder, 'data');
  writeProperties(folder, propertiesOf({ port, host: '127.0.0.1', controller: `127.0.0.1:${await freePort()}`, data }));
  // Formatting is a Java program too, and what it writes knows nothing of ports and paths.
  const formatted = await libraries.once('kafka-formatted', async (path) => {
    await format(folder, libraries);
    cpSync(data, path, { recursive: true });
    rmSync(data, { recursive: true });
  });
  cpSync(formatted, data, { recursive: true });
}

async function prepareGuarded(
  folder: string,
  { port, tls, users, mechanism }: EngineGuard & { readonly mechanism: KafkaMechanism },
  libraries: JavaLibraries,
): Promise<void> {
  const [controller, local] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  const { name, password } = users[0]!;
  const ofClients = `listener.name.client.${mechanism}.sasl.jaas.config`;
  const modules = 'org.apache.kafka.common.security';
  if (tls !== null) writeFileSync(join(folder, 'server.pem'), readFileSync(tls.key, 'utf8') + readFileSync(tls.cert, 'utf8'), { mode: 0o600 });
  writeProperties(folder, {
    ...propertiesOf({ port, host: '127.0.0.1', controller, data: join(folder, 'data') }),
    listeners: `CLIENT://127.0.0.1:${port},CONTROLLER://${controller},LOCAL://${local}`,
    'advertised.listeners': `CLIENT://localhost:${port},LOCAL://${local}`,
    'listener.security.protocol.map': `CLIENT:${tls === null ? 'SASL_PLAINTEXT' : 'SASL_SSL'},CONTROLLER:PLAINTEXT,LOCAL:PLAINTEXT`,
    // With itself it speaks as before.
    'inter.broker.listener.name': 'LOCAL',
    'listener.name.client.sasl.enabled.mechanisms': mechanism.toUpperCase(),
    [ofClients]:
      mechanism === 'plain' ? `${modules}.plain.PlainLoginModule required user_${name}="${password}";` : `${modules}.scram.ScramLoginModule required;`,
    ...(tls !== null && { 'listener.name.client.ssl.keystore.type': 'PEM', 'listener.name.client.ssl.keystore.location': join(folder, 'server.pem') }),
  });
  await format(folder, libraries, ...(mechanism === 'plain' ? [] : ['--add-scram', `${mechanism.toUpperCase()}=[name=${name},password=${password}]`]));
}

function writeProperties(folder: string, properties: ReturnType<typeof propertiesOf>): void {
  const lines = Object.entries(properties).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(folder, 'server.properties'), lines.join(''), { mode: 0o600 });
}

async function format(folder: string, libraries: JavaLibraries, ...more: readonly string[]): Promise<void> {
  // In one word: an id may begin with a dash.
  const words = ['format', `--cluster-id=${randomBytes(16).toString('base64url')}`, '--config=server.properties', ...more];
  const [program, ...args] = libraries.command({ main: 'kafka.tools.StorageTool', args: words });
  await promisify(execFile)(program!, args, { cwd: folder });
}

interface Addresses {
  readonly port: number;
  /** Where it listens; others reach it on loopback. */
  readonly host: string;
  readonly controller: string;
  readonly data: string;
}

function propertiesOf({ port, host, controller, data }: Addresses): Readonly<Record<string, string | number | boolean>> {
  return {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@${controller}`,
    'controller.listener.names': 'CONTROLLER',
    listeners: `PLAINTEXT://${host}:${port},CONTROLLER://${controller}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': data,
    // Topics are created by those who know their partitions and their retention.
    'auto.create.topics.enable': false,
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 4,
    'group.initial.rebalance.delay.ms': 0,
    'group.min.session.timeout.ms': 1000,
    // Killed and started again, it has to wait until it has forgotten itself.
    'broker.session.timeout.ms': 3000,
    'broker.heartbeat.interval.ms': 500,
    // The defaults are for servers with hundreds of megabytes to spare.
    'log.cleaner.dedupe.buffer.size': 4 * 1024 * 1024,
    'log.index.size.max.bytes': 1024 * 1024,
  };
}

function answers(address: string): Promise<boolean> {
  return isReady({ brokers: [address] });
}

/** Its port is open before it knows itself as a member of the cluster. */
async function isReady(client: KafkaConfig): Promise<boolean> {
  const admin = new Kafka({ ...client, logLevel: logLevel.NOTHING, connectionTimeout: 1000, requestTimeout: 2000, retry: { retries: 0 } }).admin();
  try {
    await admin.connect();
    return (await admin.describeCluster()).brokers.length > 0;
  } catch {
    return false;
  } finally {
    await admin.disconnect();
  }
}
