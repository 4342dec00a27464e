import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { riskListDecider } from './risk-list.decider.ts';

describe('the log of lists of risk', () =>
  itReadsStoredExamples(riskListDecider, Object.keys(riskListDecider.sealed), new URL('risk-list.examples.json', import.meta.url)));
