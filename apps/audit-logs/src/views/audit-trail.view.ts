import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import { AUDIT_TRAIL_VIEW } from '#libs/contracts/src/audit-logs/audit-trail-view';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import type { View } from '#libs/event-sourcing/src/views/view';
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
export type TrailRow = readonly [organization: string, state: 'living' | 'ended'];

export type AuditTrailRow = AuditEventRow | TrailRow;

/** How ids of events begin; their rows go by what follows. */
export const AUDIT_EVENT_PREFIX = 'audit_event_';

export const ENDED = 'ended';
const TIME_DIGITS = 9;
const LEAF_DIGITS = 9;

type OrganizationFact = FactOf<OrganizationEvent, 'organization.created' | 'organization.deleted'>;

/** Audit events, in the order in which things happened. */
export const auditTrailView: View<AuditTrailRow, AuditTrailEvent | OrganizationFact> = {
  ...AUDIT_TRAIL_VIEW,
  noun: 'Audit event',
  handles: ['audit_event.recorded', 'organization.created', 'organization.deleted'],
  indexes: [
    { name: 'organization', keys: (row) => (isEvent(row) ? [row[0]] : []) },
    { name: 'term', keys: (row) => (isEvent(row) ? termsOf(row[5]).map((term) => termKey(row[0], term)) : []) },
    { name: 'digest', keys: (row) => (isEvent(row) ? [row[4]] : []) },
    { name: 'state', keys: (row) => (isEvent(row) || row[1] === 'living' ? [] : [ENDED]) },
  ],
  sortKey: (row) => (isEvent(row) ? `${timeKey(row[2])}${row[1].toString(36).padStart(LEAF_DIGITS, '0')}` : ''),
  // Nobody counts on rows of an organization that was deleted: a job takes them, when it comes to them.
  retention: {
    shortened: (text) => text,
    mayBeGone: () => false,
    owner: { idOf: (text) => (JSON.parse(text) as AuditTrailRow)[0], isOver: (text) => (JSON.parse(text) as TrailRow)[1] === ENDED },
  },
  idsOf: ({ type, data, stream }) => [type === 'audit_event.recorded' ? rowIdOf(data.id) : streamKeyOf(stream)],
  evolve: (_row, event, id) => {
    switch (event.type) {
      case 'audit_event.recorded': {
        const { occurred_at, digest, terms, sealed } = event.data;
        return [streamKeyOf(event.stream), leafOf(event), occurred_at, event.meta.at, digest, terms, sealed];
      }
      case 'organization.created':
        return [id, 'living'];
      case 'organization.deleted':
        return [id, ENDED];
    }
  },
};

export function rowIdOf(eventId: string): string {
  return eventId.slice(AUDIT_EVENT_PREFIX.length);
}

export function isEvent(row: AuditTrailRow): row is AuditEventRow {
  return row.length > 2;
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

function termsOf(terms: string): readonly string[] {
  return Array.from({ length: terms.length / TERM_LENGTH }, (_, index) => terms.slice(index * TERM_LENGTH, (index + 1) * TERM_LENGTH));
}
