import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import { AUDIT_TRAIL_VIEW } from '#libs/contracts/src/audit-logs/audit-trail-view';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { toFolded } from '#libs/event-sourcing/src/deciding/records';
import type { View } from '#libs/event-sourcing/src/views/view';
import { auditRetentionDecider, keptSince, type AuditRetention, type AuditRetentionEvent } from '../domain/audit-retention.decider.ts';
import { leafOf, TERM_LENGTH, type AuditTrailEvent } from '../domain/audit-trail.decider.ts';

/** An event of a trail. Without names, and with its content sealed as it is in the log: there are millions of them. */
export type AuditEventRow = readonly [
  organization: string,
  leaf: number,
  occurredAt: number,
  receivedAt: number,
  digest: string,
  terms: string,
  sealed: string,
];

/** An organization, under its own id: one that has ended stays, since what is left of its trail is to go, and nobody is to see it meanwhile. */
export type TrailRow = readonly [organization: string, state: 'living' | 'ended', kept: AuditRetention];

export type AuditTrailRow = AuditEventRow | TrailRow;

/** How ids of events begin; their rows go by what follows. */
export const AUDIT_EVENT_PREFIX = 'audit_event_';

export const [LIVING, ENDED] = ['living', 'ended'] as const;
/** No events are kept for longer. */
const LONGEST = 365 * 86_400_000;
const TIME_DIGITS = 9;
const LEAF_DIGITS = 9;

type OrganizationFact = FactOf<OrganizationEvent, 'organization.created' | 'organization.deleted'>;

/** Audit events, in the order in which things happened. */
export const auditTrailView: View<AuditTrailRow, AuditTrailEvent | OrganizationFact | AuditRetentionEvent> = {
  ...AUDIT_TRAIL_VIEW,
  noun: 'Audit event',
  handles: ['audit_event.recorded', 'organization.created', 'organization.deleted', 'audit_retention.set'],
  indexes: [
    { name: 'organization', keys: (row) => (isEvent(row) ? [row[0]] : []) },
    { name: 'term', keys: (row) => (isEvent(row) ? termsOf(row[5]).map((term) => termKey(row[0], term)) : []) },
    { name: 'digest', keys: (row) => (isEvent(row) ? [row[4]] : []) },
    { name: 'state', keys: (row) => (isEvent(row) ? [] : [row[1]]) },
  ],
  sortKey: (row) => (isEvent(row) ? `${timeKey(row[2])}${row[1].toString(36).padStart(LEAF_DIGITS, '0')}` : ''),
  // Nobody counts on rows of an organization that was deleted, or of events whose time has passed: a job takes them, when it comes to them.
  retention: {
    shortened: (text) => text,
    mayBeGone: (text, now) => isGone(JSON.parse(text) as AuditTrailRow, now - LONGEST),
    owner: {
      idOf: (text) => (JSON.parse(text) as AuditTrailRow)[0],
      isOver: (ownerText, text, now) => {
        const [, state, kept] = JSON.parse(ownerText) as TrailRow;
        return state === ENDED || isGone(JSON.parse(text) as AuditTrailRow, keptSince(kept, now));
      },
    },
  },
  idsOf: ({ type, data, stream }) => [type === 'audit_event.recorded' ? rowIdOf(data.id) : streamKeyOf(stream)],
  evolve: (row, event, id) => {
    const owner = row as TrailRow | null;
    switch (event.type) {
      case 'audit_event.recorded': {
        const { occurred_at, digest, terms, sealed } = event.data;
        return [streamKeyOf(event.stream), leafOf(event), occurred_at, event.meta.at, digest, terms, sealed];
      }
      case 'organization.created':
        return [id, LIVING, auditRetentionDecider.initial];
      case 'organization.deleted':
        return [id, ENDED, owner?.[2] ?? auditRetentionDecider.initial];
      case 'audit_retention.set':
        return [id, owner?.[1] ?? LIVING, auditRetentionDecider.evolve(owner?.[2] ?? auditRetentionDecider.initial, toFolded<AuditRetentionEvent>(event))];
    }
  },
};

export function rowIdOf(eventId: string): string {
  return eventId.slice(AUDIT_EVENT_PREFIX.length);
}

export function isEvent(row: AuditTrailRow): row is AuditEventRow {
  return row.length > 3;
}

/** Of the index `term`. */
export function termKey(organization: string, term: string): string {
  return `${organization} ${term}`;
}

/** Where the events of a time (milliseconds since the epoch) begin. */
export function timeKey(time: number): string {
  return Math.max(0, time).toString(36).padStart(TIME_DIGITS, '0');
}

/** Where they end. */
export function timeKeyAtEnd(time: number): string {
  return `${timeKey(time)}~`;
}

function isGone(row: AuditTrailRow, since: number): boolean {
  return isEvent(row) && row[3] < since;
}

function termsOf(terms: string): readonly string[] {
  return Array.from({ length: terms.length / TERM_LENGTH }, (_, index) => terms.slice(index * TERM_LENGTH, (index + 1) * TERM_LENGTH));
}
