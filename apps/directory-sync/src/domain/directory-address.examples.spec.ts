import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { directoryAddressesView } from '../views/directory-addresses.view.ts';
import { directoryAddressDecider } from './directory-address.decider.ts';

describe('the log of a directory address', () =>
  itReadsStoredExamples(directoryAddressDecider, directoryAddressesView.handles, new URL('directory-address.examples.json', import.meta.url)));
