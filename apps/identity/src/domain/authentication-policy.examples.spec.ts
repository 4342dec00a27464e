import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { authenticationPolicyDecider } from './authentication-policy.decider.ts';

describe('the log of authentication policy', () =>
  itReadsStoredExamples(
    authenticationPolicyDecider,
    Object.keys(authenticationPolicyDecider.sealed),
    new URL('authentication-policy.examples.json', import.meta.url),
  ));
