import { Injectable } from '@nestjs/common';
import type { RequestContext } from '#libs/platform/src/request-context';
import { beginningOf, type Factor } from '../domain/session.decider.ts';
import { outdatedBy, type StoredUser } from '../domain/user.decider.ts';
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
    const [state, user] = await Promise.all([
      this.sessions.state(context.environment, pending.session_id),
      this.people.withId(context.environment, pending.user_id),
    ]);
    if (user === null || (state?.object !== 'sign_in' && state?.object !== 'session')) throw invalidPendingToken();
    const beginning = beginningOf(state);
    if (outdatedBy(user, beginning) !== null) throw invalidPendingToken();
    return { pending, user, beganAt: beginning.began_at, proven: state.object === 'sign_in' ? state.proven : [] };
  }
}
