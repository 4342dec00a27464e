import { Metadata, status, type handleUnaryCall } from '@grpc/grpc-js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import { randomUUID } from 'node:crypto';
import type { EventStore } from '#libs/event-sourcing/src/log/event-store';
import type { Access } from './access.ts';

/** How a call is refused, as gRPC tells it. */
export interface CallRefusal {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

const told = (code: status, details: string, exception?: string): CallRefusal => {
  const metadata = new Metadata();
  if (exception !== undefined) metadata.set('exception', exception);
  return { code, details, metadata };
};

/** What the real server, and the way to it, say instead of an answer: by the source of 24.10 and of gRPC. */
export const REFUSALS = {
  notReady: told(status.UNAVAILABLE, 'Server Is Not Ready'),
  tooBusy: told(status.UNAVAILABLE, 'Server Is Too Busy'),
  noLeader: told(status.UNKNOWN, 'No leader info available in response'),
  timedOut: told(status.ABORTED, 'Operation timed out: Read timed out'),
  tooSlow: told(status.ABORTED, 'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.'),
  brokenStream: told(status.INTERNAL, 'Received RST_STREAM with code 2 (Internal server error)'),
  handlerThrew: told(status.UNKNOWN, 'Exception was thrown by handler.'),
  noSuchPosition: told(status.INVALID_ARGUMENT, 'Invalid position.'),
  denied: told(status.PERMISSION_DENIED, 'Access Denied', 'access-denied'),
  deniedByProxy: told(status.PERMISSION_DENIED, 'Received HTTP status code 403'),
  unknownUser: told(status.UNAUTHENTICATED, 'Bad HTTP status code 401'),
} as const;

interface MembersOptions {
  /** `host:port` of this server. */
  readonly self: string;
  /** `host:port` of the leader that this server is said to follow. */
  readonly leader?: string;
  /** `name:password` of each; with neither of both, everybody is let in. */
  readonly users?: readonly string[];
  /** Those who may append to no stream. */
  readonly readers?: readonly string[];
  /** Who is let in by name and group, and may do what by the lists in the log; not beside the two above. */
  readonly access?: Access;
  /** Until then it is not ready, in milliseconds since the epoch. */
  readonly readyAt?: number;
}

/** Whom this server answers, and whom it sends elsewhere. */
export class Members {
  /** What the next calls are refused with, one after the other. */
  readonly refusals: CallRefusal[] = [];

  constructor(private readonly options: MembersOptions) {}

  /** What a cluster says of its members; the real one keeps it up to date among them. */
  readonly read: handleUnaryCall<InstanceType<typeof shared.Empty>, InstanceType<typeof gossip.ClusterInfo>> = (_call, answer) => {
    const { self, leader } = this.options;
    const { LEADER, FOLLOWER } = gossip.MemberInfo.VNodeState;
    const members = leader === undefined ? [member(self, LEADER)] : [member(self, FOLLOWER), member(leader, LEADER)];
    answer(null, new gossip.ClusterInfo().setMembersList(members));
  };

  /** Whether who calls may do that to a stream; `$all` is the whole log. */
  async allows(called: Metadata, action: '$r' | '$w', stream: string, log: EventStore): Promise<boolean> {
    const { access } = this.options;
    return access === undefined || (await access.allows(access.caller(called) ?? [], action, stream, log));
  }

  refusal(called: Metadata, asks: 'read' | 'append'): CallRefusal | null {
    const { leader, users = [], readers = [], access, readyAt = 0 } = this.options;
    if (access?.caller(called) === null) return REFUSALS.unknownUser;
    if (Date.now() < readyAt) return REFUSALS.notReady;
    const isCalledBy = (user: string): boolean => called.get('authorization')[0] === `Basic ${Buffer.from(user).toString('base64')}`;
    if (users.length + readers.length > 0 && ![...users, ...readers].some(isCalledBy)) return REFUSALS.unknownUser;
    if (asks === 'append' && readers.some(isCalledBy)) return REFUSALS.denied;
    const refused = this.refusals.shift();
    if (refused !== undefined) return refused;
    if (leader === undefined || called.get('requires-leader')[0] !== 'true') return null;
    const [host, port] = leader.split(':');
    const metadata = new Metadata();
    metadata.set('exception', 'not-leader');
    metadata.set('leader-endpoint-host', host!);
    metadata.set('leader-endpoint-port', port!);
    return { code: status.NOT_FOUND, details: 'Leader info available', metadata };
  }
}

function member(address: string, state: 6 | 8): InstanceType<typeof gossip.MemberInfo> {
  const [host, port] = address.split(':');
  return new gossip.MemberInfo()
    .setInstanceId(new shared.UUID().setString(randomUUID()))
    .setTimeStamp('0')
    .setState(state)
    .setIsAlive(true)
    .setHttpEndPoint(new gossip.EndPoint().setAddress(host!).setPort(Number(port)));
}
