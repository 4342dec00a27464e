import { Injectable } from '@nestjs/common';
import { EmailVerifications } from '../../codes/email-verifications.ts';
import { Attempts } from '../attempts.ts';
import { ContinuedSignIns } from '../continued-sign-ins.ts';
import { proofOf } from '../pending-authentications.ts';
import type { SignInClient } from '../sign-in-client.ts';
import type { Given, Grant, Proof } from './grant.ts';

/** The code that was sent since the address is not verified yet. */
@Injectable()
export class EmailVerificationGrant implements Grant<'code' | 'pending_authentication_token'> {
  readonly type = 'urn:{vendor}:oauth:grant-type:email-verification:code';
  readonly needs = ['code', 'pending_authentication_token'] as const;
  readonly needsSecret = true;

  constructor(
    private readonly continued: ContinuedSignIns,
    private readonly verifications: EmailVerifications,
    private readonly attempts: Attempts,
  ) {}

  /** @throws DomainError `invalid_pending_authentication_token`, `too_many_requests`, and as `EmailVerifications.redeem` */
  async prove({ context, code, pending_authentication_token: token }: Given<'code' | 'pending_authentication_token'>, client: SignInClient): Promise<Proof> {
    const { pending, user: before, hasPassword } = await this.continued.require(context, client, token);
    const { session_id: sessionId } = pending;
    await this.attempts.count(context, sessionId);
    const redemption = { userId: before.id, code, redeemedBy: sessionId, hasPassword };
    const user = await this.attempts.redeemed(context, 'email_verification', () => this.verifications.redeem(context, redemption), {
      client,
      user_id: async () => before.id,
      email: before.email ?? '',
    });
    return { ...proofOf(pending, token), user, factor: 'email_verification' };
  }
}
