import { Injectable } from '@nestjs/common';
import { DomainError } from '#libs/platform/src/domain-error';
import { foldedEmail } from '../../domain/user.decider.ts';
import { EnvironmentSettingsReader } from '../../readers/environment-settings-reader.ts';
import { Attempts } from '../attempts.ts';
import { PasswordCheck } from '../password-check.ts';
import { SessionIds } from '../session-ids.ts';
import type { SignInClient } from '../sign-in-client.ts';
import { SignInRisk } from '../sign-in-risk.ts';
import { SignInPeople } from '../sign-in-people.ts';
import { invalidCredentials } from '../sign-in-refusals.ts';
import type { Given, Grant, Proof } from './grant.ts';

/** Address and password. */
@Injectable()
export class PasswordGrant implements Grant<'email' | 'password'> {
  readonly type = 'password';
  readonly needs = ['email', 'password'] as const;
  readonly needsSecret = true;

  constructor(
    private readonly settings: EnvironmentSettingsReader,
    private readonly people: SignInPeople,
    private readonly passwords: PasswordCheck,
    private readonly attempts: Attempts,
    private readonly risk: SignInRisk,
    private readonly ids: SessionIds,
  ) {}

  /** @throws DomainError `email_password_auth_disabled`, `invalid_credentials`, `too_many_requests`, and as `SignInRisk.admit` */
  async prove({ context, email, password, radar_auth_attempt_id: attemptId }: Given<'email' | 'password'>, client: SignInClient): Promise<Proof> {
    const { sign_in_methods } = await this.settings.settings(context);
    if (!sign_in_methods.password) throw new DomainError('forbidden', 'email_password_auth_disabled', 'Nobody signs in with a password here.');
    await this.attempts.count(context, foldedEmail(email));
    const user = await this.people.withEmail(context, email);
    const admission = await this.risk.admit(context, {
      ...{ email, client, method: 'Password', attemptId },
      passwordId: user?.password_id ?? null,
      user: async () => user,
    });
    const isRight = await this.passwords.isRight(context, user, password);
    if (user === null || !isRight) throw await this.attempts.failed(context, 'password', invalidCredentials(), { client, user_id: user?.id ?? null, email });
    await this.risk.succeeded(context, admission);
    const sessionId = await this.ids.ofCommand(context);
    const afterwards = () => this.passwords.rehash(context, user, password);
    return { sessionId, user, factor: 'password', chosen: null, isChallenged: admission.isChallenged, holdsFactor: false, token: null, afterwards };
  }
}
