import type { RiskControls, RiskMeasure } from '#libs/contracts/src/environment-settings/environment-settings';
import type { RadarControl, RadarListType, RadarVerdict } from '#libs/contracts/src/radar/radar';

type Measures = Readonly<Record<keyof RiskControls, RiskMeasure>>;

/** Something that speaks against an attempt. */
export interface Finding {
  readonly by: keyof RiskControls;
  /** For people. */
  readonly reason: string;
  /** What of the attempt is on the block list; null: nothing. */
  readonly blocklistType: RadarListType | null;
}

/** What comes of an attempt. */
export interface RiskVerdict {
  readonly verdict: RadarVerdict;
  readonly reason: string;
  /** Null where the verdict is `allow`. */
  readonly control: RadarControl | null;
  readonly blocklistType: RadarListType | null;
}

/** Clients know seven words, and throw at others: many accounts that are tried from one address are told as an attack by force. */
const TOLD_AS: Readonly<Record<keyof RiskControls, RadarControl>> = {
  bot_detection: 'bot_detection',
  brute_force_attack: 'brute_force_attack',
  credential_stuffing: 'brute_force_attack',
  restriction: 'restriction',
};
const WEIGHT: readonly RiskMeasure[] = ['off', 'log', 'challenge', 'block'];
const VERDICTS: Readonly<Record<RiskMeasure, RadarVerdict>> = { off: 'allow', log: 'allow', challenge: 'challenge', block: 'block' };

const NOTHING_FOUND: RiskVerdict = { verdict: 'allow', reason: 'Nothing speaks against this attempt.', control: null, blocklistType: null };

/** The finding that weighs most by what the environment does about it, of several the first; null where none counts. */
export function weightiest(findings: readonly Finding[], measures: Measures): Finding | null {
  const weight = ({ by }: Finding): number => WEIGHT.indexOf(measures[by]);
  return findings.reduce<Finding | null>((most, each) => (weight(each) > (most === null ? 0 : weight(most)) ? each : most), null);
}

export function verdictOf(finding: Finding | null, measures: Measures): RiskVerdict {
  const verdict = finding === null ? 'allow' : VERDICTS[measures[finding.by]];
  if (finding === null || verdict === 'allow') return NOTHING_FOUND;
  return { verdict, reason: finding.reason, control: toldAs(finding), blocklistType: finding.blocklistType };
}

export function toldAs({ by }: Finding): RadarControl {
  return TOLD_AS[by];
}
