import { Injectable } from '@nestjs/common';
import { createIsbotFromList, list } from 'isbot';
import type { RiskControls, RiskMeasure } from '#libs/contracts/src/environment-settings/environment-settings';
import { Metrics } from '#libs/platform/src/metrics';
import type { RequestContext } from '#libs/platform/src/request-context';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { AttemptCounts, type CountedAttempt } from './attempt-counts.ts';
import type { KnownOfAttempt } from './list-entries.ts';
import { RiskLists } from './risk-lists.ts';
import { verdictOf, weightiest, type Finding, type RiskVerdict } from './risk-verdict.ts';

/** One pattern takes any bare name for that of a program: apps call themselves so, and it is their people who sign in. */
const isProgram = createIsbotFromList(list.filter((pattern) => !new RegExp(pattern, 'i').test('Firefox')));
/** In ten minutes, from one address: so many failures, and failures of so many accounts. */
const FAILURES_OF_AN_ADDRESS = 100;
const ACCOUNTS_OF_AN_ADDRESS = 20;

/** Somebody is about to show who they are. Where nobody knows the address, controls by address find nothing. */
export interface AssessedAttempt extends KnownOfAttempt {
  /** Tells which password of ours is compared, null where the account has none; absent: none is. */
  readonly passwordId?: string | null;
}

/** The verdict, and what it is decided by. */
export interface Assessment extends RiskVerdict {
  /** What weighed most, also where it is recorded alone; null: nothing. */
  readonly finding: Finding | null;
  /** Where one has to wait: how long (seconds). */
  readonly retryAfter: number | null;
  /** Whether the password was tried too often to be of use. */
  readonly needsReset: boolean;
  readonly counted: CountedAttempt;
}

/** Tells what speaks against an attempt, before anything that was shown is compared, and what an environment does about it. */
@Injectable()
export class RiskAssessment {
  private readonly findings;

  constructor(
    private readonly settings: EnvironmentSettingsReader,
    private readonly lists: RiskLists,
    private readonly counts: AttemptCounts,
    metrics: Metrics,
  ) {
    this.findings = metrics.counter({
      name: 'risk_findings_total',
      help: 'What controls of risk found: the one of an attempt that weighs most, with what the environment does about it.',
      labels: ['control', 'measure'],
    });
  }

  /** Counts the attempt as a failure until `succeeded` is told. @throws DomainError `service_unavailable` */
  async assess(context: RequestContext, attempt: AssessedAttempt): Promise<Assessment> {
    const { environment } = context;
    const { risk } = await this.settings.settings(context);
    const listed = await this.lists.find(context, attempt);
    const findings: Finding[] = [];
    const found = (by: keyof RiskControls, reason: string): number => findings.push({ by, reason, blocklistType: null });
    const isLifted = listed.allow !== null;
    if (!isLifted && listed.block !== null)
      findings.push({ by: 'restriction', reason: `The ${listed.block} is on the block list.`, blocklistType: listed.block });
    if (!isLifted && risk.bot_detection !== 'off' && attempt.userAgent !== null && isProgram(attempt.userAgent))
      found('bot_detection', 'The browser is a program.');
    let counted: CountedAttempt = { run: null, byPassword: attempt.passwordId !== undefined, address: null, device: this.counts.deviceOf(attempt) };
    const isOver = (): boolean => verdictOf(weightiest(findings, risk), risk).verdict === 'block';
    const account = this.counts.accountOf(attempt.email);
    if (!isOver() && !isLifted && attempt.ipAddress !== null && !(risk.brute_force_attack === 'off' && risk.credential_stuffing === 'off')) {
      const { address, attempts, accounts } = await this.counts.countForAddress(environment, account, attempt.ipAddress);
      counted = { ...counted, address };
      if (attempts > FAILURES_OF_AN_ADDRESS) found('brute_force_attack', 'Too many attempts from this address have failed.');
      if (accounts > ACCOUNTS_OF_AN_ADDRESS) found('credential_stuffing', 'Too many accounts were tried from this address.');
    }
    let retryAfter: number | null = null;
    let needsReset = false;
    if (!isOver() && risk.brute_force_attack !== 'off') {
      const isHeld = (waitMs: number, isSpent: boolean): boolean =>
        (risk.brute_force_attack === 'block' && waitMs > 0) || (isSpent && isEnforced(risk.brute_force_attack));
      const { device } = counted;
      const tried = await this.counts.countForAccount(environment, account, { device, passwordId: attempt.passwordId, isHeld });
      counted = { ...counted, run: tried.run };
      if (tried.waitMs > 0 || tried.needsReset) found('brute_force_attack', 'Too many attempts for this account have failed in a row.');
      if (tried.needsReset && isEnforced(risk.brute_force_attack)) needsReset = true;
      else if (tried.waitMs > 0) retryAfter = Math.ceil(tried.waitMs / 1_000);
    }
    const finding = weightiest(findings, risk);
    if (finding !== null) this.findings.inc({ control: finding.by, measure: risk[finding.by] });
    return { ...verdictOf(finding, risk), finding, retryAfter, needsReset, counted };
  }

  /** Somebody showed who they are. */
  async succeeded({ counted }: Pick<Assessment, 'counted'>): Promise<void> {
    await this.counts.succeeded(counted);
  }

  /** Somebody is signed in, from this device. */
  async signedIn({ environment }: RequestContext, known: KnownOfAttempt): Promise<void> {
    await this.counts.remember(environment, this.counts.deviceOf(known));
  }
}

/** Whether a password that was tried too often is of no use any more. */
export function isEnforced(bruteForce: RiskMeasure): boolean {
  return bruteForce === 'challenge' || bruteForce === 'block';
}
