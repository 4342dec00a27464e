import { targetRule } from '#libs/messaging/src/webhooks/target-rule.provider';
import { feature } from '#libs/runtime/src/feature';
import { auditStreamDecider } from '../domain/audit-stream.decider.ts';
import { auditStreamsView } from '../views/audit-streams.view.ts';
import { ForgetEndedStreams } from './ended-streams.reaction.ts';
import { LogStreams } from './log-streams.ts';
import { StreamBatches } from './stream-batches.ts';
import { StreamDelivery } from './stream-delivery.ts';
import { StreamDirectory } from './stream-directory.ts';
import { StreamProgress } from '../readers/stream-progress.ts';
import { StreamWork } from './stream-work.ts';

export const streams = feature({
  deciders: [auditStreamDecider],
  views: [auditStreamsView],
  providers: [LogStreams, StreamBatches, StreamProgress, StreamDelivery, StreamWork, targetRule],
  reactions: [ForgetEndedStreams],
  backgroundComponents: [StreamDirectory],
});
