import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { Authentication, type AuthenticationMethod } from '#libs/contracts/src/sign-in/authentication';
import { Authenticate } from '#libs/contracts/src/sign-in/operations';
import type { SessionMethod } from '#libs/contracts/src/sessions/session';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Clock } from '#libs/platform/src/clock';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { Stamps } from '#libs/read-models/src/stamps';
import { EmailVerifications } from '../codes/email-verifications.ts';
import { MagicAuths } from '../codes/magic-auths.ts';
import { PersonalLimits } from '../codes/personal-limits.ts';
import type { StoredMembership } from '../domain/membership.decider.ts';
import {
  beginSession,
  proveFactor,
  sessionDecider,
  type Factor,
  type NewSession,
  type ProvenFactor,
  type SessionState,
  type StoredSession,
} from '../domain/session.decider.ts';
import { foldedEmail, toPublicUser, type StoredUser } from '../domain/user.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { OrganizationPolicies } from '../readers/organization-policies.ts';
import { LAST_SIGN_IN } from '../readers/last-sign-ins.ts';
import { AccessTokens } from './access-tokens.ts';
import { FailedAttempts } from './failed-attempts.ts';
import { gatePolicyOf, nextGate, type Gate } from './next-gate.ts';
import { PasswordCheck } from './password-check.ts';
import { invalidPendingToken, PendingAuthentications, type PendingAuthentication } from './pending-authentications.ts';
import { RefreshFamilies, type ReadFamily } from './refresh-families.ts';
import { roleOfToken, rotated } from './refresh-family.ts';
import { sealedSession } from './sealed-session.ts';
import { SessionIds } from './session-ids.ts';
import { Sessions } from './sessions.ts';
import { invalidClient, SignInClients, type SignInClient } from './sign-in-client.ts';
import { SignInPeople } from './sign-in-people.ts';
import { invalidCredentials, invalidGrant, invalidRequest, moreIsNeeded, ssoRequired } from './sign-in-refusals.ts';

/** Per address or challenge. */
const ATTEMPTS = { most: 10, perSeconds: 60 };
/** How long a client that heard no answer may ask again for a session that has begun. */
const REPEATED_WITHIN_MS = 30_000;

const GRANT = /^urn:([A-Za-z][A-Za-z0-9-]{0,31}):oauth:grant-type:(.+)$/;
const METHODS: Partial<Readonly<Record<SessionMethod, AuthenticationMethod>>> = { password: 'Password', magic_code: 'MagicAuth', sso: 'SSO' };

type Field = 'email' | 'password' | 'code' | 'refresh_token' | 'pending_authentication_token' | 'organization_id';

/** A person who has proven something, on the way to a session. */
interface Progress {
  readonly client: SignInClient;
  readonly sessionId: string;
  readonly user: StoredUser;
  /** What was proven with this request; null: nothing, something was chosen. */
  readonly factor: Factor | null;
  readonly chosen: string | null;
  /** The token that this request came with; null: it is the first. */
  readonly token: string | null;
}

/** Somebody shows who they are, by one grant or another, and gets a session once nothing more is asked for. */
@Injectable()
export class SignIn {
  constructor(
    private readonly clients: SignInClients,
    private readonly people: SignInPeople,
    private readonly passwords: PasswordCheck,
    private readonly magicAuths: MagicAuths,
    private readonly verifications: EmailVerifications,
    private readonly limits: PersonalLimits,
    private readonly failures: FailedAttempts,
    private readonly pending: PendingAuthentications,
    private readonly ids: SessionIds,
    private readonly sessions: Sessions,
    private readonly families: RefreshFamilies,
    private readonly tokens: AccessTokens,
    private readonly settings: EnvironmentSettingsReader,
    private readonly policies: OrganizationPolicies,
    private readonly process: IdentitySettings,
    private readonly repository: Repository,
    private readonly stamps: Stamps,
    private readonly clock: Clock,
  ) {}

  @Handles(Authenticate)
  async authenticate(operation: Authenticate): Promise<Authentication> {
    const grant = this.grantOf(operation.grant_type);
    const client = await this.clients.of(operation);
    switch (grant) {
      case 'password':
        return this.withPassword(operation, client);
      case 'magic-auth:code':
        return this.withMagicAuth(operation, client);
      case 'email-verification:code':
        return this.withEmailVerification(operation, client);
      case 'organization-selection':
        return this.withOrganization(operation, client);
      case 'refresh_token':
        return this.refresh(operation, client);
      default:
        throw invalidRequest(operation.grant_type === undefined ? 'grant_type is required.' : `'${operation.grant_type}' is no grant type of this server.`);
    }
  }

  private async withPassword(operation: Authenticate, client: SignInClient): Promise<Authentication> {
    const { context } = operation;
    const { email, password } = required(operation, 'email', 'password');
    requireSecret(client);
    const { sign_in_methods } = await this.settings.settings(context);
    if (!sign_in_methods.password) throw new DomainError('forbidden', 'email_password_auth_disabled', 'Nobody signs in with a password here.');
    await this.count(context, foldedEmail(email));
    const user = await this.people.withEmail(context, email);
    if (user === null || !(await this.passwords.isRight(context, user, password))) {
      if (user === null) await this.passwords.isRight(context, null, password);
      throw await this.failed(context, 'password', invalidCredentials(), { client, user_id: user?.id ?? null, email });
    }
    const sessionId = await this.ids.ofCommand(context);
    try {
      return await this.proceed(context, { client, sessionId, user, factor: 'password', chosen: null, token: null });
    } finally {
      await this.passwords.rehash(context, user, password);
    }
  }

  private async withMagicAuth(operation: Authenticate, client: SignInClient): Promise<Authentication> {
    const { context } = operation;
    const { email, code } = required(operation, 'email', 'code');
    requireSecret(client);
    const { sign_in_methods } = await this.settings.settings(context);
    if (!sign_in_methods.magic_auth) throw new DomainError('forbidden', 'authentication_method_not_allowed', 'Nobody signs in with a code by mail here.');
    await this.count(context, foldedEmail(email));
    const sessionId = await this.ids.ofShown(context, client.id, 'magic_auth', foldedEmail(email), code);
    const { userId } = await this.redeemed(context, 'magic_auth', () => this.magicAuths.redeem(context, { email, code, sessionId }), {
      client,
      user_id: async () => (await this.people.withEmail(context, email))?.id ?? null,
      email,
    });
    return this.proceed(context, { client, sessionId, user: await this.requireUser(context, userId), factor: 'magic_auth', chosen: null, token: null });
  }

  private async withEmailVerification(operation: Authenticate, client: SignInClient): Promise<Authentication> {
    const { context } = operation;
    const { code, pending_authentication_token: token } = required(operation, 'code', 'pending_authentication_token');
    requireSecret(client);
    const pending = await this.requirePending(context, client, token);
    const { user_id: userId, session_id: sessionId } = pending;
    await this.count(context, sessionId);
    const { email } = await this.requireUser(context, userId);
    await this.redeemed(context, 'email_verification', () => this.verifications.redeem(context, { userId, code, redeemedBy: sessionId }), {
      client,
      user_id: async () => userId,
      email: email ?? '',
    });
    const user = await this.requireUser(context, userId);
    return this.proceed(context, { client, sessionId, user, factor: 'email_verification', chosen: pending.chosen, token });
  }

  private async withOrganization(operation: Authenticate, client: SignInClient): Promise<Authentication> {
    const { context } = operation;
    const { organization_id, pending_authentication_token: token } = required(operation, 'organization_id', 'pending_authentication_token');
    requireSecret(client);
    const { user_id, session_id: sessionId } = await this.requirePending(context, client, token);
    if ((await this.people.membership(context.environment, user_id, organization_id)) === null)
      throw new DomainError('invalid', 'invalid_organization_id', 'The user is no active member of this organization.');
    await this.pending.choose(token, organization_id);
    return this.proceed(context, { client, sessionId, user: await this.requireUser(context, user_id), factor: null, chosen: organization_id, token });
  }

  /** Asks what comes next, and records what was proven, together with the session where nothing more is asked for. */
  private async proceed(context: RequestContext, progress: Progress): Promise<Authentication> {
    const { sessionId, user, factor, client, chosen } = progress;
    const { environment } = context;
    const before = await this.sessions.state(environment, sessionId);
    if (before?.object === 'session') return this.begunBefore(context, before, progress);
    if (before !== null && before.object !== 'sign_in') throw invalidPendingToken();
    const proven = [...(before?.proven ?? []), ...(factor === null ? [] : [factor])];
    const { mfa } = await this.settings.settings(context);
    const organizations = chosen === null ? await this.people.choices(context, user.id) : [];
    const candidate = chosen ?? (organizations.length === 1 ? organizations[0]!.id : null);
    const policy = candidate === null ? null : gatePolicyOf(await this.policies.policy(context, candidate));
    const gate = nextGate({
      method: proven[0]!,
      isEmailVerified: user.email_verified,
      mfa,
      hasFactor: false,
      isFactorProven: proven.includes('mfa'),
      organizations,
      chosen,
      policy,
    });
    const about: ProvenFactor = {
      id: sessionId,
      user_id: user.id,
      email: user.email,
      ip_address: client.ipAddress,
      user_agent: client.userAgent,
      has_secret: client.hasSecret,
    };
    if (gate.gate === 'none') return this.begin(context, progress, about, gate.organizationId);
    const token = progress.token ?? (await this.pending.begin(context, { client_id: client.id, session_id: sessionId, user_id: user.id, chosen }));
    if (factor !== null) await this.repository.transact(sessionDecider, context, sessionId, proveFactor(factor, about, null));
    if ((await this.outdatedBy(context, user)) !== null) throw invalidCredentials();
    throw await this.continuation(context, gate, user, token);
  }

  /** Everything that can fail is asked for before the session is recorded; what it needs is stored before, and durable with it. */
  private async begin(context: RequestContext, { client, sessionId, user, factor }: Progress, about: ProvenFactor, organizationId: string | null) {
    const { environment } = context;
    const membership = organizationId === null ? null : await this.people.membership(environment, user.id, organizationId);
    if (organizationId !== null && membership === null)
      throw new DomainError('invalid', 'invalid_organization_id', 'The user is no active member of it any more.');
    const claims = await this.tokens.claims(context, { user, session_id: sessionId, client_id: client.id, membership });
    const { sessions } = await this.settings.settings(context);
    const now = this.clock.now();
    const end = now + sessions.maximum_seconds * 1_000;
    const idle_until = now + sessions.inactivity_seconds * 1_000;
    const family = { organization_id: organizationId, idle_until, needs_secret: client.hasSecret };
    const read = await this.families.begin(environment, sessionId, family, end);
    const session: NewSession = { organization_id: organizationId, membership_id: membership?.id ?? null, expires_at: new Date(end).toISOString() };
    const decision = factor === null ? beginSession(session) : proveFactor(factor, about, session);
    const { state } = await this.repository.transact(sessionDecider, context, sessionId, decision);
    if (state?.object !== 'session') throw invalidPendingToken();
    const outdated = await this.outdatedBy(context, user);
    if (outdated !== null) {
      await this.sessions.end(context, sessionId, outdated);
      throw invalidCredentials();
    }
    this.stamps.record(LAST_SIGN_IN, environment, user.id);
    return this.answer(context, { user, session: state, membership, claims, read, generation: read.family.generation });
  }

  /** A client that heard no answer asks again, and gets the session that began. */
  private async begunBefore(context: RequestContext, session: StoredSession, { user, client }: Progress): Promise<Authentication> {
    const read = await this.families.read(context.environment, session.id);
    const isRepeat = this.clock.now() - Date.parse(session.created_at) <= REPEATED_WITHIN_MS;
    if (!isRepeat || read === null) throw invalidPendingToken();
    const { organization_id } = read.family;
    const membership = organization_id === null ? null : await this.people.membership(context.environment, user.id, organization_id);
    const claims = await this.tokens.claims(context, { user, session_id: session.id, client_id: client.id, membership });
    return this.answer(context, { user, session, membership, claims, read, generation: read.family.generation });
  }

  private async refresh(operation: Authenticate, client: SignInClient): Promise<Authentication> {
    const { context } = operation;
    const { environment } = context;
    const { refresh_token } = required(operation, 'refresh_token');
    for (;;) {
      const read = await this.families.ofToken(environment, refresh_token);
      if (read === null) throw invalidGrant();
      const { family, sessionId, tokenGeneration } = read;
      const { sessions } = await this.settings.settings(context);
      if (family.needs_secret && sessions.secret_at_refresh && !client.hasSecret && !(await this.clients.hasKeyInHeader(context)))
        throw invalidClient('This session began with a client secret, and needs it at each refresh.');
      const now = this.clock.now();
      const role = roleOfToken(family, tokenGeneration, now);
      if (role === 'reused') {
        await this.sessions.end(context, sessionId, 'refresh_token_reused');
        throw invalidGrant();
      }
      const [session, membership, user] = await this.requireLiving(operation, read);
      if (membership !== null) await this.requirePolicy(context, session, membership.organization_id);
      const claims = await this.tokens.claims(context, { user, session_id: sessionId, client_id: client.id, membership });
      // Nothing was spent yet: whatever could refuse has been asked.
      const generation = role === 'present' ? tokenGeneration + 1 : family.generation;
      if (role === 'present') {
        const idle_until = now + sessions.inactivity_seconds * 1_000;
        const next = rotated(family, tokenGeneration, { now, idle_until, organization_id: membership?.organization_id ?? null });
        if (!(await this.families.replace(read, next))) continue;
      }
      await this.families.durable();
      const answer = await this.answer(context, { user, session, membership, claims, read, generation });
      return operation.session?.seal_session === true ? { ...answer, sid: sessionId, sealed_session: sealedSession(answer, operation.session) } : answer;
    }
  }

  /** What an organization asks of its members counts for those as well who are signed in. @throws DomainError `sso_required`, `mfa_enrollment` */
  private async requirePolicy(context: RequestContext, { auth_method }: StoredSession, organizationId: string): Promise<void> {
    const policy = gatePolicyOf(await this.policies.policy(context, organizationId));
    if (auth_method === 'sso') return;
    if (policy.requiresSso) throw ssoRequired({});
    if (policy.requiresMfa) throw new DomainError('forbidden', 'mfa_enrollment_at_refresh', 'The organization requires a second factor.');
  }

  /** The session of a token, its user, and the membership that the next token is for. @throws DomainError `invalid_grant`, `organization_membership_not_found` */
  private async requireLiving(
    { context, organization_id: asked }: Authenticate,
    { sessionId, family }: ReadFamily,
  ): Promise<readonly [StoredSession, StoredMembership | null, StoredUser]> {
    const { environment } = context;
    const now = this.clock.now();
    const session = await this.sessions.state(environment, sessionId);
    if (session?.object !== 'session' || Date.parse(session.expires_at) <= now || family.idle_until <= now) throw invalidGrant();
    const user = await this.people.withId(environment, session.user_id);
    if (user === null || (user.last_reset !== undefined && user.last_reset.at >= session.created_at)) throw invalidGrant();
    const present = family.organization_id;
    const wanted = asked ?? present;
    const [membership, first] = await Promise.all(
      [wanted, session.organization_id].map(async (id) => (id === null ? null : this.people.membership(environment, user.id, id))),
    );
    // Whoever left the organization that the session began in is signed in no more.
    const isLeft = session.membership_id !== null && first?.id !== session.membership_id;
    if (isLeft || (asked === undefined && wanted !== null && membership == null)) {
      await this.sessions.end(context, sessionId, 'membership_inactive');
      throw invalidGrant();
    }
    if (wanted !== null && membership == null)
      throw new DomainError('invalid', 'organization_membership_not_found', 'The user is no active member of this organization.');
    return [session, membership ?? null, user];
  }

  private async answer(
    context: RequestContext,
    given: {
      readonly user: StoredUser;
      readonly session: StoredSession;
      readonly membership: StoredMembership | null;
      readonly claims: Awaited<ReturnType<AccessTokens['claims']>>;
      readonly read: ReadFamily;
      readonly generation: number;
    },
  ): Promise<Authentication> {
    const { user, session, membership, claims, read, generation } = given;
    const times = { authenticatedAt: Date.parse(session.created_at), sessionEnd: Date.parse(session.expires_at) };
    const method = METHODS[session.auth_method];
    const [last = null] = await this.stamps.latest(LAST_SIGN_IN, context.environment, [user.id]);
    return {
      user: { ...toPublicUser(user), last_sign_in_at: last ?? session.created_at },
      ...(membership !== null && { organization_id: membership.organization_id }),
      access_token: await this.tokens.signed(context, claims, times),
      refresh_token: this.families.present(read, generation),
      ...(method !== undefined && { authentication_method: method }),
    };
  }

  private async continuation(context: RequestContext, gate: Exclude<Gate, { readonly gate: 'none' }>, user: StoredUser, token: string): Promise<DomainError> {
    const shown = { pending_authentication_token: token, user: toPublicUser(user) };
    switch (gate.gate) {
      case 'email_verification_required': {
        const { id } = await this.verifications.current(context, user);
        return moreIsNeeded(gate.gate, { pending_authentication_token: token, email: user.email ?? '', email_verification_id: id });
      }
      case 'mfa_enrollment':
        return moreIsNeeded(gate.gate, shown);
      case 'mfa_challenge':
        return moreIsNeeded(gate.gate, { ...shown, authentication_factors: [] });
      case 'organization_selection_required':
        return moreIsNeeded(gate.gate, { ...shown, organizations: gate.organizations });
      case 'sso_required':
        return ssoRequired({ pending_authentication_token: token, email: user.email ?? '', connection_ids: [] });
      case 'organization_authentication_methods_required': {
        const { methods } = await this.policies.policy(context, gate.organizationId);
        return new DomainError('invalid', gate.gate, 'The organization lets its members sign in otherwise.', {
          continuation: { pending_authentication_token: token, email: user.email ?? '', sso_connection_ids: [], auth_methods: methods },
        });
      }
    }
  }

  /** Runs a redemption; a code that is refused is a failed attempt. */
  private async redeemed<Result>(
    context: RequestContext,
    factor: Factor,
    redeem: () => Promise<Result>,
    about: { readonly client: SignInClient; readonly user_id: () => Promise<string | null>; readonly email: string },
  ): Promise<Result> {
    try {
      return await redeem();
    } catch (error) {
      if (!(error instanceof DomainError) || error.kind === 'unavailable') throw error;
      throw await this.failed(context, factor, error, { ...about, user_id: await about.user_id() });
    }
  }

  private async failed(
    context: RequestContext,
    factor: Factor,
    error: DomainError,
    { client, user_id, email }: { readonly client: SignInClient; readonly user_id: string | null; readonly email: string },
  ): Promise<DomainError> {
    await this.failures.record(context, factor, error, { user_id, email, ip_address: client.ipAddress, user_agent: client.userAgent });
    return error;
  }

  /** @throws DomainError `too_many_requests` */
  private async count({ environment }: RequestContext, whom: string): Promise<void> {
    try {
      await this.limits.count(environment, 'authenticate', whom, ATTEMPTS);
    } catch (error) {
      if (!(error instanceof DomainError && error.kind === 'limited')) throw error;
      throw new DomainError('limited', 'too_many_requests', 'Too many attempts to sign in.', error.details);
    }
  }

  /** @throws DomainError `invalid_pending_authentication_token` */
  private async requirePending(context: RequestContext, client: SignInClient, token: string): Promise<PendingAuthentication> {
    const pending = await this.pending.require(context, client.id, token);
    const [state, user] = await Promise.all([
      this.sessions.state(context.environment, pending.session_id),
      this.people.withId(context.environment, pending.user_id),
    ]);
    if (user === null || state === null || isBeforeReset(state, user)) throw invalidPendingToken();
    return pending;
  }

  /** Asked once all is recorded: what somebody showed may have been compared before a reset that was recorded meanwhile, and would count as shown after it. */
  private async outdatedBy({ environment }: RequestContext, { id, last_reset }: StoredUser): Promise<'parent_deleted' | 'password_reset' | null> {
    const user = await this.people.withId(environment, id);
    if (user === null) return 'parent_deleted';
    return user.last_reset?.at === last_reset?.at ? null : 'password_reset';
  }

  private async requireUser({ environment }: RequestContext, id: string): Promise<StoredUser> {
    const user = await this.people.withId(environment, id);
    if (user === null) throw invalidPendingToken();
    return user;
  }

  /** What follows the vendor's word, whichever of the two that is; other grants as they are. */
  private grantOf(given: string | undefined): string | undefined {
    const [, vendor, grant] = GRANT.exec(given ?? '') ?? [];
    return vendor === this.process.GRANT_TYPE_VENDOR || vendor === OWN_VENDOR ? grant : given;
  }
}

const OWN_VENDOR = 'gatehouse';

function isBeforeReset(state: NonNullable<SessionState>, { last_reset }: StoredUser): boolean {
  const began = state.object === 'sign_in' ? state.began_at : state.object === 'session' ? state.created_at : '';
  return last_reset !== undefined && last_reset.at >= began;
}

/** @throws DomainError `invalid_request` that names the first that is missing */
function required<Name extends Field>(operation: Authenticate, ...names: readonly Name[]): Readonly<Record<Name, string>> {
  for (const name of names) if (!operation[name]) throw invalidRequest(`${name} is required.`);
  return operation as unknown as Readonly<Record<Name, string>>;
}

/** @throws DomainError `invalid_request` */
function requireSecret({ hasSecret }: SignInClient): void {
  if (!hasSecret) throw invalidRequest('client_secret is required.');
}
