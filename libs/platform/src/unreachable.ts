import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

const PROBE_MS = 2_000;
/** By the codes that Node gives; what tells most is first. Nothing else of an error is said: it may hold a part of a connection string. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'its certificate is for another name'],
  [/^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/, 'its certificate is not valid at this time'],
  [
    /^(CERT_\w+|\w+_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|INVALID_CA|INVALID_PURPOSE)$/,
    'its certificate is not signed by an authority that is trusted',
  ],
  [/^(EPROTO|ERR_SSL_\w+)$/, 'it does not speak TLS as it is asked to'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'its host name has no address'],
  [/^(EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/, 'no way leads to its host'],
  [/^ECONNREFUSED$/, 'nobody listens there'],
];

/** Where something was to be reached, and whether by TLS; without `ca` those are trusted that Node trusts. */
export interface Endpoints {
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly tls: { readonly ca: string | null } | null;
}

/** What a refusal adds about the cause of an error: a colon and some words; nothing where it is none that is known. */
export function causeOf(error: unknown): string {
  const codes = codesIn(error);
  for (const [pattern, words] of CAUSES) {
    const code = codes.find((each) => pattern.test(each));
    if (code !== undefined) return `: ${words} (${code})`;
  }
  return '';
}

/** The same for a driver that keeps the cause to itself: connects to each host, and says nothing there. */
export async function causeAt({ hosts, tls }: Endpoints): Promise<string> {
  const errors = await Promise.all(
    hosts.map(({ host, port }) => {
      if (tls === null) return failureOf(connectTcp({ host, port }), 'connect');
      const options = { host, port, ALPNProtocols: ['h2'], ...(isIP(host) === 0 ? { servername: host } : {}), ...(tls.ca === null ? {} : { ca: tls.ca }) };
      return failureOf(connectTls(options), 'secureConnect');
    }),
  );
  return causeOf(new AggregateError(errors.filter((error) => error !== null)));
}

async function failureOf(socket: Socket, connected: 'connect' | 'secureConnect'): Promise<Error | null> {
  try {
    return await new Promise((resolve) => {
      socket.once(connected, () => resolve(null));
      socket.once('error', resolve);
      socket.setTimeout(PROBE_MS, () => resolve(Object.assign(new Error(), { code: 'ETIMEDOUT' })));
    });
  } finally {
    socket.on('error', () => {});
    socket.destroy();
  }
}

/** The codes of an error and of those that it comes from; MongoDB's driver keeps one for each server. */
function codesIn(error: unknown): readonly string[] {
  if (typeof error !== 'object' || error === null) return [];
  const { code, cause, errors, reason } = error as {
    readonly cause?: unknown;
    readonly code?: unknown;
    readonly errors?: readonly unknown[];
    readonly reason?: { readonly servers?: ReadonlyMap<string, { readonly error: unknown }> };
  };
  const servers = [...(reason?.servers?.values() ?? [])].map((server) => server.error);
  return [...(typeof code === 'string' ? [code] : []), ...[cause, ...(errors ?? []), ...servers].flatMap(codesIn)];
}
