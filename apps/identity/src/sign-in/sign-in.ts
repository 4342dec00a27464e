import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { Authentication } from '#libs/contracts/src/sign-in/authentication';
import { Authenticate } from '#libs/contracts/src/sign-in/operations';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { HolderErased } from '#libs/event-sourcing/src/sealing/key-store';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { StoredInvitation } from '../domain/invitation.decider.ts';
import { beginningOf, proveFactor, sessionDecider, type NewProof } from '../domain/session.decider.ts';
import { SecondFactors } from '../authentication-factors/second-factors.ts';
import { credentialsVersionOf, outdatedBy } from '../domain/user.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { OrganizationPolicies } from '../readers/organization-policies.ts';
import { Continuations } from './continuations.ts';
import { Grants, requireGiven } from './grants/grants.ts';
import { gatePolicyOf, nextGate } from './next-gate.ts';
import { PendingAuthentications } from './pending-authentications.ts';
import { SessionBeginnings, type Progress } from './session-beginnings.ts';
import { Sessions } from './sessions.ts';
import { SignInClients } from './sign-in-client.ts';
import { SignInInvitations } from './sign-in-invitations.ts';
import { SignInPeople } from './sign-in-people.ts';
import { invalidCredentials, invalidGrant, invalidPendingToken } from './sign-in-refusals.ts';

interface SignInProgress extends Progress {
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
    private readonly sessions: Sessions,
    private readonly beginnings: SessionBeginnings,
    private readonly settings: EnvironmentSettingsReader,
    private readonly policies: OrganizationPolicies,
    private readonly repository: Repository,
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
  private async proceed(context: RequestContext, progress: SignInProgress): Promise<Authentication> {
    const { sessionId, user, factor, client, invitation, isChallenged, holdsFactor } = progress;
    const chosen = progress.chosen ?? invitation?.organization_id ?? null;
    const { environment } = context;
    const before = await this.sessions.state(environment, sessionId);
    if (before?.object === 'session') return this.beginnings.begunBefore(context, before, { ...progress, chosen });
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
      return this.beginnings.begin(context, progress, about, gate.organizationId);
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
    if ((await this.beginnings.outdatedBy(context, user.id, after)) !== null) throw invalidCredentials();
    // What was recorded is behind the token; where nothing was, the token itself is waited for.
    if (factor === null) await this.pending.durable();
    throw await this.continuations.at(context, gate, { user, token, factors });
  }
}

/** What was brought is used, outdated, or stands for what has ended. */
function isOfTheProof(error: unknown): boolean {
  return error instanceof DomainError && ['invalid_credentials', 'invalid_pending_authentication_token', 'invalid_organization_id'].includes(error.code);
}
