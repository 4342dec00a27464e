import { invalidField } from '#libs/platform/src/domain-error';

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
/** Parsers disagree about what these mean, and a browser may go elsewhere than was checked. */
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const AMBIGUOUS = /[\u0000-\u0020\u007f\\]/;

/**
 * Requires an address that a browser may be sent to: https, or http on the machine that it runs on.
 * @throws DomainError `invalid_request_parameters`
 */
export function requireBrowserAddress(text: string, field: string): void {
  const url = AMBIGUOUS.test(text) || !URL.canParse(text) ? null : new URL(text);
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.has(url.hostname));
  if (url !== null && isSafe && url.username === '' && url.password === '' && !text.includes('#')) return;
  throw refusedAddress(field, `${field} must be an https address without a fragment, or an http address of localhost.`);
}

/** What opens no app, but runs or reads something where the browser is. */
const NO_APP = new Set(['javascript:', 'data:', 'vbscript:', 'file:', 'blob:', 'about:', 'filesystem:', 'view-source:', 'ftp:', 'ws:', 'wss:']);

/**
 * Requires an address that a sign-in may send a browser back to: as `requireBrowserAddress`, or of a scheme that an app has registered (RFC 8252).
 * @throws DomainError `invalid_request_parameters`
 */
export function requireRedirectUri(text: string, field: string): void {
  const url = AMBIGUOUS.test(text) || !URL.canParse(text) ? null : new URL(text);
  if (url === null || url.protocol === 'http:' || url.protocol === 'https:') return requireBrowserAddress(text, field);
  const isApp = !NO_APP.has(url.protocol) && /^[a-z][a-z0-9+.-]*:\/\/?[^/]/i.test(text) && !text.includes('#') && !text.includes('@');
  if (!isApp)
    throw refusedAddress(field, `${field} must be an https address, an http address of localhost, or one of an app's own scheme, without a fragment.`);
}

/** The origin of an https address, or of an http address of localhost, that has nothing else. @throws DomainError `invalid_request_parameters` */
export function originOf(text: string, field: string): string {
  requireBrowserAddress(text, field);
  const { origin, href } = new URL(text);
  if (href !== `${origin}/`) throw refusedAddress(field, `${field} must be a scheme, a host and a port.`);
  return origin;
}

function refusedAddress(field: string, message: string) {
  return invalidField('invalid_uri', field, message);
}
