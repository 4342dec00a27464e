import { environmentVariables } from '#libs/platform/src/config/environment';
import { startDnsServer, type DnsServer } from './dns-server.ts';

/** A DNS server that the suite of this file can be told to ask. The cluster that specs share asks at one address, which each file takes in its turn. */
export async function givenDnsServer(): Promise<DnsServer> {
  if (environmentVariables()['SUITE'] !== 'processes') return startDnsServer();
  const { SharedCluster } = await import('./cluster/shared-cluster.ts');
  const { settings } = await SharedCluster.get();
  return startDnsServer(Number(new URL(`dns://${settings['DNS_SERVERS']}`).port));
}
