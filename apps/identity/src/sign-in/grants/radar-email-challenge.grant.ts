import { Injectable } from '@nestjs/common';
import { RadarChallenges } from '../../codes/radar-challenges.ts';
import { Attempts } from '../attempts.ts';
import { ContinuedSignIns } from '../continued-sign-ins.ts';
import { PendingAuthentications, proofOf } from '../pending-authentications.ts';
import type { SignInClient } from '../sign-in-client.ts';
import type { Given, Grant, Proof } from './grant.ts';

type Needed = 'code' | 'radar_challenge_id' | 'pending_authentication_token';

/** The code that was sent since something speaks against the sign-in. */
@Injectable()
export class RadarEmailChallengeGrant implements Grant<Needed> {
  readonly type = 'urn:{vendor}:oauth:grant-type:radar-email-challenge:code';
  readonly needs = ['code', 'radar_challenge_id', 'pending_authentication_token'] as const;
  readonly needsSecret = true;

  constructor(
    private readonly continued: ContinuedSignIns,
    private readonly pending: PendingAuthentications,
    private readonly challenges: RadarChallenges,
    private readonly attempts: Attempts,
  ) {}

  /** @throws DomainError `invalid_pending_authentication_token`, `too_many_requests`, and as `RadarChallenges.redeem` */
  async prove({ context, code, radar_challenge_id: id, pending_authentication_token: token }: Given<Needed>, client: SignInClient): Promise<Proof> {
    const { pending, user: before, hasPassword } = await this.continued.require(context, client, token);
    const { session_id: sessionId } = pending;
    await this.attempts.count(context, sessionId);
    const user = await this.challenges.redeem(context, before, { id, given: code, by: sessionId, hasPassword });
    await this.pending.passChallenge(token);
    return { ...proofOf(pending, token), user, factor: null, isChallenged: false };
  }
}
