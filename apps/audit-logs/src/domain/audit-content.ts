import type { AuditLogContent, AuditLogTarget, AuditLogValues, NewAuditLogEvent } from '#libs/contracts/src/audit-logs/audit-log-event';
import { canonicalJson } from '#libs/platform/src/canonical-json';
import { invalidField } from '#libs/platform/src/domain-error';
import type { TermKind } from './audit-trail.decider.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
const OLDEST = 366 * DAY;
const AHEAD = 5 * MINUTE;

/**
 * What is recorded of an event: every field, in one spelling, so that equal events have equal content and an export can be told from an altered one. A text that a table cannot tell
 * from none is none. `now`: milliseconds since the epoch.
 * @throws DomainError `invalid_request_parameters` for a time out of range
 */
export function contentOf({ action, occurred_at, actor, targets, context, metadata = {}, version }: NewAuditLogEvent, now: number): AuditLogContent {
  const time = Date.parse(occurred_at);
  if (time < now - OLDEST || time > now + AHEAD)
    throw invalidField('out_of_range', 'event.occurred_at', 'event.occurred_at must be at most 366 days ago, and 5 minutes ahead.');
  return {
    action,
    actor: partyOf(actor),
    context: { location: context.location, user_agent: context.user_agent || null },
    metadata: inOrder(metadata),
    occurred_at: new Date(time).toISOString(),
    targets: targets.map(partyOf),
    version: version ?? null,
  };
}

/** As RFC 8785 has it: what the commitment is made of. */
export function canonicalText(content: AuditLogContent): string {
  return canonicalJson(content);
}

/** What an event is found by. */
export function termsIn({ action, actor, targets }: AuditLogContent): readonly (readonly [kind: TermKind, value: string])[] {
  return [
    ['action', action],
    ['actor_id', actor.id],
    ...(actor.name === null ? [] : [['actor_name', actor.name] as const]),
    ...[...new Set(targets.map(({ type }) => type))].map((type) => ['target_type', type] as const),
    ...[...new Set(targets.map(({ id }) => id))].map((id) => ['target_id', id] as const),
  ];
}

type Given = Pick<AuditLogTarget, 'id' | 'type'> & Partial<Pick<AuditLogTarget, 'name' | 'metadata'>>;

function partyOf({ id, type, name, metadata = {} }: Given): AuditLogTarget {
  return { id, metadata: inOrder(metadata), name: name || null, type };
}

/** What is in order is spelled faster. */
function inOrder(values: AuditLogValues): AuditLogValues {
  const names = Object.keys(values);
  if (names.every((name, index) => index === 0 || names[index - 1]! < name)) return values;
  return Object.fromEntries(names.sort().map((name) => [name, values[name]!]));
}
