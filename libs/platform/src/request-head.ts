import type { IncomingMessage } from 'node:http';
import { badRequest, DomainError } from './domain-error.ts';

/** More than any client or chain of proxies sends. */
const MAX_HEADERS = 100;
/** An identifier of 128 characters, each escaped, in the longest path takes a quarter of it; a query may be longer. */
const MAX_PATH = 4 * 1024;

/** What is wrong with the head of a request that the parser let through, or null. Asked for every request, so it copies nothing. */
export function refusedHead({ rawHeaders, url = '', httpVersionMinor }: IncomingMessage): DomainError | null {
  if (rawHeaders.length > 2 * MAX_HEADERS) return headersTooLarge();
  if (url.length > MAX_PATH && pathLengthOf(url) > MAX_PATH) return uriTooLong();
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) if (isHost(rawHeaders[at]!)) hosts++;
  // Whoever is in front may have gone by another host than the one that is read here.
  if (hosts > 1) return badRequest('The request names its host twice.');
  return hosts === 0 && httpVersionMinor > 0 ? badRequest('The request does not name its host.') : null;
}

/**
 * The path and query that a target names. A client that joins its base address and a path has two slashes there; one that takes us for a proxy sends the whole address, which
 * every server has to take (RFC 9112, section 3.2.2). Nothing here goes by its host.
 */
export function pathAndQueryOf(target: string): string {
  if (!target.startsWith('/')) {
    const origin = /^https?:\/\/[^/?#]*/i.exec(target);
    if (origin === null) return target;
    const rest = target.slice(origin[0].length);
    return rest.startsWith('/') ? pathAndQueryOf(rest) : `/${rest}`;
  }
  return target.startsWith('//') ? target.slice(1) : target;
}

export function uriTooLong(): DomainError {
  return new DomainError('invalid', 'uri_too_long', 'The path is too long.');
}

function headersTooLarge(): DomainError {
  return new DomainError('invalid', 'headers_too_large', 'The request has too many headers.');
}

/** Of the 16 KiB that the parser reads of a head, a target of more than half is what was too much. */
const LONG_TARGET = 8 * 1024;

/** What more than the parser reads of a head was too much: its path, where that can be told, or its headers. */
export function refusedOverflow(packet: Buffer | undefined): DomainError {
  const target = /^[A-Z]{3,10} ([^ \r\n]*)/.exec(packet?.toString('latin1') ?? '')?.[1];
  return target !== undefined && target.length > LONG_TARGET ? uriTooLong() : headersTooLarge();
}

function pathLengthOf(url: string): number {
  const end = url.indexOf('?');
  return end === -1 ? url.length : end;
}

function isHost(name: string): boolean {
  return name.length === 4 && name.toLowerCase() === 'host';
}
