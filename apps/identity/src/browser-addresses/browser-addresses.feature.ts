import { feature } from '#libs/runtime/src/feature';
import { browserAddressesDecider, type BrowserAddressesEvent } from '../domain/browser-addresses.decider.ts';
import { BrowserAddresses } from './browser-addresses.ts';

export const browserAddresses = feature({
  deciders: [browserAddressesDecider],
  providers: [BrowserAddresses],
  removals: ['redirect_uri.deleted', 'cors_origin.deleted'] satisfies BrowserAddressesEvent['type'][],
});
