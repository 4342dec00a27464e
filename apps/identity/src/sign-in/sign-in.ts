import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { Authentication } from '#libs/contracts/src/sign-in/authentication';
import { Authenticate } from '#libs/contracts/src/sign-in/operations';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { HolderErased } from '#libs/event-sourcing/src/sealing/key-store';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { Stamps } from '#libs/read-models/src/stamps';
import type { StoredInvitation } from '../domain/invitation.decider.ts';
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
import { SecondFactors } from '../authentication-factors/second-factors.ts';
import { credentialsVersionOf, outdatedBy } from '../domain/user.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { OrganizationPolicies } from '../readers/organization-policies.ts';
import { LAST_SIGN_IN } from '../readers/shown-users.ts';
import { AccessTokens } from './access-tokens.ts';
import { Authentications } from './authentications.ts';
import { Continuations } from './continuations.ts';
import type { Proof } from './grants/grant.ts';
import { Grants, requireGiven } from './grants/grants.ts';
import { gatePolicyOf, nextGate } from './next-gate.ts';
import { PendingAuthentications } from './pending-authentications.ts';
import { RefreshFamilies } from './refresh-families.ts';
import { Sessions } from './sessions.ts';
import { SignInClients, type SignInClient } from './sign-in-client.ts';
import { SignInInvitations } from './sign-in-invitations.ts';
import { SignInPeople } from './sign-in-people.ts';
import { SignInRisk } from './sign-in-risk.ts';
import { invalidCredentials, invalidGrant, invalidPendingToken } from './sign-in-refusals.ts';

/** A person who has proven something to an application, on the way to a session. */
interface Progress extends Proof {
  readonly client: SignInClient;
  /** What this request came with: once somebody has accepted it, the session begins in its organization. */
  readonly invitation: StoredInvitation | null;
}

/** Somebody shows who they are, by one grant or another, and gets a session once nothing more is asked for. */
@Injectable()
export class SignIn {
  constructor(
    private readonly clients: SignInClients,
    private readonly grants: Grants,
    private readonly people: SignInPeople,
    private readonly factors: SecondFactors,
    private readonly pending: PendingAuthentications,
    private readonly invitations: SignInInvitations,
    private readonly continuations: Continuations,
    private readonly risk: SignInRisk,
    private readonly sessions: Sessions,
    private readonly families: RefreshFamilies,
    private readonly tokens: AccessTokens,
    private readonly authentications: Authentications,
    private readonly settings: EnvironmentSettingsReader,
    private readonly policies: OrganizationPolicies,
    private readonly repository: Repository,
    private readonly stamps: Stamps,
    private readonly clock: Clock,
  ) {}

  @Handles(Authenticate)
  async authenticate(operation: Authenticate): Promise<Authentication> {
    const client = await this.clients.of(operation);
    const grant = this.grants.named(operation.grant_type);
    const given = requireGiven(grant, operation, client);
    if ('renew' in grant) return grant.renew(given, client);
    const invitation = grant.needs.includes('pending_authentication_token') ? null : await this.invitations.shown(given);
    const { afterwards, ...proof } = await grant.prove(given, client);
    try {
      return await this.proceed(operation.context, { client, invitation, ...proof });
    } catch (error) {
      // Erased meanwhile: they are nobody's credentials any more.
      const refused = error instanceof HolderErased ? invalidCredentials() : error;
      throw grant.isOAuth === true && isOfTheProof(refused) ? invalidGrant() : refused;
    } finally {
      await afterwards?.();
    }
  }

  /** Asks what comes next, and records what was proven, together with the session where nothing more is asked for. */
  private async proceed(context: RequestContext, progress: Progress): Promise<Authentication> {
    const { sessionId, user, factor, client, invitation, isChallenged, holdsFactor } = progress;
    const chosen = progress.chosen ?? invitation?.organization_id ?? null;
    const { environment } = context;
    const before = await this.sessions.state(environment, sessionId);
    if (before?.object === 'session') return this.begunBefore(context, before, progress);
    if (before !== null && before.object !== 'sign_in') throw invalidPendingToken();
    // A code that a browser carries names a sign-in that may have begun before a reset.
    if (before !== null && outdatedBy(user, beginningOf(before)) !== null) throw invalidPendingToken();
    const proven = [...(before?.proven ?? []), ...(factor === null ? [] : [factor])];
    const isFactorProven = holdsFactor && proven.includes('mfa');
    const factors = isFactorProven ? [] : await this.factors.counting(context, user, before);
    const { mfa } = await this.settings.settings(context);
    const organizations = chosen === null ? await this.people.choices(context, user.id) : [];
    const candidate = chosen ?? (organizations.length === 1 ? organizations[0]!.id : null);
    const policy = candidate === null ? null : gatePolicyOf(await this.policies.policy(context, candidate));
    const gate = nextGate({
      method: proven[0]!,
      isChallenged,
      isEmailVerified: user.email_verified,
      mfa,
      hasFactor: factors.length > 0,
      isFactorProven,
      organizations,
      chosen,
      policy,
    });
    const about: NewProof = {
      id: sessionId,
      user_id: user.id,
      email: user.email,
      ip_address: client.ipAddress,
      user_agent: client.userAgent,
      has_secret: client.hasSecret,
      credentials_version: credentialsVersionOf(user),
    };
    const invitation_id = progress.token === null ? invitation?.id : (await this.pending.require(context, client.id, progress.token)).invitation_id;
    if (gate.gate === 'none') {
      if (invitation_id !== undefined) await this.invitations.accept(context, invitation_id, user);
      return this.begin(context, progress, about, gate.organizationId);
    }
    const token =
      progress.token ??
      (await this.pending.begin(context, {
        client_id: client.id,
        session_id: sessionId,
        user_id: user.id,
        chosen,
        is_challenged: isChallenged,
        ...(invitation_id && { invitation_id }),
        ...(isFactorProven && { holds_factor: true }),
      }));
    const proof: NewProof = before === null ? { ...about, factor_ids: factors.map(({ id }) => id) } : about;
    const after = factor === null ? before : (await this.repository.transact(sessionDecider, context, sessionId, proveFactor(factor, proof, null))).state;
    if ((await this.outdatedBy(context, user.id, after)) !== null) throw invalidCredentials();
    throw await this.continuations.at(context, gate, { user, token, factors });
  }

  /** Everything that can fail is asked for before the session is recorded; what it needs is stored before, and durable with it. */
  private async begin(context: RequestContext, { client, sessionId, user, factor }: Progress, about: NewProof, organizationId: string | null) {
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
    const outdated = await this.outdatedBy(context, user.id, state);
    if (outdated !== null) {
      await this.sessions.end(context, sessionId, outdated);
      throw invalidCredentials();
    }
    // The time that the answer tells.
    this.stamps.record(LAST_SIGN_IN, environment, user.id, Date.parse(state.created_at));
    await this.risk.signedIn(context, client, user);
    return this.authentications.answer(context, { user, session: state, membership, claims, read, generation: read.family.generation });
  }

  /** A client that heard no answer asks again, and gets the session that began. */
  private async begunBefore(context: RequestContext, session: StoredSession, { user, client, holdsFactor }: Progress): Promise<Authentication> {
    if (session.has_second_factor === true && !holdsFactor) throw invalidPendingToken();
    const read = await this.families.read(context.environment, session.id);
    const isRepeat = mayBeAskedAgain(session, this.clock.now());
    if (!isRepeat || read === null || outdatedBy(user, beginningOf(session)) !== null) throw invalidPendingToken();
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
  private async outdatedBy({ environment }: RequestContext, userId: string, state: SessionState): Promise<EndReason | null> {
    const user = await this.people.withId(environment, userId);
    if (user === null) return 'parent_deleted';
    return state?.object === 'sign_in' || state?.object === 'session' ? outdatedBy(user, beginningOf(state)) : null;
  }
}

/** What was brought is used, outdated, or stands for what has ended. */
function isOfTheProof(error: unknown): boolean {
  return error instanceof DomainError && ['invalid_credentials', 'invalid_pending_authentication_token', 'invalid_organization_id'].includes(error.code);
}
