import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { RiskControls } from '#libs/contracts/src/environment-settings/environment-settings';
import { CreateRadarAttempt, UpdateRadarAttempt } from '#libs/contracts/src/radar/operations';
import type { RadarAssessment } from '#libs/contracts/src/radar/radar';
import { mayHaveRun } from '#libs/event-sourcing/src/deciding/repeats';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import { derivedId, ULID_LENGTH } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { ShortLivedValues } from '#libs/read-models/src/short-lived-values';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { AttemptCounts } from './attempt-counts.ts';
import { isEnforced, RiskAssessment, type Assessment, type AssessedAttempt } from './risk-assessment.ts';

const COLLECTION = 'risk_attempts';
const KNOWN_MS = 10 * 60_000;
const PREFIX = 'radar_att_';

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
    if (isOff(risk)) throw new DomainError('invalid', 'radar_not_enabled', 'Every control of risk is off in the settings of the environment.');
    const id = idOf(context);
    const before = mayHaveRun(context) ? await this.entries.get(keyOf(context.environment, id)) : null;
    const assessed = before?.value.assessment ?? (await this.begin(context, { email, ipAddress: ip_address, userAgent: user_agent, deviceId: null }));
    return toPublicAssessment(id, assessed);
  }

  @Handles(UpdateRadarAttempt)
  async update({ context, id, challenge_status, attempt_status }: UpdateRadarAttempt): Promise<void> {
    const { environment } = context;
    const isChallengePassed = challenge_status === 'success';
    const before = await this.change(environment, id, (stored) => ({ ...stored, isChallengePassed: stored.isChallengePassed || isChallengePassed }));
    if (before === null) throw notFound('Radar attempt', id);
    if (attempt_status !== 'success' || (await this.hasSucceeded(environment, id)) !== false) return;
    await this.assessment.succeeded(before.assessment);
    await this.counts.remember(environment, before.assessment.counted.device);
  }

  /**
   * In which attempt somebody asks for a code: the one that the application had assessed for this address, or another, known by the command that makes the code. Null where
   * there is none: nobody knows where the person is, or every control is off.
   */
  async ofCode(context: RequestContext, attempt: AssessedAttempt, given: string | null): Promise<string | null> {
    const { environment } = context;
    const before = given === null ? null : (await this.entries.get(keyOf(environment, given)))?.value;
    if (before?.account === this.counts.accountOf(attempt.email) && !before.isUsed) return given;
    if (attempt.ipAddress === null || attempt.userAgent === null) return null;
    const { risk } = await this.settings.settings(context);
    if (isOff(risk)) return null;
    const id = idOf(context);
    if (!mayHaveRun(context) || (await this.entries.get(keyOf(environment, id))) === null) await this.begin(context, attempt);
    return id;
  }

  /** Who showed the code reads the mail of the address: that it was asked for was no failure. Nothing where a sign-in went by that attempt, or no attempt was made of it. */
  async succeededWithCode(environment: string, codeId: string): Promise<void> {
    const id = `${PREFIX}${codeId.slice(-ULID_LENGTH)}`;
    const before = (await this.entries.get(keyOf(environment, id)))?.value;
    if (before?.isUsed === false && (await this.hasSucceeded(environment, id)) === false) await this.assessment.succeeded(before.assessment);
  }

  /** Who signed in by this attempt has shown who they are. Its network is told once, whoever says so first. */
  async succeededWithSignIn(environment: string, id: string, { counted }: Assessment): Promise<void> {
    const isCounted = (await this.hasSucceeded(environment, id)) === false;
    await this.assessment.succeeded({ counted: isCounted ? counted : { ...counted, address: null } });
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

  /** From now on it has; whether it had before, null where it is not known any more. */
  private async hasSucceeded(environment: string, id: string): Promise<boolean | null> {
    return (await this.change(environment, id, (stored) => (stored.hasSucceeded ? null : { ...stored, hasSucceeded: true })))?.hasSucceeded ?? null;
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
  return `${PREFIX}${derivedId(commandId, 0)}`;
}

function isOff(risk: RiskControls): boolean {
  return Object.values(risk).every((measure) => measure === 'off');
}

function keyOf(environment: string, id: string): string {
  return `${environment} ${id}`;
}

function toPublicAssessment(attempt_id: string, { verdict, reason, control, blocklistType }: Assessment): RadarAssessment {
  return { verdict, reason, attempt_id, ...(control !== null && { control }), ...(blocklistType !== null && { blocklist_type: blocklistType }) };
}
