import { Injectable } from '@nestjs/common';
import type { AuditLogEvent, AuditLogEventAccepted } from '#libs/contracts/src/audit-logs/audit-log-event';
import { CreateAuditLogEvent, GetAuditLogEvent, ListAuditLogEvents } from '#libs/contracts/src/audit-logs/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import { KeyMissing } from '#libs/event-sourcing/src/sealing/key-store';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, invalidField, notFound } from '#libs/platform/src/domain-error';
import { derivedId, isIdOf } from '#libs/platform/src/ids';
import { contentOf as rowContent, type PageRequest } from '#libs/read-models/src/read-models';
import { filteredPage } from '#libs/read-models/src/pages';
import { canonicalText, contentOf, termsIn } from '../domain/audit-content.ts';
import { monthOf } from '../domain/audit-month.decider.ts';
import type { TermKind } from '../domain/audit-trail.decider.ts';
import { ActionSchemas } from '../readers/action-schemas.ts';
import { Retention } from '../readers/retention.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { TrailTurns } from '../readers/trail-turns.ts';
import { TrailKeys, type TrailOwner } from '../sealing/trail-keys.ts';
import { AUDIT_EVENT_PREFIX, eventIdOf, isEvent, rowIdOf, timeKey, timeKeyAtEnd } from '../views/audit-trail.view.ts';
import { TrailWriter } from './trail-writer.ts';

const ID_PREFIX = AUDIT_EVENT_PREFIX.slice(0, -1);
const RECORDED = [{ type: 'audit_event.recorded' }] as const;
/** What another replica has received may be of a month that begins here in a moment. */
const CLOCKS_DIFFER = 60_000;

/** Audit events as applications record and read them. */
@Injectable()
export class AuditEvents {
  constructor(
    private readonly schemas: ActionSchemas,
    private readonly writer: TrailWriter,
    private readonly reader: TrailReader,
    private readonly keys: TrailKeys,
    private readonly retention: Retention,
    private readonly turns: TrailTurns,
    private readonly views: ReadYourWrites,
    private readonly clock: Clock,
  ) {}

  @Handles(CreateAuditLogEvent)
  async create({ organization_id, event, context }: CreateAuditLogEvent): Promise<AuditLogEventAccepted> {
    // What was done to the environment itself is told by the log alone.
    if (organization_id === context.environment) throw notFound('Organization', organization_id);
    await this.turns.event(context, organization_id);
    const content = contentOf(event, this.clock.now());
    await this.schemas.requireConforming(context, content);
    const position = await this.writer.add(
      { environment: context.environment, organization: organization_id },
      {
        context,
        id: derivedId(context.commandId, 0),
        occurredAt: Date.parse(content.occurred_at),
        content: canonicalText(content),
        terms: termsIn(content),
      },
    );
    await this.views.waitForViews(RECORDED, position);
    context.receipt.position = position;
    return { success: true };
  }

  @Handles(ListAuditLogEvents)
  async list(query: ListAuditLogEvents): Promise<Serialised<List<AuditLogEvent>>> {
    const { environment } = query.context;
    const owner = { environment, organization: organizationOf(query) };
    const bounds = boundsOf(query);
    const filter = filterOf(query);
    await this.turns.look(query.context, owner.organization);
    await this.reader.requireOwner(query.context, owner.organization);
    const since = await this.retention.retainedSince(owner, query.context.deadline);
    return filteredPage(this.reader.rows, query, {
      idPrefix: ID_PREFIX,
      where: filter === null ? { index: 'organization', values: [owner.organization] } : await this.termsOf(owner, filter, { since, query }),
      ...bounds,
      textsOf: (rows) => this.reader.textsOf(owner, rows, since),
      rowIdOf,
      idOf: ({ id }) => eventIdOf(id),
    });
  }

  @Handles(GetAuditLogEvent)
  async get({ id, context }: GetAuditLogEvent): Promise<Serialised<AuditLogEvent>> {
    const stored = isIdOf(ID_PREFIX, id) ? await this.reader.rows.find(context, rowIdOf(id)) : null;
    const row = stored === null ? null : rowContent(stored);
    if (stored === null || row === null || !isEvent(row)) throw notFound('Audit event', id);
    const owner = { environment: context.environment, organization: row[0] };
    // Nobody is told of what has gone with its organization.
    const text = await this.reader.requireOwner(context, row[0]).then(
      async () => (await this.reader.textsOf(owner, [stored], await this.retention.retainedSince(owner, context.deadline)))[0] ?? null,
      (error: unknown) => {
        if (error instanceof DomainError && error.kind === 'not-found') return null;
        throw error;
      },
    );
    if (text === null) throw notFound('Audit event', id);
    return new Serialised(text);
  }

  /** Under the key of each month in which an event of the range can have arrived. */
  private async termsOf(
    owner: TrailOwner,
    { kind, values }: Filter,
    { since, query: { range_start } }: { readonly since: number; readonly query: ListAuditLogEvents },
  ): Promise<NonNullable<PageRequest['where']>> {
    const key = await this.keys.find(owner).catch((error: unknown) => {
      if (error instanceof KeyMissing) return undefined;
      throw error;
    });
    // Before its first event a trail has no key; where there are events all the same, reading them says that it is missing.
    if (key === undefined) return { index: 'organization', values: [owner.organization] };
    if (key === null) throw notFound('Organization', owner.organization);
    const first = Math.max(key.firstMonth, ...[since, range_start === undefined ? 0 : Date.parse(range_start)].map((time) => monthOf(time - CLOCKS_DIFFER)));
    const last = Math.max(first, monthOf(this.clock.now() + CLOCKS_DIFFER));
    const months = Array.from({ length: last - first + 1 }, (_, index) => key.ofMonth(first + index));
    return { index: 'term', values: months.flatMap((month) => values.map((value) => month.termOf(kind, value))) };
  }
}

interface Filter {
  readonly kind: TermKind;
  readonly values: readonly string[];
}

/** @throws DomainError `invalid_request_parameters` */
function organizationOf({ organization_id, scope, context }: ListAuditLogEvents): string {
  if (scope === undefined && organization_id === undefined) throw invalidField('required', 'organization_id', 'organization_id is required, or scope.');
  if (scope !== undefined && organization_id !== undefined) throw invalidField('not_allowed', 'scope', 'scope=environment takes the place of organization_id.');
  return organization_id ?? context.environment;
}

/** @throws DomainError `invalid_request_parameters` */
function boundsOf({ range_start, range_end }: ListAuditLogEvents): Pick<PageRequest, 'from' | 'to'> {
  const [start, end] = [range_start, range_end].map((time) => (time === undefined ? null : Date.parse(time))) as [number | null, number | null];
  if (start !== null && end !== null && end < start) throw invalidField('out_of_range', 'range_end', 'range_end must not lie before range_start.');
  return { ...(start !== null && { from: timeKey(start) }), ...(end !== null && { to: timeKeyAtEnd(end) }) };
}

/** @throws DomainError `invalid_request_parameters` */
function filterOf({ actions, actor_ids, actor_names, target_types, target_ids }: ListAuditLogEvents): Filter | null {
  const filters = Object.entries({
    action: actions,
    actor_id: actor_ids,
    actor_name: actor_names,
    target_type: target_types,
    target_id: target_ids,
  } satisfies Record<TermKind, readonly string[] | undefined>).flatMap(([kind, values]) => (values === undefined ? [] : [{ kind: kind as TermKind, values }]));
  if (filters.length > 1) {
    const field = `${filters[1]!.kind}s`;
    throw invalidField('not_allowed', field, `${field} cannot be given beside ${filters[0]!.kind}s: a list takes one filter.`);
  }
  return filters[0] ?? null;
}
