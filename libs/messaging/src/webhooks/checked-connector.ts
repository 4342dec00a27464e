import { Resolver, lookup } from 'node:dns/promises';
import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';
import { bare, isLoopbackName, type TargetRule } from './target-address.ts';

/** All addresses of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/** The target leads somewhere where webhooks may not go; says so without naming the address, which would tell the caller about our network. */
export class TargetRefused extends Error {
  readonly code = 'address_not_allowed';

  constructor() {
    super('The target leads to an address that webhooks may not reach.');
  }
}

/**
 * Connects to an address that was judged itself: a name is resolved once per connection, every answer has to pass, and the socket goes to one of them. The
 * name stays what TLS and the receiver see. Addresses in URLs take the same path, since Node asks no resolver about them.
 */
export function checkedConnector(rule: TargetRule, resolve: Resolve, timeout: number): buildConnector.connector {
  const connect = buildConnector({ timeout });

  const connectTo = (address: string, options: buildConnector.Options): Promise<Socket> =>
    new Promise((done, failed) => connect({ ...options, hostname: address }, (error, socket) => (error === null ? done(socket) : failed(error))));

  const connectChecked = async (options: buildConnector.Options): Promise<Socket> => {
    const host = bare(options.hostname);
    const addresses = ipaddr.isValid(host) ? [host] : await resolve(host);
    if (addresses.length === 0 || !addresses.every((address) => rule.allows(address))) throw new TargetRefused();
    for (const [index, address] of addresses.entries()) {
      try {
        return await connectTo(address, options);
      } catch (error) {
        // A name may have addresses of a family that is not routed here.
        if (index === addresses.length - 1) throw error;
      }
    }
    throw new TargetRefused();
  };

  return (options, callback) => {
    connectChecked(options).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

/**
 * Asks DNS without a thread: a name whose servers do not answer would otherwise hold one of the few that also write to the disk. What DNS does not know may
 * stand in the machine's hosts file.
 */
export function dnsResolve(): Resolve {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  return async (name) => {
    if (isLoopbackName(name)) return ['127.0.0.1', '::1'];
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    if (answers.some((answer) => answer.status === 'rejected' && !isUnknown(answer.reason))) throw (answers[0] as PromiseRejectedResult).reason;
    return (await lookup(name, { all: true })).map(({ address }) => address);
  };
}

function isUnknown(error: unknown): boolean {
  return ['ENOTFOUND', 'ENODATA'].includes((error as NodeJS.ErrnoException).code ?? '');
}
