import { Injectable } from '@nestjs/common';
import { DomainError } from '#libs/platform/src/domain-error';
import { MagicAuths } from '../../codes/magic-auths.ts';
import { foldedEmail } from '../../domain/user.decider.ts';
import { EnvironmentSettingsReader } from '../../readers/environment-settings-reader.ts';
import { Attempts } from '../attempts.ts';
import { SessionIds } from '../session-ids.ts';
import type { SignInClient } from '../sign-in-client.ts';
import { SignInRisk } from '../sign-in-risk.ts';
import { SignInPeople } from '../sign-in-people.ts';
import type { Given, Grant, Proof } from './grant.ts';

/** Address and the code that was sent there. */
@Injectable()
export class MagicAuthGrant implements Grant<'email' | 'code'> {
  readonly type = 'urn:{vendor}:oauth:grant-type:magic-auth:code';
  readonly needs = ['email', 'code'] as const;
  readonly needsSecret = true;

  constructor(
    private readonly settings: EnvironmentSettingsReader,
    private readonly people: SignInPeople,
    private readonly magicAuths: MagicAuths,
    private readonly attempts: Attempts,
    private readonly risk: SignInRisk,
    private readonly ids: SessionIds,
  ) {}

  /** @throws DomainError `authentication_method_not_allowed`, `too_many_requests`, and as `SignInRisk.admit` and `MagicAuths.redeem` */
  async prove({ context, email, code, radar_auth_attempt_id: attemptId }: Given<'email' | 'code'>, client: SignInClient): Promise<Proof> {
    const { sign_in_methods } = await this.settings.settings(context);
    if (!sign_in_methods.magic_auth) throw new DomainError('forbidden', 'authentication_method_not_allowed', 'Nobody signs in with a code by mail here.');
    await this.attempts.count(context, foldedEmail(email));
    const found = () => this.people.withEmail(context, email);
    const admission = await this.risk.admit(context, { email, client, method: 'Email_OTP', attemptId, user: found });
    const sessionId = await this.ids.ofShown(context, client.id, 'magic_auth', foldedEmail(email), code);
    const { user, magicAuthId } = await this.attempts.redeemed(context, 'magic_auth', () => this.magicAuths.redeem(context, { email, code, sessionId }), {
      client,
      user_id: async () => (await found())?.id ?? null,
      email,
    });
    await this.risk.succeededWithCode(context, admission, magicAuthId);
    return { sessionId, user, factor: 'magic_auth', chosen: null, isChallenged: admission.isChallenged, holdsFactor: false, token: null };
  }
}
