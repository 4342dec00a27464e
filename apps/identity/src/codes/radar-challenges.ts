import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { GetRadarChallenge } from '#libs/contracts/src/radar/operations';
import type { RadarChallengeWithCode } from '#libs/contracts/src/radar/radar';
import type { RequestContext } from '#libs/platform/src/request-context';
import { radarChallengeDecider, shownCode, type StoredCode } from '../domain/one-time-code.decider.ts';
import type { AddressProof, StoredUser } from '../domain/user.decider.ts';
import { radarChallengesView } from '../views/one-time-codes.view.ts';
import { CodeRequests } from './code-requests.ts';
import { SentCodes, type SentCode } from './sent-codes.ts';

const LIFETIME = 10 * 60_000;

/** Codes that are asked for beside a first factor, since something speaks against a sign-in. */
@Injectable()
export class RadarChallenges {
  private readonly sent: SentCode<'radar_challenge'>;

  constructor(
    private readonly requests: CodeRequests,
    codes: SentCodes,
  ) {
    this.sent = codes.of('radar_challenge', radarChallengeDecider, radarChallengesView);
  }

  @Handles(GetRadarChallenge)
  async get({ context, id }: GetRadarChallenge): Promise<RadarChallengeWithCode> {
    const { code } = await this.sent.read(context, id);
    return { ...shownCode(code), type: 'email', code: await this.sent.digits(context, code) };
  }

  /**
   * The code that works, where there is one, or else another: a sign-in that is tried again needs no further mail.
   * @throws DomainError `rate_limit_exceeded`, `daily_quota_exceeded`
   */
  async current(context: RequestContext, user: StoredUser): Promise<StoredCode<'radar_challenge'>> {
    const working = await this.sent.working(context, user);
    if (working !== null) return working;
    await this.requests.count(context, 'radar_challenge', user.email ?? '');
    return this.sent.create(context, user, LIFETIME);
  }

  /** Spends the code of this challenge on a sign-in; as `MagicAuths.redeem`. @throws DomainError as that */
  async redeem(
    context: RequestContext,
    user: StoredUser,
    given: Omit<AddressProof, 'email'> & { readonly id: string; readonly given: string },
  ): Promise<StoredUser> {
    return (await this.sent.redeem(context, user, given)).user;
  }
}
