import { isIP, isIPv6 } from 'node:net';

/** How a setting's text becomes its value. */
export interface Kind<Value> {
  /** Completes the sentence "… must be". */
  readonly allowed: string;
  /** `undefined` where the text is not allowed. */
  readonly read: (text: string) => Value | undefined;
}

export function text(allowed: string, pattern: RegExp): Kind<string> {
  return { allowed, read: (given) => (pattern.test(given) ? given : undefined) };
}

export function oneOf<const Value extends string>(...values: readonly Value[]): Kind<Value> {
  return { allowed: values.join(' or '), read: (given) => values.find((value) => value === given) };
}

/** `on` or `off`, so that `RATE_LIMITS=off` reads as it is meant. */
export const flag: Kind<boolean> = {
  allowed: 'on or off',
  read: (given) => (given === 'on' ? true : given === 'off' ? false : undefined),
};

export function integer({ minimum, maximum }: { readonly minimum: number; readonly maximum: number }): Kind<number> {
  return {
    allowed: `a whole number from ${minimum} to ${maximum}`,
    read: (given) => (/^\d{1,15}$/.test(given) && Number(given) >= minimum && Number(given) <= maximum ? Number(given) : undefined),
  };
}

const BYTES: Readonly<Record<string, number>> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** A number of bytes: `512MiB`. */
export const bytes: Kind<number> = {
  allowed: 'a size such as 512MiB or 1GiB',
  read: (given) => {
    const match = /^(\d{1,9}) ?(KiB|MiB|GiB|TiB|)$/.exec(given);
    return match === null ? undefined : Number(match[1]) * BYTES[match[2]!]!;
  },
};

/** A number of bytes with a lower limit. */
export function size({ minimum }: { readonly minimum: string }): Kind<number> {
  return {
    allowed: `a size of at least ${minimum}, such as 512KiB or 4MiB`,
    read: (given) => {
      const value = bytes.read(given);
      return value === undefined || value < bytes.read(minimum)! ? undefined : value;
    },
  };
}

const MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds, written with a unit: `250ms`, `30s`, `24h`, `90d`. */
export function duration({ minimum, maximum }: { readonly minimum: string; readonly maximum: string }): Kind<number> {
  return {
    allowed: `a time from ${minimum} to ${maximum}, such as 250ms, 30s, 5m, 24h or 90d`,
    read: (given) => {
      const value = milliseconds(given);
      return value === undefined || value < milliseconds(minimum)! || value > milliseconds(maximum)! ? undefined : value;
    },
  };
}

/** `undefined` for a text that is no duration. */
export function milliseconds(given: string): number | undefined {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(given);
  return match === null ? undefined : Number(match[1]) * MILLISECONDS[match[2]!]!;
}

export function listOf<Value>(kind: Kind<Value>): Kind<readonly Value[]> {
  return {
    allowed: `a comma-separated list, each ${kind.allowed}`,
    read: (given) => {
      const values = given
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== '')
        .map((part) => kind.read(part));
      return values.includes(undefined) ? undefined : (values as readonly Value[]);
    },
  };
}

/** Where to connect to. */
export const hostAndPort: Kind<string> = {
  allowed: 'a host and a port such as broker:9092 or [::1]:9092',
  read: (given) => {
    const match = /^(?:\[(?<v6>[^\]]+)\]|[A-Za-z0-9._-]{1,253}):(?<port>\d{1,5})$/.exec(given);
    if (match === null || Number(match.groups!['port']) > 65_535) return undefined;
    return match.groups!['v6'] === undefined || isIPv6(match.groups!['v6']) ? given : undefined;
  },
};

/** An address, or a block of them with its prefix length. */
export const network: Kind<string> = {
  allowed: 'an address or a block such as 10.0.0.0/8',
  read: (given) => {
    const [address, prefix, ...rest] = given.split('/');
    if (isIP(address!) === 0 || rest.length > 0) return undefined;
    if (prefix === undefined) return given;
    return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (isIPv6(address!) ? 128 : 32) ? given : undefined;
  },
};

/** What `dns.setServers` takes. */
export const dnsServer: Kind<string> = {
  allowed: 'an address with an optional port, such as 1.1.1.1, 127.0.0.1:5353 or [::1]:53',
  read: (given) => {
    const match = /^(?:\[(?<v6>[^\]]+)\]|(?<v4>[\d.]+))(?::(?<port>\d{1,5}))?$/.exec(given);
    const address = match?.groups?.['v6'] ?? match?.groups?.['v4'] ?? given;
    return isIP(address) !== 0 && Number(match?.groups?.['port'] ?? 53) <= 65535 ? given : undefined;
  },
};
