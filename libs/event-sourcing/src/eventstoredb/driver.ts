import { EventStoreDBClient } from '@eventstore/db-client';
import streamsService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { CallOptions, Metadata } from '@grpc/grpc-js';

// All that is taken of the driver and that it promises nobody: the messages of its protocol, and what its client keeps for its own calls.

export { default as shared } from '@eventstore/db-client/generated/shared_pb.js';
export { default as streams } from '@eventstore/db-client/generated/streams_pb.js';

export const StreamsClient = streamsService.StreamsClient;
export type StreamsClient = InstanceType<typeof StreamsClient>;

/**
 * What the driver's client keeps for the driver's own calls: discovery of the leader, TLS and credentials. Those calls are not used. They know no deadline, and
 * a stream that breaks under load ends the process: its batch append rejects promises that nobody holds, and shares one table of answers among all clients.
 */
export interface Driver {
  getGRPCClient(service: typeof StreamsClient, name: string): Promise<StreamsClient>;
  callArguments(options: { readonly requiresLeader: boolean; readonly deadline?: number }, call?: CallOptions): [Metadata, CallOptions];
  /** Goes over to the leader that the error names. */
  handleError(client: StreamsClient, error: Error): Promise<void>;
}

/** @throws Error where the driver does not take the connection string */
export function driverFor(url: string): Driver {
  return EventStoreDBClient.connectionString(url) as unknown as Driver;
}
