import { join } from 'node:path';
import { EventStoreDBClient } from '@eventstore/db-client';
import { ROOT } from '../process.ts';
import type { EngineDefinition } from './engine.ts';
import { EngineProcess } from './engine-process.ts';
import { freePort } from './free-port.ts';
import type { WatchedDirectory } from './watched-directory.ts';

const PROGRAM = join(ROOT, 'dist/libs/testing/src/engines/eventstore-server/main.js');

/** As a process it is a small server of ours that speaks EventStoreDB's protocol: its own server is in no registry of packages. */
export const eventstore: EngineDefinition = {
  name: 'eventstore',
  title: 'EventStoreDB',
  process: 'A small server for tests with the protocol of EventStoreDB',
  setting: 'EVENTSTORE_URL',
  addressAt: (port) => `esdb://127.0.0.1:${port}?tls=false`,
  answers,
  startProcess: startEventstoreServer,
  image: 'eventstore/eventstore:24.10',
  imageVariables: (port) => ({ EVENTSTORE_INSECURE: 'true', EVENTSTORE_CLUSTER_SIZE: '1', EVENTSTORE_NODE_PORT: String(port) }),
};

interface ServerOptions {
  /** Options of the program. */
  readonly flags?: readonly string[];
  /** What clients say beside host and port: the connection string of the one on this port. */
  readonly addressAt?: (port: number) => string;
}

/** The small server alone, wherever Docker is. */
export async function startEventstoreServer(
  directory: WatchedDirectory,
  { flags = [], addressAt = eventstore.addressAt }: ServerOptions = {},
): Promise<EngineProcess> {
  const port = await freePort();
  const address = addressAt(port);
  return EngineProcess.open(directory, {
    name: eventstore.name,
    address,
    command: [process.execPath, PROGRAM, 'data', String(port), ...flags],
    isReady: () => answers(address),
  });
}

async function answers(address: string): Promise<boolean> {
  const client = EventStoreDBClient.connectionString(address);
  try {
    await client.readAll({ direction: 'backwards', fromPosition: 'end', maxCount: 1, deadline: 2000 })[Symbol.asyncIterator]().next();
    return true;
  } catch {
    return false;
  } finally {
    await client.dispose();
  }
}
