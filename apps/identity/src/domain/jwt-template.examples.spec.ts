import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { jwtTemplateDecider } from './jwt-template.decider.ts';

describe('the log of jwt template', () =>
  itReadsStoredExamples(jwtTemplateDecider, Object.keys(jwtTemplateDecider.sealed), new URL('jwt-template.examples.json', import.meta.url)));
