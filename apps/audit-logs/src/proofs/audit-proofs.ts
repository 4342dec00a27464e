import { Injectable } from '@nestjs/common';
import type {
  AuditLogCheckpoint,
  AuditLogConsistency,
  AuditLogInclusion,
  AuditLogKey,
  AuditLogKeySet,
} from '#libs/contracts/src/audit-log-proofs/audit-log-proofs';
import {
  GetAuditLogCheckpoint,
  GetAuditLogKeys,
  ProveAuditLogConsistency,
  ProveAuditLogInclusion,
  RotateAuditLogKeys,
} from '#libs/contracts/src/audit-log-proofs/operations';
import { Handles } from '#libs/contracts/src/handles';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { invalidField, notFound } from '#libs/platform/src/domain-error';
import { isIdOf } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf } from '#libs/read-models/src/read-models';
import { AuditKeys } from '../checkpoints/audit-keys.ts';
import { Checkpoints } from '../checkpoints/checkpoints.ts';
import type { StoredAuditKey } from '../domain/audit-keys.decider.ts';
import { AUDIT_TRAIL } from '../domain/audit-trail.decider.ts';
import { Retention } from '../readers/retention.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { TrailTurns } from '../readers/trail-turns.ts';
import { TrailKeys, type TrailOwner } from '../sealing/trail-keys.ts';
import { consistencySpans, inclusionSpans } from '../tree/proofs.ts';
import { leafDataOfRecord } from '../tree/trail-tree.ts';
import { TrailTrees, type TrailTree } from '../tree/trail-trees.ts';
import { isEvent, rowIdOf } from '../views/audit-trail.view.ts';

/** What proves that a trail was not altered. */
@Injectable()
export class AuditProofs {
  constructor(
    private readonly checkpoints: Checkpoints,
    private readonly signing: AuditKeys,
    private readonly trees: TrailTrees,
    private readonly reader: TrailReader,
    private readonly turns: TrailTurns,
    private readonly keys: TrailKeys,
    private readonly retention: Retention,
    private readonly events: EventStore,
  ) {}

  @Handles(GetAuditLogCheckpoint)
  async checkpoint({ organization_id, context }: GetAuditLogCheckpoint): Promise<AuditLogCheckpoint> {
    const owner = await this.owner(context, organization_id);
    const latest = await this.checkpoints.latest(owner);
    if (latest === null) throw notFound('Checkpoint', organization_id);
    const trail = await this.checkpoints.standing(await this.trees.tree(owner), latest);
    const { size, root, note, time } = latest;
    return { object: 'audit_log_checkpoint', organization_id, size, root_hash: root, checkpoint: note, trail, created_at: time };
  }

  @Handles(ProveAuditLogInclusion)
  async inclusion({ organization_id, event_id, size: asked, context }: ProveAuditLogInclusion): Promise<AuditLogInclusion> {
    const owner = await this.owner(context, organization_id);
    const { leaf_index, received_at } = await this.eventOf(owner, event_id, context);
    const tree = await this.trees.tree(owner);
    const size = await this.sizeOf(owner, tree, { field: 'size', asked });
    if (size <= leaf_index)
      throw invalidField('out_of_range', 'size', `size must be over ${leaf_index}: the event arrived as number ${leaf_index}, counted from 0.`);
    const [record] = await this.events.readBackwards(streamName(AUDIT_TRAIL, owner.environment, owner.organization), 1, leaf_index + 1);
    const key = await this.keys.find(owner);
    if (record === undefined || key === null) throw notFound('Audit event', event_id);
    return {
      ...{ object: 'audit_log_inclusion', organization_id, event_id, leaf_index, size },
      leaf_data: leafDataOfRecord(record),
      salt: key.at(received_at).saltOf(event_id).toString('hex'),
      hashes: await tree.hashes(inclusionSpans(leaf_index, size)),
    };
  }

  @Handles(ProveAuditLogConsistency)
  async consistency({ organization_id, from, to: asked, context }: ProveAuditLogConsistency): Promise<AuditLogConsistency> {
    const owner = await this.owner(context, organization_id);
    const tree = await this.trees.tree(owner);
    const to = await this.sizeOf(owner, tree, { field: 'to', asked });
    if (from > to) throw invalidField('out_of_range', 'from', `from must be at most ${to}.`);
    return { object: 'audit_log_consistency', organization_id, from, to, hashes: await tree.hashes(consistencySpans(from, to)) };
  }

  @Handles(GetAuditLogKeys)
  async publicKeys({ context: { environment } }: GetAuditLogKeys): Promise<AuditLogKeySet> {
    return { object: 'list', data: shown(await this.signing.keys(environment)) };
  }

  @Handles(RotateAuditLogKeys)
  async rotate({ context }: RotateAuditLogKeys): Promise<AuditLogKey> {
    return shown([await this.signing.rotate(context)])[0]!;
  }

  /** @throws DomainError `entity_not_found` */
  private async owner(context: RequestContext, organization: string): Promise<TrailOwner> {
    await this.turns.look(context, organization);
    await this.reader.requireOwner(context, organization);
    return { environment: context.environment, organization };
  }

  private async eventOf(owner: TrailOwner, id: string, context: RequestContext): Promise<{ readonly leaf_index: number; readonly received_at: number }> {
    const stored = isIdOf('audit_event', id) ? await this.reader.rows.find(context, rowIdOf(id)) : null;
    const row = stored === null ? null : contentOf(stored);
    if (row === null || !isEvent(row) || row[0] !== owner.organization) throw notFound('Audit event', id);
    if (row[3] < (await this.retention.retainedSince(owner, context.deadline))) throw notFound('Audit event', id);
    return { leaf_index: row[1], received_at: row[3] };
  }

  /** What was asked for, or that of the latest checkpoint. */
  private async sizeOf(owner: TrailOwner, tree: TrailTree, { field, asked }: { readonly field: string; readonly asked: number | undefined }): Promise<number> {
    const size = asked ?? (await this.checkpoints.latest(owner))?.size;
    if (size === undefined) throw notFound('Checkpoint', owner.organization);
    if (size > tree.size)
      throw invalidField('out_of_range', field, `The trail has ${tree.size} events, and not ${size}: if a checkpoint says ${size}, the trail has lost some.`);
    return size;
  }
}

function shown(keys: readonly StoredAuditKey[]): readonly AuditLogKey[] {
  return keys.map(({ public_key, signs_from }, at) => ({
    ...{ object: 'audit_log_key', algorithm: 'Ed25519', public_key, signs_from },
    signs_until: keys[at + 1]?.signs_from ?? null,
  }));
}
