import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ServerCredentials } from '@grpc/grpc-js';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb/lmdb.event-store';
import { environmentVariables } from '#libs/platform/src/config/environment';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Members } from './members.ts';
import { serverOf } from './server.ts';
import { Streams, type ServerVersion } from './streams.ts';

/**
 * A server for tests that speaks as much of EventStoreDB's protocol as our adapter does: `main.js DIRECTORY PORT [options]`. It can be killed and started again
 * on its directory, as the log below it can. Calls that the adapter does not make are refused as not implemented.
 *
 *     --version 22.10           whose ways it has where versions differ; 24.10 where nothing is said
 *     --not-ready MILLISECONDS  after its start it refuses calls for so long
 *     --system-events           it writes events of its own, as the real one does
 *     --leader HOST:PORT        it is a follower, and sends whoever needs the leader there
 *     --tls CERT,KEY            files in PEM; without them in clear
 *
 * `USERS` in its environment names those who are let in, where there are any, and `READERS` those of them who append to no stream: lists of NAME:PASSWORD in JSON.
 * As arguments, everybody on the machine could read them.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    version: { type: 'string', default: '24.10' },
    'not-ready': { type: 'string', default: '0' },
    'system-events': { type: 'boolean' },
    leader: { type: 'string' },
    tls: { type: 'string' },
  },
});
const [directory, port] = positionals;
/** How often the real server writes about itself in a stream of its own. */
const SYSTEM_EVENTS_MS = 200;

const storage = await LmdbStorage.open({
  directory: directory!,
  minFree: 0,
  onFatal: (sentence) => {
    console.error(sentence);
    process.exit(1);
  },
});
// What it takes at once is its own business: it counts what clients send, which is more here.
const log = new LmdbEventStore(storage, Infinity);
if (values['system-events']) setInterval(() => void writeSystemEvent(), SYSTEM_EVENTS_MS).unref();

const readyAt = Date.now() + Number(values['not-ready']);
const members = new Members({ self: `127.0.0.1:${port}`, leader: values.leader, users: listIn('USERS'), readers: listIn('READERS'), readyAt });
const server = serverOf(members, new Streams(log, members, values.version as ServerVersion));
await new Promise<void>((resolve, reject) => server.bindAsync(`127.0.0.1:${port}`, credentials(), (error) => (error === null ? resolve() : reject(error))));
console.log(`Listens on 127.0.0.1:${port}.`);

process.on('SIGTERM', () => {
  server.forceShutdown();
  void storage.close().then(() => process.exit(0));
});

function listIn(name: string): readonly string[] {
  return JSON.parse(environmentVariables()[name] ?? '[]') as readonly string[];
}

function credentials(): ServerCredentials {
  if (values.tls === undefined) return ServerCredentials.createInsecure();
  const [cert, key] = values.tls.split(',').map((file) => readFileSync(file));
  return ServerCredentials.createSsl(null, [{ cert_chain: cert!, private_key: key! }]);
}

async function writeSystemEvent(): Promise<void> {
  const stream = '$stats-127.0.0.1';
  const version = (await log.last(stream))?.version ?? 0;
  const id = newUlid(Date.now());
  const meta = { environment: '', actor: { id: '', source: 'system' as const, name: null }, requestId: '', commandId: '', at: Date.now() };
  const data = { data: '{}', metadata: '{}', contentType: 'application/json' };
  await log.append(stream, version, [{ id, type: '$statsCollected', shape: 1, data, subject: null, public: [], meta }]);
}
