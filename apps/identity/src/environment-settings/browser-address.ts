import { refusedField } from '#libs/platform/src/domain-error';

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
  throw refusedField('invalid', 'invalid_request_parameters', {
    field,
    message: `${field} must be an https address without a fragment, or an http address of localhost.`,
    reason: 'invalid_uri',
  });
}
