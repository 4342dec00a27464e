import { setTimeout as pause } from 'node:timers/promises';
import gossipService from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import { credentials, Metadata } from '@grpc/grpc-js';
import type { EngineProcess } from '#libs/testing/src/engines/engine-process';
import { startMembers } from '#libs/testing/src/engines/eventstore';
import type { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';

const ASK_MS = 2_000;
/** Longer than any election. */
const LEADER_MS = 60_000;
const { LEADER } = gossip.MemberInfo.VNodeState;

/** Members of one EventStoreDB, of which one leads. */
export class Members {
  private failure: Error | null = null;

  constructor(private readonly processes: readonly EngineProcess[]) {
    for (const each of processes) each.onUnexpectedEnd(() => void each.restart().catch((error: Error) => (this.failure ??= error)));
  }

  /** So many that know each other, ready. One whose last records reached no other ends by itself, to cut them off: it is started again. */
  static async start(directory: WatchedDirectory, count: number): Promise<Members> {
    return new Members(await startMembers(directory, count));
  }

  get count(): number {
    return this.processes.length;
  }

  /** What clients are told. */
  get url(): string {
    return `esdb://${this.processes.map(hostOf).join(',')}?tls=false`;
  }

  /** The one that leads, by the word of most that answer. @throws Error when there is none for a minute, or a member could not be started again */
  async leader(): Promise<EngineProcess> {
    for (const deadline = Date.now() + LEADER_MS; Date.now() < deadline; await pause(200)) {
      if (this.failure !== null) throw this.failure;
      const named = (await Promise.all(this.processes.map((each) => leaderBy(hostOf(each))))).filter((host) => host !== null);
      const leader = this.processes.find((each) => named.filter((host) => host === hostOf(each)).length > this.count / 2);
      if (leader !== undefined) return leader;
    }
    throw new Error('No member of the cluster has led for a minute.');
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((each) => each.close()));
  }
}

function hostOf({ address }: EngineProcess): string {
  return new URL(address).host;
}

/** The `host:port` of the leader that a member (`host:port`) knows; null where it knows none, or does not answer. */
export function leaderBy(host: string): Promise<string | null> {
  const client = new gossipService.GossipClient(host, credentials.createInsecure());
  return new Promise((resolve) => {
    client.read(new shared.Empty(), new Metadata(), { deadline: Date.now() + ASK_MS }, (error, answer) => {
      client.close();
      const members = error === null ? answer.getMembersList() : [];
      const place = members.find((member) => member.getIsAlive() && member.getState() === LEADER)?.getHttpEndPoint();
      resolve(place === undefined ? null : `${place.getAddress()}:${place.getPort()}`);
    });
  });
}
