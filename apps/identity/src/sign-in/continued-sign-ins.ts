import { Injectable } from '@nestjs/common';
import { Clock } from '#libs/platform/src/clock';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { BegunSignIn } from '../domain/authentication-factor.decider.ts';
import { beginningOf, mayBeAskedAgain } from '../domain/session.decider.ts';
import { outdatedBy, type StoredUser } from '../domain/user.decider.ts';
import { PendingAuthentications, type PendingAuthentication } from './pending-authentications.ts';
import { Sessions } from './sessions.ts';
import type { SignInClient } from './sign-in-client.ts';
import { SignInPeople } from './sign-in-people.ts';
import { invalidPendingToken } from './sign-in-refusals.ts';

interface ContinuedSignIn {
  readonly pending: PendingAuthentication;
  readonly user: StoredUser;
  /** Whether the password was shown. */
  readonly hasPassword: boolean;
  /** By which it is told whose second factors count; null: the session has begun since, and what was proven on the way to it is all there is. */
  readonly begun: BegunSignIn | null;
}

/** Sign-ins of which something was proven, and that may go on. */
@Injectable()
export class ContinuedSignIns {
  constructor(
    private readonly pending: PendingAuthentications,
    private readonly sessions: Sessions,
    private readonly people: SignInPeople,
    private readonly clock: Clock,
  ) {}

  /** What goes on with this token, and whose it is. @throws DomainError `invalid_pending_authentication_token` */
  async require(context: RequestContext, client: SignInClient, token: string): Promise<ContinuedSignIn> {
    const pending = await this.pending.require(context, client.id, token);
    const [state, user] = await Promise.all([
      this.sessions.state(context.environment, pending.session_id),
      this.people.withId(context.environment, pending.user_id),
    ]);
    if (user === null || (state?.object !== 'sign_in' && state?.object !== 'session')) throw invalidPendingToken();
    // Nothing would come of it but that a code is spent which another sign-in asked for.
    if (state.object === 'session' && !mayBeAskedAgain(state, this.clock.now())) throw invalidPendingToken();
    if (outdatedBy(user, beginningOf(state)) !== null) throw invalidPendingToken();
    if (state.object === 'session') return { pending, user, begun: null, hasPassword: state.auth_method === 'password' };
    return { pending, user, begun: state, hasPassword: state.proven.includes('password') };
  }
}
