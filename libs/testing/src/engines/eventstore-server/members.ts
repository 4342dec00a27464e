import { Metadata, status, type handleUnaryCall } from '@grpc/grpc-js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import { randomUUID } from 'node:crypto';

/** How a call is refused, as gRPC tells it. */
export interface CallRefusal {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

interface MembersOptions {
  /** `host:port` of this server. */
  readonly self: string;
  /** `host:port` of the leader that this server is said to follow. */
  readonly leader?: string;
  /** `name:password`, the only ones that are let in. */
  readonly user?: string;
}

/** Whom this server answers, and whom it sends elsewhere. */
export class Members {
  constructor(private readonly options: MembersOptions) {}

  /** What a cluster says of its members; the real one keeps it up to date among them. */
  readonly read: handleUnaryCall<InstanceType<typeof shared.Empty>, InstanceType<typeof gossip.ClusterInfo>> = (_call, answer) => {
    const { self, leader } = this.options;
    const { LEADER, FOLLOWER } = gossip.MemberInfo.VNodeState;
    const members = leader === undefined ? [member(self, LEADER)] : [member(self, FOLLOWER), member(leader, LEADER)];
    answer(null, new gossip.ClusterInfo().setMembersList(members));
  };

  refusal(called: Metadata): CallRefusal | null {
    const { leader, user } = this.options;
    if (user !== undefined && called.get('authorization')[0] !== `Basic ${Buffer.from(user).toString('base64')}`)
      return { code: status.UNAUTHENTICATED, details: 'Bad HTTP status code 401', metadata: new Metadata() };
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
