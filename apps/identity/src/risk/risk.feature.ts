import { feature } from '#libs/runtime/src/feature';
import { riskListDecider, type RiskListEvent } from '../domain/risk-list.decider.ts';
import { AttemptCounts } from './attempt-counts.ts';
import { RadarAttempts } from './radar-attempts.ts';
import { RiskAssessment } from './risk-assessment.ts';
import { RiskLists } from './risk-lists.ts';

export const risk = feature({
  deciders: [riskListDecider],
  providers: [RiskLists, AttemptCounts, RiskAssessment, RadarAttempts],
  removals: ['risk_list.entry_removed'] satisfies RiskListEvent['type'][],
});
