import ipaddr from 'ipaddr.js';

/** How many bits of an IPv6 address name whoever has it: the rest they choose freely. */
const IPV6_BITS = 64;

/** Addresses that are known at a time: a client that asks once asks again. */
const MOST_KNOWN = 1_000;
const known = new Map<string, string>();

/** What requests from a network address are counted under: an IPv4 address itself, of an IPv6 address its first 64 bits. Text that is no address stands for itself. */
export function addressGroup(address: string): string {
  let group = known.get(address);
  if (group === undefined) {
    if (known.size === MOST_KNOWN) known.clear();
    known.set(address, (group = groupOf(address)));
  }
  return group;
}

function groupOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toNormalizedString().split('%')[0]}/${IPV6_BITS}`).toString()}/${IPV6_BITS}`;
}
