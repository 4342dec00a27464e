import { Resolver } from 'node:dns/promises';
import type { IdentitySettings } from '#libs/platform/src/config/settings';

/** Of the first try; the second takes twice as long. */
const TIMEOUT = 1_000;
const TRIES = 2;

/** Asks the DNS servers of the settings. */
export function dnsResolver({ DNS_SERVERS }: Pick<IdentitySettings, 'DNS_SERVERS'>): Resolver {
  const resolver = new Resolver({ timeout: TIMEOUT, tries: TRIES });
  if (DNS_SERVERS.length > 0) resolver.setServers(DNS_SERVERS);
  return resolver;
}
