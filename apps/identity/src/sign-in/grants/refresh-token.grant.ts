import { Injectable } from '@nestjs/common';
import type { Authentication } from '#libs/contracts/src/sign-in/authentication';
import type { Authenticate } from '#libs/contracts/src/sign-in/operations';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { StoredMembership } from '../../domain/membership.decider.ts';
import { beginningOf, isStillMember, type StoredSession } from '../../domain/session.decider.ts';
import { outdatedBy, type StoredUser } from '../../domain/user.decider.ts';
import { EnvironmentSettingsReader } from '../../readers/environment-settings-reader.ts';
import { OrganizationPolicies } from '../../readers/organization-policies.ts';
import { AccessTokens } from '../access-tokens.ts';
import { Authentications } from '../authentications.ts';
import { gateOfRefresh, gatePolicyOf } from '../next-gate.ts';
import { RefreshFamilies, type ReadFamily } from '../refresh-families.ts';
import { roleOfToken, rotated } from '../refresh-family.ts';
import { sealedSession, sealingKeyOf } from '../sealed-session.ts';
import { Sessions } from '../sessions.ts';
import { invalidClient, SignInClients, type SignInClient } from '../sign-in-client.ts';
import { SignInPeople } from '../sign-in-people.ts';
import { invalidGrant, otherMethodsRequired, ssoRequired } from '../sign-in-refusals.ts';
import type { Given, RenewingGrant } from './grant.ts';

/** The refresh token of the last answer. */
@Injectable()
export class RefreshTokenGrant implements RenewingGrant<'refresh_token'> {
  readonly type = 'refresh_token';
  readonly needs = ['refresh_token'] as const;
  readonly needsSecret = false;

  constructor(
    private readonly clients: SignInClients,
    private readonly people: SignInPeople,
    private readonly sessions: Sessions,
    private readonly families: RefreshFamilies,
    private readonly tokens: AccessTokens,
    private readonly authentications: Authentications,
    private readonly settings: EnvironmentSettingsReader,
    private readonly policies: OrganizationPolicies,
    private readonly clock: Clock,
  ) {}

  /** @throws DomainError `invalid_request`, `invalid_grant`, `invalid_client`, `organization_membership_not_found`, and as `requirePolicy` */
  async renew(given: Given<'refresh_token'>, client: SignInClient): Promise<Authentication> {
    const { context, refresh_token } = given;
    const { environment } = context;
    const sealingKey = sealingKeyOf(given.session);
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
      const living = await this.requireLiving(given, read);
      await this.requirePolicy(context, living, family.organization_id);
      const [session, membership, user] = living;
      const claims = await this.tokens.claims(context, { user, session_id: sessionId, client_id: client.id, membership });
      // Nothing was spent yet: whatever could refuse has been asked.
      let { generation } = family;
      if (role === 'present') {
        const idle_until = now + sessions.inactivity_seconds * 1_000;
        const next = rotated(family, tokenGeneration, { now, idle_until, organization_id: membership?.organization_id ?? null });
        if (!(await this.families.replace(read, next))) continue;
        generation = next.generation;
      }
      // Signed while what was spent goes to disk: nobody sees the answer before both are done.
      const answering = this.authentications.answer(context, { user, session, membership, claims, read, generation });
      const [answer] = await Promise.all([answering, this.families.durable()]);
      return sealingKey === null ? answer : { ...answer, sid: sessionId, sealed_session: sealedSession(answer, sealingKey) };
    }
  }

  /**
   * What environment and organization ask for counts for those as well who are signed in.
   * @throws DomainError `sso_required`, `organization_authentication_methods_required`, `mfa_enrollment`
   */
  private async requirePolicy(
    context: RequestContext,
    [session, membership, user]: readonly [StoredSession, StoredMembership | null, StoredUser],
    before: string | null,
  ): Promise<void> {
    const { mfa, sign_in_methods } = await this.settings.settings(context);
    const asked = membership === null ? null : await this.policies.policy(context, membership.organization_id);
    const gate = gateOfRefresh({
      method: session.auth_method,
      mfa,
      isFactorProven: session.has_second_factor === true,
      isEntering: membership?.organization_id !== before,
      policy: asked && gatePolicyOf(asked),
    });
    if (gate === 'sso_required') throw ssoRequired({});
    if (gate === 'organization_authentication_methods_required') throw otherMethodsRequired(user.email, asked!.methods, sign_in_methods, {});
    if (gate === 'mfa_enrollment') throw new DomainError('forbidden', 'mfa_enrollment_at_refresh', 'A second factor is required.');
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
    if (user === null || outdatedBy(user, beginningOf(session)) !== null) throw invalidGrant();
    const present = family.organization_id;
    const wanted = asked ?? present;
    const inOrganization = async (id: string | null): Promise<StoredMembership | null> => (id === null ? null : this.people.membership(context, user.id, id));
    const found = inOrganization(wanted);
    // Mostly the same one, which is looked up once.
    const [membership, first] = await Promise.all([found, session.organization_id === wanted ? found : inOrganization(session.organization_id)]);
    // Whoever left the organization that the session began in is signed in no more.
    if (!isStillMember(session, first) || (asked === undefined && wanted !== null && membership == null)) {
      await this.sessions.end(context, sessionId, 'membership_inactive');
      throw invalidGrant();
    }
    if (wanted !== null && membership == null)
      throw new DomainError('invalid', 'organization_membership_not_found', 'The user is no active member of this organization.');
    return [session, membership ?? null, user];
  }
}
