import { specOf } from '#libs/testing/src/decider-spec';
import { auditRetentionDecider, keptSince, setRetention, type AuditRetention } from './audit-retention.decider.ts';

const { given } = specOf(auditRetentionDecider);
const DAY = 86_400_000;
const START = Date.parse('2026-01-15T12:00:00.000Z');
const set = (retention_period_in_days: 30 | 365) => ({ type: 'audit_retention.set', data: { retention_period_in_days } }) as const;

/** What was set, each some days after the start. */
const after = (...changes: readonly (readonly [days: number, period: 30 | 365])[]): AuditRetention =>
  changes.reduce(
    (state, [days, period], index) =>
      auditRetentionDecider.evolve(state, { ...set(period), at: new Date(START + days * DAY).toISOString(), version: index + 1 }),
    auditRetentionDecider.initial,
  );
const daysKept = (state: AuditRetention, day: number): number => day - (keptSince(state, START + day * DAY) - START) / DAY;

describe('for how long events are kept', () => {
  it('is thirty days, until it is set', () => {
    given().when(setRetention(365)).then(set(365));
    given().when(setRetention(30)).thenNothing();
    given(set(365)).when(setRetention(365)).thenNothing();
    expect(daysKept(auditRetentionDecider.initial, 100)).toBe(30);
  });

  it('holds at once where it becomes shorter, and for what is still there where it becomes longer', () => {
    expect(daysKept(after([0, 365]), 0)).toBe(30);
    expect(daysKept(after([0, 365]), 100)).toBe(130);
    expect(daysKept(after([0, 365]), 400)).toBe(365);
    expect(daysKept(after([0, 365], [400, 30]), 400)).toBe(30);
    expect(daysKept(after([0, 365], [400, 30], [400, 365]), 400)).toBe(30);
    expect(daysKept(after([0, 365], [400, 30], [400, 365]), 410)).toBe(40);
    // What is gone stays gone, whatever is set after that.
    expect(daysKept(after([0, 365], [1, 30], [2, 365], [3, 30], [4, 365]), 4)).toBe(30);
  });

  it('is never shorter than thirty days by what a clock said that was ahead', () => {
    expect(daysKept(after([1_000, 365]), 10)).toBe(30);
    expect(daysKept(after([1_000, 365]), 980)).toBe(30);
    expect(daysKept(after([1_000, 365]), 1_010)).toBe(40);
  });
});
