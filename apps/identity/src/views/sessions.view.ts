import { primaryView } from '#libs/event-sourcing/src/views/view';
import { sessionDecider, type SessionEvent, type SessionState, type StoredSession } from '../domain/session.decider.ts';
import { holderOfUser } from '../domain/user.decider.ts';

/** Settings let no session be longer than a year. */
const MOST_MONTHS = 13;

/** Every session that was not ended; those that expired stay. Private: what it hangs on may have ended. */
export const sessionsView = primaryView<SessionState, SessionEvent, StoredSession>({
  name: 'sessions',
  noun: 'Session',
  version: 1,
  decider: sessionDecider,
  indexes: [
    { name: 'user', keys: ({ user_id }) => [user_id] },
    { name: 'user_and_month', keys: ({ user_id, expires_at }) => [monthKey(user_id, expires_at)] },
    { name: 'organization', keys: ({ organization_id }) => (organization_id === null ? [] : [organization_id]) },
    { name: 'membership', keys: ({ membership_id }) => (membership_id === null ? [] : [membership_id]) },
  ],
  personal: { holders: ({ user_id }) => [holderOfUser(user_id)], columns: () => ['ip_address', 'user_agent'] },
  rowOf: (state) => (state?.object === 'session' ? state : null),
});

/** The keys of `user_and_month` under which the sessions of a user lie that have not expired, but for some of this month: however many did before. */
export function unexpiredOf(userId: string, now: number): readonly string[] {
  const date = new Date(now);
  const months = Array.from({ length: MOST_MONTHS }, (_, month) => new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + month, 1)).toISOString());
  return months.map((month) => monthKey(userId, month));
}

function monthKey(userId: string, time: string): string {
  return `${userId} ${time.slice(0, 7)}`;
}
