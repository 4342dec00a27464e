import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import { AUDIT_TRAIL_VIEW } from '#libs/contracts/src/audit-logs/audit-trail-view';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { toFolded } from '#libs/event-sourcing/src/deciding/records';
import type { View } from '#libs/event-sourcing/src/views/view';
import { ULID_LENGTH } from '#libs/platform/src/ids';
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

/** How ids of events begin. */
export const AUDIT_EVENT_PREFIX = 'audit_event_';
/** How they end, but for those that a command has made with others: their rows go without it. */
const FIRST_OF_COMMAND = '0000';

export const [LIVING, ENDED] = ['living', 'ended'] as const;
/** No events are kept for longer. */
const LONGEST = 365 * 86_400_000;
/** In the order of their bytes. */
const DIGITS = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz';
/** Enough for 8,000 years, and for 68 billion leaves. */
const [TIME_DIGITS, LEAF_DIGITS] = [8, 6];

type OrganizationFact = FactOf<OrganizationEvent, 'organization.created' | 'organization.deleted'>;

/** Audit events, in the order in which things happened. */
export const auditTrailView: View<AuditTrailRow, AuditTrailEvent | OrganizationFact | AuditRetentionEvent> = {
  ...AUDIT_TRAIL_VIEW,
  noun: 'Audit event',
  isReadByIndexes: true,
  handles: ['audit_event.recorded', 'organization.created', 'organization.deleted', 'audit_retention.set'],
  indexes: [
    { name: 'organization', keys: (row) => (isEvent(row) ? [row[0]] : []) },
    { name: 'term', keys: (row) => (isEvent(row) ? termsOf(row[5]) : []) },
    { name: 'digest', keys: (row) => (isEvent(row) ? [row[4]] : []) },
    { name: 'state', keys: (row) => (isEvent(row) ? [] : [row[1]]) },
  ],
  sortKey: (row) => (isEvent(row) ? timeKey(row[2]) + digits(row[1], LEAF_DIGITS) : ''),
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
  const id = eventId.slice(AUDIT_EVENT_PREFIX.length);
  return id.endsWith(FIRST_OF_COMMAND) ? id.slice(0, -FIRST_OF_COMMAND.length) : id;
}

export function eventIdOf(rowId: string): string {
  return AUDIT_EVENT_PREFIX + rowId.padEnd(ULID_LENGTH, '0');
}

export function isEvent(row: AuditTrailRow): row is AuditEventRow {
  return row.length > 3;
}

/** Where the events of a time (milliseconds since the epoch) begin. */
export function timeKey(time: number): string {
  return digits(Math.max(0, time), TIME_DIGITS);
}

/** Where they end. */
export function timeKeyAtEnd(time: number): string {
  return `${timeKey(time)}~`;
}

function digits(number: number, length: number): string {
  let text = '';
  for (let rest = number; text.length < length; rest = Math.floor(rest / DIGITS.length)) text = DIGITS[rest % DIGITS.length]! + text;
  return text;
}

function isGone(row: AuditTrailRow, since: number): boolean {
  return isEvent(row) && row[3] < since;
}

function termsOf(terms: string): readonly string[] {
  return Array.from({ length: terms.length / TERM_LENGTH }, (_, index) => terms.slice(index * TERM_LENGTH, (index + 1) * TERM_LENGTH));
}
