import { Server, type handleUnaryCall } from '@grpc/grpc-js';
import gossipService from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import features from '@eventstore/db-client/generated/serverfeatures_pb.js';
import featuresService from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import type shared from '@eventstore/db-client/generated/shared_pb.js';
import streamsService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { Members } from './members.ts';
import type { Streams } from './streams.ts';

type Supported = handleUnaryCall<InstanceType<typeof shared.Empty>, InstanceType<typeof features.SupportedMethods>>;

const MAX_MESSAGE = 16 * 1024 * 1024;

/** All that the adapter calls. */
export function serverOf(members: Members, { read, batchAppend, delete: remove, tombstone }: Streams): Server {
  const server = new Server({ 'grpc.max_receive_message_length': MAX_MESSAGE });
  server.addService(featuresService.ServerFeaturesService, { getSupportedMethods: supported });
  server.addService(gossipService.GossipService, { read: members.read });
  server.addService(streamsService.StreamsService, { read, batchAppend, delete: remove, tombstone });
  return server;
}

const supported: Supported = (_call, answer) => {
  const methods = ['read', 'batchappend'].map((name) =>
    new features.SupportedMethod()
      .setMethodName(name)
      .setServiceName('event_store.client.streams.streams')
      .setFeaturesList(name === 'read' ? ['position'] : []),
  );
  answer(null, new features.SupportedMethods().setEventStoreServerVersion('24.10.0').setMethodsList(methods));
};
