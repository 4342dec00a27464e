import { Injectable } from '@nestjs/common';
import type { AuditLogStream, AuditLogStreamDeliveries, AuditLogStreamDelivery } from '#libs/contracts/src/audit-log-streams/audit-log-stream';
import {
  ConfigureAuditLogStream,
  DeleteAuditLogStream,
  GetAuditLogStream,
  ListAuditLogStreamDeliveries,
  PauseAuditLogStream,
  ResumeAuditLogStream,
} from '#libs/contracts/src/audit-log-streams/operations';
import { Handles } from '#libs/contracts/src/handles';
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { TargetRule } from '#libs/messaging/src/webhooks/target-address';
import { invalidField } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { monthOf } from '../domain/audit-month.decider.ts';
import {
  auditStreamDecider,
  configureStream,
  deleteStream,
  pauseStream,
  requireStream,
  resumeStream,
  type AuditStreamEvent,
  type AuditStreamState,
  type StoredStream,
} from '../domain/audit-stream.decider.ts';
import { Retention } from '../readers/retention.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { TrailKeys, type TrailKey, type TrailOwner } from '../sealing/trail-keys.ts';
import { RECEIVERS } from './receivers.ts';
import { StreamBatches } from './stream-batches.ts';
import { excerptBinding, secretPlace } from './stream-delivery.ts';
import { failureOf, lastSyncedAt, stateOf, StreamProgress, type StoredAttempt } from '../readers/stream-progress.ts';

/** Which fields go with which type of receiver alone. */
const ONLY_WITH = { secret: 'GenericHttps', token: 'Splunk', index: 'Splunk', source: 'Splunk', sourcetype: 'Splunk' } as const;

/** Where trails are sent to, as those who run an organization say and see it. */
@Injectable()
export class LogStreams {
  constructor(
    private readonly repository: Repository,
    private readonly reader: TrailReader,
    private readonly retention: Retention,
    private readonly batches: StreamBatches,
    private readonly progress: StreamProgress,
    private readonly keys: TrailKeys,
    private readonly vault: Vault,
    private readonly rule: TargetRule,
    private readonly deletions: Deletions,
  ) {}

  @Handles(ConfigureAuditLogStream)
  async configure(operation: ConfigureAuditLogStream): Promise<AuditLogStream> {
    const { context, id, type, index = null, source = null, sourcetype = null, from } = operation;
    const owner = await this.owner(context, id);
    refuseForeignFields(operation);
    const url = this.urlOf(operation);
    const secret = type === 'Splunk' ? operation.token : operation.secret;
    const sealed = secret === undefined ? null : await this.vault.seal(secret, secretPlace(owner));
    const after =
      from === 'beginning' ? await this.batches.beginning(owner, await this.retention.retainedSince(owner, context.deadline)) : await this.batches.end(owner);
    return this.transact(context, owner, configureStream({ organization_id: id, type, url, secret: sealed, index, source, sourcetype, after }));
  }

  @Handles(GetAuditLogStream)
  async get({ context, id }: GetAuditLogStream): Promise<AuditLogStream> {
    const owner = await this.owner(context, id);
    return this.shown(owner, await this.stream(owner));
  }

  @Handles(DeleteAuditLogStream)
  async delete({ context, id }: DeleteAuditLogStream): Promise<void> {
    await this.deletions.once({ context, what: 'Audit log stream', id }, async () => {
      await this.owner(context, id);
      return this.repository.transact(auditStreamDecider, context, id, deleteStream(id));
    });
  }

  @Handles(PauseAuditLogStream)
  async pause({ context, id }: PauseAuditLogStream): Promise<AuditLogStream> {
    return this.transact(context, await this.owner(context, id), pauseStream(id));
  }

  @Handles(ResumeAuditLogStream)
  async resume({ context, id }: ResumeAuditLogStream): Promise<AuditLogStream> {
    return this.transact(context, await this.owner(context, id), resumeStream(id));
  }

  @Handles(ListAuditLogStreamDeliveries)
  async deliveries({ context, id }: ListAuditLogStreamDeliveries): Promise<AuditLogStreamDeliveries> {
    const owner = await this.owner(context, id);
    const { attempts } = await this.progress.read(owner.environment, await this.stream(owner));
    const key = attempts.some(({ excerpt }) => excerpt !== null) ? await this.keys.find(owner) : null;
    return { object: 'list', data: attempts.map((attempt) => shownDelivery(owner, attempt, key)).reverse() };
  }

  private async transact(context: RequestContext, owner: TrailOwner, decision: Decision<AuditStreamState, AuditStreamEvent>): Promise<AuditLogStream> {
    const { organization } = owner;
    const { state } = await this.repository.transact(auditStreamDecider, context, organization, decision);
    return this.shown(owner, requireStream(state, organization));
  }

  /** @throws DomainError `entity_not_found` */
  private async owner({ environment, deadline }: RequestContext, organization: string): Promise<TrailOwner> {
    await this.reader.requireOwner({ environment, deadline }, organization);
    return { environment, organization };
  }

  private async stream({ environment, organization }: TrailOwner): Promise<StoredStream> {
    return requireStream(await this.repository.load(auditStreamDecider, environment, organization), organization);
  }

  /** As the URL standard writes it. @throws DomainError `invalid_request_parameters` */
  private urlOf({ type, url }: ConfigureAuditLogStream): string {
    const problem = this.rule.problemOf(url) ?? RECEIVERS[type].problemOf(new URL(url));
    if (problem !== null) throw invalidField('invalid_url', 'url', `url ${problem}.`);
    return new URL(url).href;
  }

  private async shown(owner: TrailOwner, stream: StoredStream): Promise<AuditLogStream> {
    const { id, organization_id, type, url, index, source, sourcetype, created_at, updated_at } = stream;
    const progress = await this.progress.read(owner.environment, stream);
    const { events } = await this.batches.end(owner);
    const failure = stream.is_paused ? null : failureOf(progress, stream);
    return {
      object: 'audit_log_stream',
      ...{ id, organization_id, type, state: stateOf(stream, progress), url, index, source, sourcetype },
      waiting_events: Math.max(0, events - progress.delivered.events),
      skipped_events: progress.skipped,
      error: failure?.error ?? null,
      next_attempt_at: failure === null ? null : timeOf(failure.next_attempt_at),
      last_synced_at: lastSyncedAt(progress),
      created_at,
      updated_at,
    };
  }
}

/** @throws DomainError `invalid_request_parameters` */
function refuseForeignFields(operation: ConfigureAuditLogStream): void {
  for (const [field, type] of Object.entries(ONLY_WITH) as readonly (readonly [keyof typeof ONLY_WITH, string])[])
    if (operation[field] != null && operation.type !== type) throw invalidField('not_allowed', field, `${field} goes with ${type} alone.`);
}

function shownDelivery(owner: TrailOwner, attempt: StoredAttempt, key: TrailKey | null): AuditLogStreamDelivery {
  const { batch_id, at, latency, status, error, excerpt, events, checkpoints, first_leaf_index } = attempt;
  return {
    object: 'audit_log_stream_delivery',
    batch_id,
    status: error === null ? 'delivered' : 'failed',
    ...{ events, checkpoints, first_leaf_index },
    at: timeOf(at),
    status_code: status,
    latency_ms: latency,
    error,
    // With the key of its month goes what it says.
    response_excerpt: excerpt === null || key === null || monthOf(at) < key.firstMonth ? null : key.at(at).open(excerptBinding(owner, batch_id), excerpt),
  };
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
