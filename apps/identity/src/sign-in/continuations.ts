import { Injectable } from '@nestjs/common';
import type { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { AuthenticationChallenges, shownChallenge } from '../authentication-factors/authentication-challenges.ts';
import { EmailVerifications } from '../codes/email-verifications.ts';
import { RadarChallenges } from '../codes/radar-challenges.ts';
import type { StoredFactor } from '../domain/authentication-factor.decider.ts';
import type { StoredUser } from '../domain/user.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { OrganizationPolicies } from '../readers/organization-policies.ts';
import { ShownUsers } from '../readers/shown-users.ts';
import type { Gate } from './next-gate.ts';
import { moreIsNeeded, otherMethodsRequired, ssoRequired, type Continuation } from './sign-in-refusals.ts';

/** Who is on the way to a session. */
interface Pending {
  readonly user: StoredUser;
  /** To go on with. */
  readonly token: string;
  /** The second factors that count. */
  readonly factors: readonly StoredFactor[];
}

/** Tells a client what has to be done before a session begins, with everything that it takes. */
@Injectable()
export class Continuations {
  constructor(
    private readonly verifications: EmailVerifications,
    private readonly radarChallenges: RadarChallenges,
    private readonly challenges: AuthenticationChallenges,
    private readonly policies: OrganizationPolicies,
    private readonly settings: EnvironmentSettingsReader,
    private readonly users: ShownUsers,
  ) {}

  /** What to throw at this gate. */
  async at(context: RequestContext, gate: Exclude<Gate, { readonly gate: 'none' }>, { user, token, factors }: Pending): Promise<DomainError> {
    const shown = { pending_authentication_token: token, user: await this.users.one(context.environment, user) };
    switch (gate.gate) {
      case 'radar_challenge': {
        const { id } = await this.radarChallenges.current(context, user);
        const message = 'A code was sent to the email address.';
        // One body for both names that clients know.
        return moreIsNeeded(gate.gate, { ...shown, radar_challenge_id: id, error: 'radar_email_challenge', error_description: message });
      }
      case 'email_verification_required': {
        const { id } = await this.verifications.current(context, user);
        return moreIsNeeded(gate.gate, { pending_authentication_token: token, email: user.email ?? '', email_verification_id: id });
      }
      case 'mfa_enrollment':
        return moreIsNeeded(gate.gate, shown);
      case 'mfa_challenge':
        return moreIsNeeded(gate.gate, {
          ...shown,
          authentication_factors: factors.map(({ id, type }) => ({ id, type })),
          ...(await this.challengeOf(context, factors)),
        });
      case 'organization_selection_required':
        return moreIsNeeded(gate.gate, { ...shown, organizations: gate.organizations });
      case 'sso_required':
        return ssoRequired({ pending_authentication_token: token, email: user.email ?? '', connection_ids: [] });
      case 'organization_authentication_methods_required': {
        const [{ methods }, { sign_in_methods }] = await Promise.all([this.policies.policy(context, gate.organizationId), this.settings.settings(context)]);
        return otherMethodsRequired(user.email, methods, sign_in_methods, { pending_authentication_token: token });
      }
    }
  }

  /** Of an authenticator app a challenge is there at once: nothing has to be sent. */
  private async challengeOf(context: RequestContext, factors: readonly StoredFactor[]): Promise<Pick<Continuation, 'authentication_challenge'>> {
    const factor = factors.find(({ type }) => type === 'totp');
    return factor === undefined ? {} : { authentication_challenge: shownChallenge(await this.challenges.create(context, factor)) };
  }
}
