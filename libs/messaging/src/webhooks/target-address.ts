import ipaddr from 'ipaddr.js';
import type { Mode } from '#libs/platform/src/config/setting';
import { refusedField } from '#libs/platform/src/domain-error';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = [Address, number];

/** Where an application on the same machine or in the same network listens; only development mode goes there unasked. */
const PRIVATE_RANGES: readonly string[] = ['loopback', 'private', 'uniqueLocal', 'carrierGradeNat'];

/** Addresses at which clouds tell a machine its own credentials; those that are link-local go with their whole range. */
const METADATA = ['100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32', 'fd00:ec2::254/128', 'fd20:ce::254/128'].map(parseNetwork);

const GLOBAL_IPV6 = parseNetwork('2000::/3');
/** Deprecated, but some stacks still connect to the IPv4 address inside. */
const IPV4_COMPATIBLE = parseNetwork('::/96');
const NAT64 = parseNetwork('64:ff9b::/96');

const MISLEADING = /[\s\p{Cc}\\]/u;
/** Also where it is empty: the URL standard drops it. */
const HAS_USER = /^[a-z]+:\/*[^/?#]*@/i;

interface Options {
  readonly mode: Mode;
  /** Addresses and CIDR blocks that may be private. */
  readonly allowNetworks: readonly string[];
}

/** Whom a webhook may reach: the public internet, never this machine's neighbours or its cloud, unless they were named or this is development. */
export class TargetRule {
  private readonly allowed: readonly Network[];

  constructor(private readonly options: Options) {
    this.allowed = options.allowNetworks.map(parseNetwork);
  }

  /** Judges an address that is about to be connected to, in whatever spelling. */
  allows(text: string): boolean {
    if (!ipaddr.isValid(text)) return false;
    const address = unwrapped(ipaddr.parse(text));
    const range = address.range();
    if (range === 'linkLocal' || METADATA.some((network) => isIn(address, network))) return false;
    if (this.allowed.some((network) => isIn(address, network))) return true;
    if (this.options.mode === 'development' && PRIVATE_RANGES.includes(range)) return true;
    return range === 'unicast' && (address.kind() === 'ipv4' || isIn(address, GLOBAL_IPV6));
  }

  /**
   * The URL as it is stored and shown, and in the one spelling that all its spellings share. What its name leads to is judged at each connection, since that may
   * change.
   * @throws DomainError `invalid_url`
   */
  url(text: string): { readonly endpoint_url: string; readonly normalised_url: string } {
    const problem = this.problemOf(text);
    if (problem !== null) throw refusedField('invalid', 'invalid_url', { field: 'endpoint_url', message: `The endpoint_url ${problem}.` });
    const url = new URL(text);
    const endpoint_url = url.href;
    url.hash = '';
    return { endpoint_url, normalised_url: url.href };
  }

  /** Why nothing may be sent to a URL, as the end of a sentence; null where it may. */
  problemOf(text: string): string | null {
    // The URL standard passes over some of these and takes others for what they are not: people would read another address than is connected to.
    if (MISLEADING.test(text)) return 'must not hold spaces, control characters or backslashes';
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url === null || !['http:', 'https:'].includes(url.protocol)) return 'is not an https URL';
    if (url.protocol === 'http:' && this.options.mode === 'production') return 'must begin with https://';
    if (url.username !== '' || url.password !== '' || HAS_USER.test(text)) return 'must not hold credentials';
    if (url.port === '0') return 'must not name port 0';
    const host = bare(url.hostname);
    const isForbidden = ipaddr.isValid(host) ? !this.allows(host) : isLoopbackName(host) && !this.allows('127.0.0.1');
    return isForbidden ? 'leads to an address that webhooks may not reach' : null;
  }
}

/** A host of a URL without the brackets around an IPv6 address. */
export function bare(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

/** Names that lead to this machine by definition, whatever a server says. */
export function isLoopbackName(host: string): boolean {
  return /^(.+\.)?localhost\.?$/i.test(host);
}

/** The IPv4 address that an IPv6 address stands for, where it stands for one. */
function unwrapped(address: Address): Address {
  if (address.kind() === 'ipv4') return address;
  const v6 = address as ipaddr.IPv6;
  if (v6.isIPv4MappedAddress()) return v6.toIPv4Address();
  const bytes = v6.toByteArray();
  if (isIn(v6, NAT64) || (isIn(v6, IPV4_COMPATIBLE) && v6.range() !== 'loopback' && v6.range() !== 'unspecified')) return new ipaddr.IPv4(bytes.slice(12));
  if (v6.range() === '6to4') return new ipaddr.IPv4(bytes.slice(2, 6));
  return v6;
}

function parseNetwork(text: string): Network {
  if (text.includes('/')) return ipaddr.parseCIDR(text);
  const address = ipaddr.parse(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

function isIn(address: Address, [network, bits]: Network): boolean {
  return address.kind() === network.kind() && address.match(network, bits);
}
