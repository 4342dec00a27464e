import { join } from 'node:path';
import { EventStoreDBClient } from '@eventstore/db-client';
import { StartRefused } from '#libs/platform/src/start-refused';
import { ROOT } from '../process.ts';
import type { EngineDefinition } from './engine-definition.ts';
import type { EngineGuard, EngineUser } from './engine.ts';
import { EngineProcess } from './engine-process.ts';
import { CLUSTER_COMMAND, eventstoreCommand, isForClusters, type ServerTls, startByCommand } from './eventstore-command.ts';
import { freePort } from './free-port.ts';
import type { WatchedDirectory } from './watched-directory.ts';

/** The program of the small server. */
export const SMALL_SERVER = join(ROOT, 'dist/libs/testing/src/engines/eventstore-server/main.js');

/** As a process it is a small server of ours that speaks EventStoreDB's protocol, unless `EVENTSTORE_COMMAND` names its own server, which is in no registry of packages. */
export const eventstore: EngineDefinition = {
  name: 'eventstore',
  title: 'EventStoreDB',
  get process() {
    return eventstoreCommand() === null ? 'A small server for tests with the protocol of EventStoreDB' : 'EventStoreDB, by EVENTSTORE_COMMAND,';
  },
  setting: 'EVENTSTORE_URL',
  addressAt: (port) => `esdb://127.0.0.1:${port}?tls=false`,
  answers,
  startProcess: (directory) => startEventstore(directory),
  isNamed: () => eventstoreCommand() !== null,
  image: 'eventstore/eventstore:24.10',
  imageVariables: (port) => ({ EVENTSTORE_INSECURE: 'true', EVENTSTORE_CLUSTER_SIZE: '1', EVENTSTORE_NODE_PORT: String(port) }),
};

interface ServerOptions {
  /** Options of the program. */
  readonly flags?: readonly string[];
  /** Who is let in, as `NAME:PASSWORD`; everybody where nobody is named. */
  readonly users?: readonly string[];
  /** Those who append to no stream. */
  readonly readers?: readonly string[];
  /** What clients say beside host and port: the connection string of the one on this port. */
  readonly addressAt?: (port: number) => string;
  /** A free one where none is given. */
  readonly port?: number;
}

interface EventstoreOptions {
  /** It shows this certificate, to who asks for `localhost`, and lets in nobody but the user. */
  readonly secured?: ServerTls & { readonly user: { readonly name: string; readonly password: string }; readonly addressAt: (port: number) => string };
  /** It writes events of its own, as the real one does in any case. */
  readonly systemEvents?: true;
  /** A free one where none is given. */
  readonly port?: number;
}

/** The real server where `EVENTSTORE_COMMAND` names it, else the small one, wherever Docker is. */
export async function startEventstore(directory: WatchedDirectory, { secured, systemEvents, port: given }: EventstoreOptions = {}): Promise<EngineProcess> {
  const addressAt = secured?.addressAt ?? eventstore.addressAt;
  const command = eventstoreCommand();
  if (command !== null) {
    const port = given ?? (await freePort());
    const address = addressAt(port);
    const security = secured && { tls: secured, user: secured.user };
    return startByCommand(command, directory, { name: eventstore.name, port, address, isReady: () => answers(address), ...security });
  }
  return startEventstoreServer(directory, {
    addressAt,
    port: given,
    flags: [...(secured ? ['--tls', `${secured.certificate},${secured.key}`] : []), ...(systemEvents ? ['--system-events'] : [])],
    users: secured && [`${secured.user.name}:${secured.user.password}`],
  });
}

/** So many members of one cluster, by `EVENTSTORE_COMMAND`; one alone may be the small server. @throws StartRefused where no cluster can be started */
export async function startMembers(directory: WatchedDirectory, count: number): Promise<readonly EngineProcess[]> {
  const command = eventstoreCommand();
  if (count === 1 && command === null) return [await startEventstoreServer(directory)];
  if (command === null || (count > 1 && !isForClusters(command))) throw new StartRefused(`A cluster of EventStoreDB needs ${CLUSTER_COMMAND}.`);
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  const members = ports.map((port) => `127.0.0.1:${port}`);
  return Promise.all(
    ports.map((port, index) => {
      const address = eventstore.addressAt(port);
      return startByCommand(command, directory, { name: `${eventstore.name}-${index + 1}`, port, address, members, isReady: () => answers(address) });
    }),
  );
}

/** The small server, for what the real one cannot be made to do. */
export async function startEventstoreServer(
  directory: WatchedDirectory,
  { flags = [], users = [], readers = [], addressAt = eventstore.addressAt, port: given }: ServerOptions = {},
): Promise<EngineProcess> {
  const port = given ?? (await freePort());
  const address = addressAt(port);
  return EngineProcess.open(directory, {
    name: eventstore.name,
    address,
    command: [process.execPath, SMALL_SERVER, 'data', String(port), ...flags],
    variables: { USERS: JSON.stringify(users), READERS: JSON.stringify(readers) },
    isReady: () => answers(address),
  });
}

interface EventstoreGuard extends EngineGuard {
  readonly users: readonly (EngineUser & { readonly isReader: boolean })[];
}

/** At `localhost`. Of a server with users, it is the small one: somebody would have to make those of the real one. */
export function startGuardedEventstore(directory: WatchedDirectory, { port, tls, users }: EventstoreGuard): Promise<EngineProcess> {
  if (users.length === 0 && tls === null) return startEventstore(directory, { port });
  const those = (areReaders: boolean): string[] => users.flatMap(({ name, password, isReader }) => (isReader === areReaders ? `${name}:${password}` : []));
  const credentials = users.length === 0 ? '' : `${users[0]!.name}:${users[0]!.password}@`;
  return startEventstoreServer(directory, {
    port,
    flags: tls === null ? [] : ['--tls', `${tls.cert},${tls.key}`],
    users: those(false),
    readers: those(true),
    addressAt: () => `esdb://${credentials}localhost:${port}?${tls === null ? 'tls=false' : `tls=true&tlsCAFile=${encodeURIComponent(tls.ca)}`}`,
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
