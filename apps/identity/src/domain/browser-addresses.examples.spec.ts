import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { browserAddressesDecider } from './browser-addresses.decider.ts';

describe('the log of browser addresses', () =>
  itReadsStoredExamples(browserAddressesDecider, Object.keys(browserAddressesDecider.sealed), new URL('browser-addresses.examples.json', import.meta.url)));
