import { Injectable } from '@nestjs/common';
import type { Authentication } from '#libs/contracts/src/sign-in/authentication';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { Stamps } from '#libs/read-models/src/stamps';
import {
  beginningOf,
  beginSession,
  isStillMember,
  mayBeAskedAgain,
  proveFactor,
  sessionDecider,
  type EndReason,
  type NewProof,
  type NewSession,
  type SessionState,
  type StoredSession,
} from '../domain/session.decider.ts';
import { outdatedBy } from '../domain/user.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { LAST_SIGN_IN } from '../readers/shown-users.ts';
import { AccessTokens } from './access-tokens.ts';
import { Authentications } from './authentications.ts';
import type { Proof } from './grants/grant.ts';
import { RefreshFamilies } from './refresh-families.ts';
import { Sessions } from './sessions.ts';
import type { SignInClient } from './sign-in-client.ts';
import { SignInPeople } from './sign-in-people.ts';
import { SignInRisk } from './sign-in-risk.ts';
import { invalidCredentials, invalidPendingToken } from './sign-in-refusals.ts';

/** A person who has proven something to an application, on the way to a session. */
export interface Progress extends Proof {
  readonly client: SignInClient;
}

/** The session at the end of a sign-in, once nothing more is asked for, and its first tokens. */
@Injectable()
export class SessionBeginnings {
  constructor(
    private readonly people: SignInPeople,
    private readonly risk: SignInRisk,
    private readonly sessions: Sessions,
    private readonly families: RefreshFamilies,
    private readonly tokens: AccessTokens,
    private readonly authentications: Authentications,
    private readonly settings: EnvironmentSettingsReader,
    private readonly repository: Repository,
    private readonly stamps: Stamps,
    private readonly clock: Clock,
  ) {}

  /** Everything that can fail is asked for before the session is recorded; what it needs is stored before, and durable with it. */
  async begin(context: RequestContext, { client, sessionId, user, factor }: Progress, about: NewProof, organizationId: string | null): Promise<Authentication> {
    const { environment } = context;
    const membership = organizationId === null ? null : await this.people.membership(context, user.id, organizationId);
    if (organizationId !== null && membership === null)
      throw new DomainError('invalid', 'invalid_organization_id', 'The user is no active member of it any more.');
    const claims = await this.tokens.claims(context, { user, session_id: sessionId, client_id: client.id, membership });
    const { sessions } = await this.settings.settings(context);
    const now = this.clock.now();
    const end = now + sessions.maximum_seconds * 1_000;
    const idle_until = now + sessions.inactivity_seconds * 1_000;
    const family = { organization_id: organizationId, idle_until, needs_secret: client.hasSecret };
    const read = await this.families.begin(environment, sessionId, family, end);
    const session: NewSession = { membership, expires_at: new Date(end).toISOString() };
    const decision = factor === null ? beginSession(session) : proveFactor(factor, about, session);
    const { state } = await this.repository.transact(sessionDecider, context, sessionId, decision);
    if (state?.object !== 'session') throw invalidPendingToken();
    // Another choice of the same sign-in was faster: it has begun, elsewhere than is asked for here.
    if (state.organization_id !== organizationId) throw invalidPendingToken();
    const outdated = await this.outdatedBy(context, user.id, state);
    if (outdated !== null) {
      await this.sessions.end(context, sessionId, outdated);
      throw invalidCredentials();
    }
    // The time that the answer tells.
    this.stamps.record(LAST_SIGN_IN, environment, user.id, Date.parse(state.created_at));
    await this.risk.signedIn(context, client, user);
    const settled = await this.families.settled(read, organizationId);
    return this.authentications.answer(context, { user, session: state, membership, claims, read: settled, generation: settled.family.generation });
  }

  /** A client that heard no answer asks again, and gets the session that began; one that chose (`chosen`) another organization than that does not. */
  async begunBefore(context: RequestContext, session: StoredSession, { user, client, chosen, holdsFactor }: Progress): Promise<Authentication> {
    if (session.has_second_factor === true && !holdsFactor) throw invalidPendingToken();
    if (chosen !== null && chosen !== session.organization_id) throw invalidPendingToken();
    const stored = await this.families.read(context.environment, session.id);
    const isRepeat = mayBeAskedAgain(session, this.clock.now());
    if (!isRepeat || stored === null || outdatedBy(user, beginningOf(session)) !== null) throw invalidPendingToken();
    const read = await this.families.settled(stored, session.organization_id);
    const { organization_id } = read.family;
    const membership = organization_id === null ? null : await this.people.membership(context, user.id, organization_id);
    // Whoever left the organization since is signed in no more.
    if (organization_id !== null && membership === null) throw invalidPendingToken();
    if (organization_id === session.organization_id && !isStillMember(session, membership)) throw invalidPendingToken();
    const claims = await this.tokens.claims(context, { user, session_id: session.id, client_id: client.id, membership });
    return this.authentications.answer(context, { user, session, membership, claims, read, generation: read.family.generation });
  }

  /**
   * Asked once all is recorded: what somebody showed may have been compared before a reset, or before somebody else proved the address, that was recorded meanwhile, and would
   * count as shown after it.
   */
  async outdatedBy({ environment }: RequestContext, userId: string, state: SessionState): Promise<EndReason | null> {
    const user = await this.people.withId(environment, userId);
    if (user === null) return 'parent_deleted';
    return state?.object === 'sign_in' || state?.object === 'session' ? outdatedBy(user, beginningOf(state)) : null;
  }
}
