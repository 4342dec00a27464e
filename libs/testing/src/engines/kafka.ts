import { randomBytes } from 'node:crypto';
import { execFile } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Kafka, logLevel } from 'kafkajs';
import type { EngineDefinition } from './engine.ts';
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

function startProcess(directory: WatchedDirectory): Promise<EngineProcess> {
  // The quick compiler alone: it is started more often than it runs for long.
  const flags = ['-Xmx320m', '-XX:TieredStopAtLevel=1'];
  return startJavaEngine(kafka, { main: 'kafka.Kafka', flags, args: () => ['server.properties'], prepare }, directory);
}

async function prepare(folder: string, port: number, libraries: JavaLibraries): Promise<void> {
  const data = join(folder, 'data');
  const properties = propertiesOf({ port, host: '127.0.0.1', controller: `127.0.0.1:${await freePort()}`, data });
  writeFileSync(
    join(folder, 'server.properties'),
    Object.entries(properties)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  // Formatting is a Java program too, and what it writes knows nothing of ports and paths.
  const formatted = await libraries.once('kafka-formatted', async (path) => {
    const words = ['format', '-t', randomBytes(16).toString('base64url'), '-c', 'server.properties'];
    const [program, ...args] = libraries.command({ main: 'kafka.tools.StorageTool', args: words });
    await promisify(execFile)(program!, args, { cwd: folder });
    cpSync(data, path, { recursive: true });
    rmSync(data, { recursive: true });
  });
  cpSync(formatted, data, { recursive: true });
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

/** Its port is open before it knows itself as a member of the cluster. */
async function answers(address: string): Promise<boolean> {
  const admin = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING, connectionTimeout: 1000, requestTimeout: 2000, retry: { retries: 0 } }).admin();
  try {
    await admin.connect();
    return (await admin.describeCluster()).brokers.length > 0;
  } catch {
    return false;
  } finally {
    await admin.disconnect();
  }
}
