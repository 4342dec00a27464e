import { Injectable } from '@nestjs/common';
import { DomainError, isNotFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { AuthenticationChallenges, type Challenge } from '../../authentication-factors/authentication-challenges.ts';
import { SecondFactors } from '../../authentication-factors/second-factors.ts';
import { isRemoved, type BegunSignIn, type StoredFactor } from '../../domain/authentication-factor.decider.ts';
import { invalidCode } from '../../domain/one-time-code.decider.ts';
import type { StoredUser } from '../../domain/user.decider.ts';
import { Attempts } from '../attempts.ts';
import { ContinuedSignIns } from '../continued-sign-ins.ts';
import { PendingAuthentications, proofOf } from '../pending-authentications.ts';
import type { SignInClient } from '../sign-in-client.ts';
import type { Given, Grant, Proof } from './grant.ts';

type Needed = 'code' | 'pending_authentication_token' | 'authentication_challenge_id';

/** What sign-in calls what challenges call otherwise. */
const SIGN_IN_CODES: Readonly<Record<string, string>> = {
  authentication_challenge_previously_verified: 'one_time_code_previously_used',
  authentication_challenge_expired: 'one_time_code_expired',
  // As where it was verified before.
  verified_phone_number_exists: 'invalid_one_time_code',
};

/** A second factor, by a challenge of one that counts, or of the first that the user enrols. */
@Injectable()
export class MfaTotpGrant implements Grant<Needed> {
  readonly type = 'urn:{vendor}:oauth:grant-type:mfa-totp';
  readonly needs = ['code', 'pending_authentication_token', 'authentication_challenge_id'] as const;
  readonly needsSecret = true;

  constructor(
    private readonly continued: ContinuedSignIns,
    private readonly pending: PendingAuthentications,
    private readonly challenges: AuthenticationChallenges,
    private readonly factors: SecondFactors,
    private readonly attempts: Attempts,
  ) {}

  /**
   * @throws DomainError `invalid_pending_authentication_token`, `too_many_requests`, `user_mismatch`, `invalid_one_time_code`, `one_time_code_previously_used`,
   *   `one_time_code_expired`, `one_time_code_too_many_attempts`
   */
  async prove(given: Given<Needed>, client: SignInClient): Promise<Proof> {
    const { context, pending_authentication_token: token } = given;
    const { pending, user, begun } = await this.continued.require(context, client, token);
    await this.attempts.redeemed(context, 'mfa', () => this.redeem(given, { user, begun, sessionId: pending.session_id }), {
      client,
      user_id: async () => user.id,
      email: user.email ?? '',
    });
    await this.pending.passFactor(token);
    return { ...proofOf(pending, token), user, factor: 'mfa', holdsFactor: true };
  }

  private async redeem(
    { context, code, authentication_challenge_id: id }: Given<Needed>,
    { user, begun, sessionId }: { readonly user: StoredUser; readonly begun: BegunSignIn | null; readonly sessionId: string },
  ): Promise<void> {
    const { challenge, factor } = await this.challenged(context, id);
    if (factor.user_id !== user.id) throw new DomainError('invalid', 'user_mismatch', 'The challenge is of another user than the one who signs in.');
    await this.attempts.countFactor(context, factor.id);
    const counting = begun === null ? null : await this.factors.counting(context, user, begun);
    const mayCount = counting === null ? challenge.verified?.by === sessionId : !isRemoved(factor, user) && isAmong(factor, counting);
    if (!mayCount) throw invalidCode();
    const only = counting?.length === 0 ? { onlyOf: user } : {};
    try {
      if ((await this.challenges.verify(context, factor, id, { code, by: sessionId, ...only })) === null) throw invalidCode();
      await this.factors.requireHolding(context, user, factor);
    } catch (error) {
      const known = error instanceof DomainError ? SIGN_IN_CODES[error.code] : undefined;
      throw known === undefined ? error : new DomainError('conflict', known, (error as DomainError).message);
    }
  }

  /** Whoever knows no challenge learns nothing of any. */
  private async challenged(context: RequestContext, challengeId: string): Promise<{ readonly challenge: Challenge; readonly factor: StoredFactor }> {
    try {
      return await this.challenges.require(context, challengeId);
    } catch (error) {
      throw isNotFound(error) ? invalidCode() : error;
    }
  }
}

/** Where the user has a factor, whoever signs in cannot bring another one. */
function isAmong({ id }: StoredFactor, counting: readonly StoredFactor[]): boolean {
  return counting.length === 0 || counting.some((factor) => factor.id === id);
}
