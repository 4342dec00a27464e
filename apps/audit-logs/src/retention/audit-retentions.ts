import { Injectable } from '@nestjs/common';
import type { AuditLogConfiguration, AuditLogsRetention } from '#libs/contracts/src/audit-log-retention/audit-log-retention';
import { GetAuditLogConfiguration, GetAuditLogsRetention, SetAuditLogsRetention } from '#libs/contracts/src/audit-log-retention/operations';
import type { ShownAuditLogStream } from '#libs/contracts/src/audit-log-streams/audit-log-stream';
import { Handles } from '#libs/contracts/src/handles';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { notFound } from '#libs/platform/src/domain-error';
import { isIdOf } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { auditRetentionDecider, setRetention, type AuditRetention } from '../domain/audit-retention.decider.ts';
import { auditStreamDecider } from '../domain/audit-stream.decider.ts';
import { AUDIT_TRAIL } from '../domain/audit-trail.decider.ts';
import { lastSyncedAt, stateOf, StreamProgress } from '../readers/stream-progress.ts';
import { TrailReader } from '../readers/trail-reader.ts';

/** For how long organizations have their events kept. */
@Injectable()
export class AuditRetentions {
  constructor(
    private readonly repository: Repository,
    private readonly reader: TrailReader,
    private readonly streams: StreamProgress,
    private readonly events: EventStore,
  ) {}

  @Handles(GetAuditLogsRetention)
  async get({ id, context }: GetAuditLogsRetention): Promise<AuditLogsRetention> {
    return shown(await this.stateOf(id, context));
  }

  @Handles(SetAuditLogsRetention)
  async set({ id, retention_period_in_days, context }: SetAuditLogsRetention): Promise<AuditLogsRetention> {
    await this.requireOrganization(id, context);
    return shown((await this.repository.transact(auditRetentionDecider, context, id, setRetention(retention_period_in_days))).state);
  }

  @Handles(GetAuditLogConfiguration)
  async configuration({ id, context }: GetAuditLogConfiguration): Promise<AuditLogConfiguration> {
    const retention = shown(await this.stateOf(id, context));
    const last = await this.events.last(streamName(AUDIT_TRAIL, context.environment, id));
    const log_stream = await this.streamOf(id, context);
    return { organization_id: id, ...retention, state: last === null ? 'inactive' : 'active', ...(log_stream && { log_stream }) };
  }

  private async streamOf(id: string, { environment }: RequestContext): Promise<ShownAuditLogStream | null> {
    const stream = await this.repository.load(auditStreamDecider, environment, id);
    if (stream?.object !== 'audit_log_stream') return null;
    const progress = await this.streams.read(environment, stream);
    const { type, created_at } = stream;
    return { id: stream.id, type, state: stateOf(stream, progress), last_synced_at: lastSyncedAt(progress), created_at };
  }

  private async stateOf(id: string, context: RequestContext): Promise<AuditRetention> {
    await this.requireOrganization(id, context);
    return this.repository.load(auditRetentionDecider, context.environment, id);
  }

  /** An environment has a trail, and is no organization. @throws DomainError `entity_not_found` */
  private async requireOrganization(id: string, context: RequestContext): Promise<void> {
    if (!isIdOf('org', id)) throw notFound('Organization', id);
    await this.reader.requireOwner(context, id);
  }
}

function shown({ retention_period_in_days }: AuditRetention): AuditLogsRetention {
  return { retention_period_in_days };
}
