import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { tokenKeysDecider } from './token-keys.decider.ts';

describe('the log of the token keys of an environment', () =>
  itReadsStoredExamples(tokenKeysDecider, Object.keys(tokenKeysDecider.sealed), new URL('token-keys.examples.json', import.meta.url)));
