import type { RetentionDays } from '#libs/contracts/src/audit-log-retention/audit-log-retention';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';

// These types are the storage format: a stored name or shape is never edited.

export type AuditRetentionEvent = Fact<'audit_retention.set', { readonly retention_period_in_days: RetentionDays }>;

/** For how long the events of one organization are kept. */
export interface AuditRetention {
  readonly retention_period_in_days: RetentionDays;
  /** What was received before is gone, however long the period has become since. Milliseconds since the epoch. */
  readonly gone_before: number;
}

const DAY = 86_400_000;
const SHORTEST = 30;

export const auditRetentionDecider: Decider<AuditRetention, AuditRetentionEvent> = {
  category: 'audit_retention',
  foldVersion: 1,
  initial: { retention_period_in_days: SHORTEST, gone_before: 0 },
  sealed: { 'audit_retention.set': null },
  evolve: (state, { data, at }) => ({ ...data, gone_before: Math.max(state.gone_before, Date.parse(at) - state.retention_period_in_days * DAY) }),
  toPublicEvent: () => null,
};

export function setRetention(retention_period_in_days: RetentionDays): Decision<AuditRetention, AuditRetentionEvent> {
  return (state) => (state.retention_period_in_days === retention_period_in_days ? [] : [{ type: 'audit_retention.set', data: { retention_period_in_days } }]);
}

/**
 * What was received before is gone. Milliseconds since the epoch, like `now`. No period is shorter than thirty days, so what is younger was said to be gone by a clock that was
 * ahead.
 */
export function keptSince({ retention_period_in_days, gone_before }: AuditRetention, now: number): number {
  return Math.max(now - retention_period_in_days * DAY, Math.min(gone_before, now - SHORTEST * DAY));
}
