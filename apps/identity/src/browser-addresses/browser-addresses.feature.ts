import { feature } from '#libs/runtime/src/feature';
import { browserAddressesDecider } from '../domain/browser-addresses.decider.ts';
import { BrowserAddresses } from './browser-addresses.ts';

export const browserAddresses = feature({ deciders: [browserAddressesDecider], providers: [BrowserAddresses] });
