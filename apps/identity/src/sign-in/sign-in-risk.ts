import { Injectable } from '@nestjs/common';
import type { RadarAuthMethod } from '#libs/contracts/src/radar/radar';
import { passOver } from '#libs/event-sourcing/src/deciding/repository';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { StoredUser } from '../domain/user.decider.ts';
import type { KnownOfAttempt } from '../risk/list-entries.ts';
import { RadarAttempts } from '../risk/radar-attempts.ts';
import { RiskAssessment, type Assessment } from '../risk/risk-assessment.ts';
import { toldAs } from '../risk/risk-verdict.ts';
import { FailedAttempts } from './failed-attempts.ts';
import type { SignInClient } from './sign-in-client.ts';

interface FirstFactor {
  readonly email: string;
  readonly client: SignInClient;
  readonly method: RadarAuthMethod;
  /** Asked for where something was found: events are about users alone. */
  readonly user: () => Promise<StoredUser | null>;
  /** Tells which password is compared, null where there is none; absent: none is. */
  readonly passwordId?: string | null;
  /** An attempt that the application had assessed. */
  readonly attemptId: string | undefined;
}

/** Somebody may try to show who they are. */
export interface Admission {
  /** Whether a code by mail is asked for beside it. */
  readonly isChallenged: boolean;
  readonly assessment: Assessment;
  /** The attempt of the application that it goes by; null: none. */
  readonly attemptId: string | null;
}

/** Asks what speaks against a sign-in before anything that was shown is compared, and tells what came of it. */
@Injectable()
export class SignInRisk {
  constructor(
    private readonly assessment: RiskAssessment,
    private readonly attempts: RadarAttempts,
    private readonly failures: FailedAttempts,
  ) {}

  /**
   * Takes one place among the aggregates that the command asks.
   * @throws DomainError `sign_in_blocked`, `too_many_requests`, `password_reset_required`
   */
  async admit(context: RequestContext, { email, client, method, user, passwordId, attemptId }: FirstFactor): Promise<Admission> {
    const attempt = { ...knownOf(client, email), ...(passwordId !== undefined && { passwordId }) };
    const assessed = attemptId === undefined ? null : await this.attempts.use(context, attemptId, attempt);
    const assessment = assessed ?? (await this.assessment.assess(context, attempt));
    await this.tell(context, assessment, { client, method, user: assessment.finding === null ? null : await user() });
    if (assessment.needsReset) throw new DomainError('forbidden', 'password_reset_required', 'The password was tried too often: reset it.');
    if (assessment.verdict !== 'block') return { isChallenged: assessment.verdict === 'challenge', assessment, attemptId: assessed && attemptId! };
    const { retryAfter } = assessment;
    if (retryAfter !== null) throw new DomainError('limited', 'too_many_requests', 'Too many attempts to sign in have failed.', { retryAfter });
    throw new DomainError('forbidden', 'sign_in_blocked', 'This sign-in is blocked.');
  }

  /** It was shown: this was no failure. */
  async succeeded({ environment }: RequestContext, { assessment, attemptId }: Admission): Promise<void> {
    if (attemptId === null) await this.assessment.succeeded(assessment);
    else await this.attempts.succeededWithSignIn(environment, attemptId, assessment);
  }

  /** As `succeeded`, with a code: that it was asked for was no failure either. */
  async succeededWithCode(context: RequestContext, admission: Admission, codeId: string): Promise<void> {
    await this.succeeded(context, admission);
    await this.attempts.succeededWithCode(context.environment, codeId);
  }

  /** A session has begun: the device is one that somebody signed in with. */
  async signedIn(context: RequestContext, client: SignInClient, { email }: StoredUser): Promise<void> {
    if (email !== null) await this.assessment.signedIn(context, knownOf(client, email));
  }

  private async tell(
    context: RequestContext,
    { finding }: Assessment,
    { client, method, user }: Pick<FirstFactor, 'client' | 'method'> & { readonly user: StoredUser | null },
  ): Promise<void> {
    if (finding === null || user === null) return passOver(context);
    await this.failures.recordRisk(context, {
      auth_method: method,
      action: 'login',
      control: toldAs(finding),
      blocklist_type: finding.blocklistType,
      ip_address: client.ipAddress,
      user_agent: client.userAgent,
      user_id: user.id,
      email: user.email,
    });
  }
}

function knownOf({ ipAddress, userAgent, deviceId }: SignInClient, email: string): KnownOfAttempt {
  return { email, ipAddress, userAgent, deviceId };
}
