import { primaryView } from '#libs/event-sourcing/src/views/view';
import { sessionDecider, type EndedSession, type SessionEvent, type SessionState, type StoredSession } from '../domain/session.decider.ts';
import { holderOfUser } from '../domain/user.decider.ts';

/** Settings let no session be longer than a year. */
const MOST_MONTHS = 13;
const DAY = 86_400_000;
const DAY_LENGTH = 'YYYY-MM-DD'.length;

export type SessionRow = StoredSession | EndedSession;

/**
 * Every session, until retention takes it: ended ones are found by the day of their end alone. Private: what it hangs on may have ended.
 * Nothing is recorded of a session that is over, so what is taken comes with no fact.
 */
export const sessionsView = primaryView<SessionState, SessionEvent, SessionRow>({
  name: 'sessions',
  noun: 'Session',
  version: 2,
  decider: sessionDecider,
  indexes: [
    { name: 'user', keys: ofGoingOn(({ user_id }) => user_id) },
    { name: 'user_and_month', keys: ofGoingOn(({ user_id, expires_at }) => monthKey(user_id, expires_at)) },
    { name: 'organization', keys: ofGoingOn(({ organization_id }) => organization_id) },
    { name: 'membership', keys: ofGoingOn(({ membership_id }) => membership_id) },
    { name: 'day_of_end', keys: (row) => [endOf(row).slice(0, DAY_LENGTH)] },
  ],
  personal: { holders: ({ user_id }) => [holderOfUser(user_id)], columns: () => ['ip_address', 'user_agent'] },
  rowOf: (state) => (state?.object === 'session' || state?.object === 'ended_session' ? state : null),
  retention: { shortened: (text) => text, mayBeGone: (text, now) => Date.parse(endOf(JSON.parse(text) as SessionRow)) < now },
});

/** The key of a session that was not ended. */
function ofGoingOn(key: (session: StoredSession) => string | null): (row: SessionRow) => readonly string[] {
  return (row) => {
    const value = row.object === 'session' ? key(row) : null;
    return value === null ? [] : [value];
  };
}

/** The keys of `day_of_end` from the day of one time until the day before another one's. */
export function daysOfEnd(from: number, before: number): readonly string[] {
  const days: string[] = [];
  const end = Math.floor(before / DAY);
  for (let day = Math.floor(from / DAY); day < end; day++) days.push(new Date(day * DAY).toISOString().slice(0, DAY_LENGTH));
  return days;
}

function endOf(row: SessionRow): string {
  return row.object === 'session' ? row.expires_at : row.ended_at;
}

/** The keys of `user_and_month` under which the sessions of a user lie that have not expired, but for some of this month: however many did before. */
export function unexpiredOf(userId: string, now: number): readonly string[] {
  const date = new Date(now);
  const months = Array.from({ length: MOST_MONTHS }, (_, month) => new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + month, 1)).toISOString());
  return months.map((month) => monthKey(userId, month));
}

function monthKey(userId: string, time: string): string {
  return `${userId} ${time.slice(0, 7)}`;
}
