import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { CreateRadarAttempt, UpdateRadarAttempt } from '#libs/contracts/src/radar/operations';
import type { RadarAssessment } from '#libs/contracts/src/radar/radar';
import { mayHaveRun } from '#libs/event-sourcing/src/deciding/repeats';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { ShortLivedValues } from '#libs/read-models/src/short-lived-values';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { AttemptCounts } from './attempt-counts.ts';
import { isEnforced, RiskAssessment, type Assessment, type AssessedAttempt } from './risk-assessment.ts';

const COLLECTION = 'risk_attempts';
const KNOWN_MS = 10 * 60_000;

interface StoredAttempt {
  readonly assessment: Assessment;
  /** Keyed digest of the address that was tried. */
  readonly account: string;
  readonly isChallengePassed: boolean;
  readonly hasSucceeded: boolean;
  /** Whether a sign-in went by it. */
  readonly isUsed: boolean;
}

/** Attempts that applications ask about. They are known for ten minutes. */
@Injectable()
export class RadarAttempts {
  private readonly entries: ShortLivedValues<StoredAttempt>;

  constructor(
    private readonly assessment: RiskAssessment,
    private readonly counts: AttemptCounts,
    private readonly settings: EnvironmentSettingsReader,
    private readonly clock: Clock,
    store: ShortLived,
  ) {
    this.entries = new ShortLivedValues(store, COLLECTION);
  }

  @Handles(CreateRadarAttempt)
  async create({ context, email, ip_address, user_agent }: CreateRadarAttempt): Promise<RadarAssessment> {
    const { risk } = await this.settings.settings(context);
    if (Object.values(risk).every((measure) => measure === 'off'))
      throw new DomainError('invalid', 'radar_not_enabled', 'Every control of risk is off in the settings of the environment.');
    const id = idOf(context);
    const before = mayHaveRun(context) ? await this.entries.get(keyOf(context.environment, id)) : null;
    const assessed = before?.value.assessment ?? (await this.begin(context, { email, ipAddress: ip_address, userAgent: user_agent, deviceId: null }));
    return toPublicAssessment(id, assessed);
  }

  @Handles(UpdateRadarAttempt)
  async update({ context, id, challenge_status, attempt_status }: UpdateRadarAttempt): Promise<void> {
    const { environment } = context;
    const isChallengePassed = challenge_status === 'success';
    const succeeds = attempt_status === 'success';
    const before = await this.change(environment, id, (stored) => ({
      ...stored,
      isChallengePassed: stored.isChallengePassed || isChallengePassed,
      hasSucceeded: stored.hasSucceeded || succeeds,
    }));
    if (before === null) throw notFound('Radar attempt', id);
    if (!succeeds || before.hasSucceeded) return;
    await this.assessment.succeeded(before.assessment);
    await this.counts.remember(environment, before.assessment.counted.device);
  }

  /** Assesses an attempt, which can be named from now on by the id of the command. */
  async begin(context: RequestContext, attempt: AssessedAttempt): Promise<Assessment> {
    const assessment = await this.assessment.assess(context, attempt);
    const stored: StoredAttempt = {
      assessment,
      account: this.counts.accountOf(attempt.email),
      isChallengePassed: false,
      hasSucceeded: false,
      isUsed: false,
    };
    await this.entries.put(keyOf(context.environment, idOf(context)), stored, this.clock.now() + KNOWN_MS);
    return assessment;
  }

  /** What was thought of an attempt for this address, once; null where it was asked for before, or there is none. A challenge that was passed is none any more. */
  async use({ environment }: RequestContext, id: string, { email, passwordId }: AssessedAttempt): Promise<Assessment | null> {
    const account = this.counts.accountOf(email);
    const before = await this.change(environment, id, (stored) => (stored.account === account && !stored.isUsed ? { ...stored, isUsed: true } : null));
    if (before === null || before.account !== account || before.isUsed) return null;
    const { assessment, isChallengePassed } = before;
    const verdict = assessment.verdict === 'challenge' && isChallengePassed ? 'allow' : assessment.verdict;
    const { run } = assessment.counted;
    if (passwordId === undefined || run === null || verdict === 'block') return { ...assessment, verdict };
    const { risk } = await this.settings.settings({ environment });
    const isSpent = await this.counts.countTryOfPassword(run, passwordId);
    return { ...assessment, verdict, needsReset: isSpent && isEnforced(risk.brute_force_attack), counted: { ...assessment.counted, byPassword: true } };
  }

  /** Answers what was stored before; null where nothing is. A change to null leaves it as it is. */
  private async change(environment: string, id: string, change: (stored: StoredAttempt) => StoredAttempt | null): Promise<StoredAttempt | null> {
    const key = keyOf(environment, id);
    for (;;) {
      const entry = await this.entries.get(key);
      const changed = entry === null ? null : change(entry.value);
      if (entry === null || changed === null) return entry?.value ?? null;
      if (await this.entries.replace(key, entry, changed)) return entry.value;
    }
  }
}

function idOf({ commandId }: RequestContext): string {
  return `radar_att_${derivedId(commandId, 0)}`;
}

function keyOf(environment: string, id: string): string {
  return `${environment} ${id}`;
}

function toPublicAssessment(attempt_id: string, { verdict, reason, control, blocklistType }: Assessment): RadarAssessment {
  return { verdict, reason, attempt_id, ...(control !== null && { control }), ...(blocklistType !== null && { blocklist_type: blocklistType }) };
}
