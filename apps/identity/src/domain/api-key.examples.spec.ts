import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { apiKeysView } from '../views/api-keys.view.ts';
import { apiKeyDecider } from './api-key.decider.ts';

describe('the log of an API key', () => itReadsStoredExamples(apiKeyDecider, apiKeysView.handles, new URL('api-key.examples.json', import.meta.url)));
