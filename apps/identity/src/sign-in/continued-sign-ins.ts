import { Injectable } from '@nestjs/common';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { Factor, SessionState } from '../domain/session.decider.ts';
import { isOutdated, lastResetOf, type StoredUser } from '../domain/user.decider.ts';
import { PendingAuthentications, type PendingAuthentication } from './pending-authentications.ts';
import { Sessions } from './sessions.ts';
import type { SignInClient } from './sign-in-client.ts';
import { SignInPeople } from './sign-in-people.ts';
import { invalidPendingToken } from './sign-in-refusals.ts';

interface ContinuedSignIn {
  readonly pending: PendingAuthentication;
  readonly user: StoredUser;
  /** What was proven before; nothing where a session has begun already. */
  readonly proven: readonly Factor[];
  /** When the first was proven. */
  readonly beganAt: string;
}

/** Sign-ins of which something was proven, and that may go on. */
@Injectable()
export class ContinuedSignIns {
  constructor(
    private readonly pending: PendingAuthentications,
    private readonly sessions: Sessions,
    private readonly people: SignInPeople,
  ) {}

  /** What goes on with this token, and whose it is. @throws DomainError `invalid_pending_authentication_token` */
  async require(context: RequestContext, client: SignInClient, token: string): Promise<ContinuedSignIn> {
    const pending = await this.pending.require(context, client.id, token);
    const [state, user] = await Promise.all([this.sessions.state(context.environment, pending.session_id), this.requireUser(context, pending.user_id)]);
    const beganAt = state === null ? '' : beginningOf(state);
    if (state === null || isOutdated(user, { id: pending.session_id, began_at: beganAt })) throw invalidPendingToken();
    if (pending.last_reset !== undefined && pending.last_reset !== lastResetOf(user)) throw invalidPendingToken();
    return { pending, user, beganAt, proven: state.object === 'sign_in' ? state.proven : [] };
  }

  /** As the end of the log says. @throws DomainError `invalid_pending_authentication_token` for one who was deleted */
  async requireUser({ environment }: RequestContext, id: string): Promise<StoredUser> {
    const user = await this.people.withId(environment, id);
    if (user === null) throw invalidPendingToken();
    return user;
  }
}

function beginningOf(state: NonNullable<SessionState>): string {
  if (state.object === 'sign_in') return state.began_at;
  return state.object === 'session' ? state.created_at : '';
}
