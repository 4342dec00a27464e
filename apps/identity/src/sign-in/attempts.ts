import { Injectable } from '@nestjs/common';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { FACTOR_TRIES } from '../authentication-factors/authentication-challenges.ts';
import { PersonalLimits, type PersonalLimit } from '../codes/personal-limits.ts';
import type { Factor } from '../domain/session.decider.ts';
import { FailedAttempts } from './failed-attempts.ts';
import type { SignInClient } from './sign-in-client.ts';

/** Per address or challenge. */
const ATTEMPTS = { most: 10, perSeconds: 60 };

/** Somebody tries to show who they are: so often, and whoever cannot is told of. */
@Injectable()
export class Attempts {
  constructor(
    private readonly limits: PersonalLimits,
    private readonly failures: FailedAttempts,
  ) {}

  /** @throws DomainError `too_many_requests` */
  count(context: RequestContext, whom: string): Promise<void> {
    return this.counted(context, 'authenticate', whom, ATTEMPTS);
  }

  /** Those of a factor count together with those beside sign-in. @throws DomainError `too_many_requests` */
  countFactor(context: RequestContext, factorId: string): Promise<void> {
    return this.counted(context, FACTOR_TRIES.what, factorId, FACTOR_TRIES.limit);
  }

  private async counted({ environment }: RequestContext, what: string, whom: string, limit: PersonalLimit): Promise<void> {
    try {
      await this.limits.count(environment, what, whom, limit);
    } catch (error) {
      if (!(error instanceof DomainError && error.kind === 'limited')) throw error;
      throw new DomainError('limited', 'too_many_requests', 'Too many attempts to sign in.', error.details);
    }
  }

  /** Runs a redemption; a code that is refused is a failed attempt. */
  async redeemed<Result>(
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

  /** Records the failure, and gives back what to throw. */
  async failed(
    context: RequestContext,
    factor: Factor,
    error: DomainError,
    { client, user_id, email }: { readonly client: SignInClient; readonly user_id: string | null; readonly email: string },
  ): Promise<DomainError> {
    await this.failures.record(context, factor, error, { user_id, email, ip_address: client.ipAddress, user_agent: client.userAgent });
    return error;
  }
}
