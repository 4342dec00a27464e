import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MongoClient, MongoServerError } from 'mongodb';
import type { EngineDefinition } from './engine-definition.ts';
import type { EngineGuard, EngineUser } from './engine.ts';
import type { EngineProcess } from './engine-process.ts';
import { startJavaEngine } from './java-engine.ts';
import type { WatchedDirectory } from './watched-directory.ts';

const SET = 'gatehouse';
const ALREADY_INITIALIZED = 23;

/** As a process it is a server that speaks MongoDB's protocol and stores in a file. A kill may lose its last second: stop it, or pause it. In a container it is a replica set of three. */
export const mongodb: EngineDefinition = {
  name: 'mongodb',
  title: 'MongoDB',
  process: 'A server with the protocol of MongoDB',
  setting: 'MONGODB_URL',
  addressAt: (port) => `mongodb://127.0.0.1:${port}`,
  answers,
  startProcess,
  image: 'mongo:8.0',
  imageVariables: () => ({}),
  imageMembers: { count: 3, command: commandOfSet, join: joinSet },
};

const SERVER = { main: 'MongodbServer', isOurs: true, flags: ['-Xmx320m'] };

function startProcess(directory: WatchedDirectory): Promise<EngineProcess> {
  return startJavaEngine(mongodb, { ...SERVER, args: (port) => ['data', String(port)] }, directory);
}

interface MongodbGuard extends EngineGuard {
  readonly users: readonly (EngineUser & {
    /** What it may do, by collection; null: everything. */
    readonly rights: Readonly<Record<string, readonly string[]>> | null;
  })[];
  /** The only one in which they may do anything. */
  readonly database: string;
  /** The database where the users are. */
  readonly authSource: string;
  /** Whose primary it says it is; null: of none. */
  readonly replicaSet: string | null;
}

/** As a process, at `localhost`. @throws EngineMissing */
export function startGuardedMongodb(directory: WatchedDirectory, { port, tls, users, database, authSource, replicaSet }: MongodbGuard): Promise<EngineProcess> {
  const properties = {
    host: 'localhost',
    database,
    authSource,
    ...(replicaSet !== null && { replicaSet }),
    ...(tls !== null && { certificate: tls.cert, key: tls.key }),
    ...Object.fromEntries(users.map(({ name, password }) => [`user.${name}`, password])),
    ...Object.fromEntries(users.flatMap(({ name, rights }) => (rights === null ? [] : [[`rights.${name}`, rightsText(rights)]]))),
  };
  const { name, password } = users[0]!;
  const options = new URLSearchParams({ authSource, ...(tls !== null && { tls: 'true', tlsCAFile: tls.ca }), directConnection: 'true' });
  return startJavaEngine(
    mongodb,
    {
      ...SERVER,
      port,
      args: () => ['data', String(port), 'server.properties'],
      prepare: async (folder) =>
        writeFileSync(
          join(folder, 'server.properties'),
          Object.entries(properties)
            .map(([property, value]) => `${property}=${value}\n`)
            .join(''),
          { mode: 0o600 },
        ),
      isReady: () => answers(`mongodb://${name}:${password}@localhost:${port}/?${options.toString()}`),
    },
    directory,
  );
}

/** They end when the container is stopped, and only then. */
function commandOfSet(ports: readonly number[]): string[] {
  const start = 'mkdir -p /data/db/$port; mongod --replSet ' + SET + ' --bind_ip_all --port $port --dbpath /data/db/$port --wiredTigerCacheSizeGB 0.25 &';
  return ['bash', '-c', `trap 'kill $(jobs -p); wait' TERM; for port in ${ports.join(' ')}; do ${start} done; wait`];
}

/** The first of them is primary as long as it can be: whoever connects to it alone may write. */
async function joinSet(ports: readonly number[]): Promise<void> {
  const client = new MongoClient(`mongodb://127.0.0.1:${ports[0]}/?directConnection=true`, { serverSelectionTimeoutMS: 500 });
  const members = ports.map((port, index) => ({ _id: index, host: `127.0.0.1:${port}`, priority: index === 0 ? 2 : 1 }));
  try {
    await client.db('admin').command({ replSetInitiate: { _id: SET, members } });
  } catch (error) {
    if (!(error instanceof MongoServerError) || error.code !== ALREADY_INITIALIZED) throw error;
  } finally {
    await client.close();
  }
}

function rightsText(rights: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(rights)
    .map(([collection, actions]) => `${collection}:${actions.join('+')}`)
    .join();
}

async function answers(address: string): Promise<boolean> {
  const client = new MongoClient(address, { serverSelectionTimeoutMS: 500, connectTimeoutMS: 1000, socketTimeoutMS: 2000 });
  try {
    await client.db('admin').command({ ping: 1 });
    return true;
  } catch {
    return false;
  } finally {
    await client.close();
  }
}
