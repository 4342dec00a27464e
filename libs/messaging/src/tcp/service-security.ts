import { hkdfSync, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { BlockList, isIP, type Socket } from 'node:net';
import type { ConnectionOptions, TlsOptions, TLSSocket } from 'node:tls';
import { StartRefused } from '#libs/platform/src/start-refused';

/** How services know each other. Null on both sides: they do not, so nobody but this machine may be able to reach them. */
export interface ServiceSecurity {
  readonly server: TlsOptions | null;
  readonly client: ConnectionOptions | null;
  /** Why whoever connected is not to be let in although its handshake was good; null where it may. */
  readonly refusalOf: (socket: Socket) => Error | null;
}

interface SecuritySettings {
  /** Known to every service of the cluster, and to nobody else. */
  readonly SERVICE_KEY: string | null;
  /** Paths of files in PEM. */
  readonly SERVICE_TLS_CERT: string | null;
  readonly SERVICE_TLS_KEY: string | null;
  readonly SERVICE_TLS_CA: string | null;
  /** One of them stands in the certificate of every service. */
  readonly SERVICE_TLS_NAMES: readonly string[];
}

const noRefusal = (): null => null;

/** The ephemeral exchange keeps what was recorded unreadable after the key has leaked. TLS 1.3 as Node has it takes no key that both sides hold already. */
const PRE_SHARED = { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const;
const IDENTITY = 'gatehouse';
const HANDSHAKE = 5_000;

/** @throws StartRefused when the settings do not go together, or a file cannot be read */
export async function serviceSecurity(settings: SecuritySettings): Promise<ServiceSecurity> {
  const { SERVICE_KEY, SERVICE_TLS_CERT, SERVICE_TLS_KEY, SERVICE_TLS_CA, SERVICE_TLS_NAMES: names } = settings;
  const files = { SERVICE_TLS_CERT, SERVICE_TLS_KEY, SERVICE_TLS_CA };
  const missing = Object.entries(files).flatMap(([name, path]) => (path === null ? [name] : []));
  if (missing.length < 3) {
    if (missing.length > 0) throw new StartRefused(`Services cannot prove who they are by certificates without ${missing.join(' and ')}.`);
    if (SERVICE_KEY !== null) throw new StartRefused('SERVICE_KEY and SERVICE_TLS_CERT are both set: services prove who they are by one of the two.');
    // One after the other: of several that cannot be read, the first is told.
    const cert = await pem('SERVICE_TLS_CERT', SERVICE_TLS_CERT!);
    const key = await pem('SERVICE_TLS_KEY', SERVICE_TLS_KEY!);
    const ca = await pem('SERVICE_TLS_CA', SERVICE_TLS_CA!);
    requireName(cert, names);
    return byCertificates({ cert, key, ca }, names);
  }
  return SERVICE_KEY === null ? { server: null, client: null, refusalOf: noRefusal } : byKey(SERVICE_KEY);
}

/**
 * An authority of a company signs for more than this cluster, so a certificate also has to carry a name that says what it is for. Which replica it belongs to is not
 * asked: they are found by address, and come and go.
 */
function byCertificates(files: Pick<TlsOptions, 'cert' | 'key' | 'ca'>, names: readonly string[]): ServiceSecurity {
  const both = { ...files, minVersion: 'TLSv1.3', rejectUnauthorized: true } as const;
  const refusalOf = (certificate: X509Certificate | undefined): Error | null =>
    certificate !== undefined && carriesOneOf(certificate, names)
      ? null
      : Object.assign(new Error(`Its certificate is not for ${names.join(' or ')}.`), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  return {
    server: { ...both, requestCert: true, handshakeTimeout: HANDSHAKE },
    client: { ...both, checkServerIdentity: (_host, { raw }) => refusalOf(new X509Certificate(raw)) ?? undefined },
    refusalOf: (socket) => refusalOf((socket as TLSSocket).getPeerX509Certificate()),
  };
}

/** Others would refuse it. @throws StartRefused */
function requireName(pem: Buffer, names: readonly string[]): void {
  let own: X509Certificate;
  try {
    own = new X509Certificate(pem);
  } catch {
    throw new StartRefused('SERVICE_TLS_CERT holds no certificate in PEM.');
  }
  if (!carriesOneOf(own, names))
    throw new StartRefused(
      `The certificate in SERVICE_TLS_CERT is not for ${names.join(' or ')}: have one signed with that DNS name, or set SERVICE_TLS_NAMES.`,
    );
}

/** The common name counts where there is no DNS name. Wildcards do not: they stand for whole domains. */
function carriesOneOf(certificate: X509Certificate, names: readonly string[]): boolean {
  return names.some((name) => certificate.checkHost(name, { subject: 'default', wildcards: false }) !== undefined);
}

function byKey(text: string): ServiceSecurity {
  const key = Buffer.from(hkdfSync('sha256', text, '', 'gatehouse between services', 32));
  return {
    server: { ...PRE_SHARED, handshakeTimeout: HANDSHAKE, pskCallback: (_socket, identity) => (identity === IDENTITY ? key : null) },
    client: { ...PRE_SHARED, pskCallback: () => ({ psk: key, identity: IDENTITY }), checkServerIdentity: () => undefined },
    refusalOf: noRefusal,
  };
}

async function pem(setting: string, path: string): Promise<Buffer> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new StartRefused(`${setting}: ${path} cannot be read (${error.code ?? error.message}).`);
  });
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** @throws StartRefused where others than this machine could reach a service that would believe anybody */
export function requireSafe(host: string, { server }: ServiceSecurity): void {
  if (server !== null || host === 'localhost') return;
  const family = isIP(host);
  if (family !== 0 && loopback.check(host, family === 6 ? 'ipv6' : 'ipv4')) return;
  throw new StartRefused(
    `SERVICE_HOST is ${host}, where others can reach it: set SERVICE_KEY (the same for every service), or SERVICE_TLS_CERT, SERVICE_TLS_KEY and SERVICE_TLS_CA; or listen on 127.0.0.1.`,
  );
}
