import { Injectable } from '@nestjs/common';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { SessionState } from '../domain/session.decider.ts';
import type { StoredUser } from '../domain/user.decider.ts';
import { PendingAuthentications, type PendingAuthentication } from './pending-authentications.ts';
import { Sessions } from './sessions.ts';
import type { SignInClient } from './sign-in-client.ts';
import { SignInPeople } from './sign-in-people.ts';
import { invalidPendingToken } from './sign-in-refusals.ts';

/** Sign-ins of which something was proven, and that may go on. */
@Injectable()
export class ContinuedSignIns {
  constructor(
    private readonly pending: PendingAuthentications,
    private readonly sessions: Sessions,
    private readonly people: SignInPeople,
  ) {}

  /** What goes on with this token, and whose it is. @throws DomainError `invalid_pending_authentication_token` */
  async require(context: RequestContext, client: SignInClient, token: string): Promise<{ readonly pending: PendingAuthentication; readonly user: StoredUser }> {
    const pending = await this.pending.require(context, client.id, token);
    const [state, user] = await Promise.all([this.sessions.state(context.environment, pending.session_id), this.requireUser(context, pending.user_id)]);
    if (state === null || isBeforeReset(state, user)) throw invalidPendingToken();
    return { pending, user };
  }

  /** As the end of the log says. @throws DomainError `invalid_pending_authentication_token` for one who was deleted */
  async requireUser({ environment }: RequestContext, id: string): Promise<StoredUser> {
    const user = await this.people.withId(environment, id);
    if (user === null) throw invalidPendingToken();
    return user;
  }
}

function isBeforeReset(state: NonNullable<SessionState>, { last_reset }: StoredUser): boolean {
  const began = state.object === 'sign_in' ? state.began_at : state.object === 'session' ? state.created_at : '';
  return last_reset !== undefined && last_reset.at >= began;
}
