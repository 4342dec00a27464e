import { Server, ServerCredentials, type handleUnaryCall } from '@grpc/grpc-js';
import features from '@eventstore/db-client/generated/serverfeatures_pb.js';
import featuresService from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import type shared from '@eventstore/db-client/generated/shared_pb.js';
import streamsService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { LmdbEventStore } from '#libs/event-sourcing/src/lmdb.event-store';
import { newUlid } from '#libs/platform/src/ids';
import { LmdbStorage } from '#libs/platform/src/storage/lmdb-storage';
import { Streams } from './streams.ts';

/**
 * A server for tests that speaks as much of EventStoreDB's protocol as our adapter does: `main.js DIRECTORY PORT [--system-events]`. It can be killed and started
 * again on its directory, as the log below it can. Calls that the adapter does not make are refused as not implemented.
 */
const [directory, port, ...flags] = process.argv.slice(2);
/** How often the real server writes about itself in a stream of its own. */
const SYSTEM_EVENTS_MS = 200;
const MAX_MESSAGE = 16 * 1024 * 1024;

const storage = await LmdbStorage.open({
  directory: directory!,
  minFree: 0,
  onFatal: (sentence) => {
    console.error(sentence);
    process.exit(1);
  },
});
const log = new LmdbEventStore(storage);
if (flags.includes('--system-events')) setInterval(() => void writeSystemEvent(), SYSTEM_EVENTS_MS).unref();

const server = new Server({ 'grpc.max_receive_message_length': MAX_MESSAGE });
server.addService(featuresService.ServerFeaturesService as never, { getSupportedMethods: supported });
const { read, batchAppend } = new Streams(log);
server.addService(streamsService.StreamsService as never, { read, batchAppend });
await new Promise<void>((resolve, reject) =>
  server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error))),
);
console.log(`Listens on 127.0.0.1:${port}.`);

process.on('SIGTERM', () => {
  server.forceShutdown();
  void storage.close().then(() => process.exit(0));
});

function supported(
  _call: Parameters<handleUnaryCall<InstanceType<typeof shared.Empty>, InstanceType<typeof features.SupportedMethods>>>[0],
  answer: Parameters<handleUnaryCall<InstanceType<typeof shared.Empty>, InstanceType<typeof features.SupportedMethods>>>[1],
): void {
  const methods = ['read', 'batchappend'].map((name) =>
    new features.SupportedMethod()
      .setMethodName(name)
      .setServiceName('event_store.client.streams.streams')
      .setFeaturesList(name === 'read' ? ['position'] : []),
  );
  answer(null, new features.SupportedMethods().setEventStoreServerVersion('24.10.0').setMethodsList(methods));
}

async function writeSystemEvent(): Promise<void> {
  const stream = '$stats-127.0.0.1';
  const version = (await log.last(stream))?.version ?? 0;
  const id = newUlid(Date.now());
  const meta = { environment: '', actor: { id: '', source: 'system' as const, name: null }, requestId: '', commandId: '', at: Date.now() };
  const data = { data: '{}', metadata: '{}', contentType: 'application/json' };
  await log.append(stream, version, [{ id, type: '$statsCollected', shape: 1, data, subject: null, public: [], meta }]);
}
