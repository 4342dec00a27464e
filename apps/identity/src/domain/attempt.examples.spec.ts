import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { attemptDecider } from './attempt.decider.ts';

describe('the log of a failed attempt', () =>
  itReadsStoredExamples(attemptDecider, Object.keys(attemptDecider.sealed), new URL('attempt.examples.json', import.meta.url)));
