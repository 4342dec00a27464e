import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { refusedField, type DomainError } from '#libs/platform/src/domain-error';

const require = createRequire(import.meta.url);

/** 14,000 names, of which nobody needs to know before somebody names a domain. */
let consumerDomains: ReadonlySet<string> | undefined;

/** What a URL parser reads as something else than a name, or decodes: `%61cme.test` is not a domain that anybody typed. */
const NOT_OF_A_NAME = /[\s\p{Cc}/\\:@?#%[\]]/u;
const NAME = /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

/**
 * Exact names only: the list also holds names under which companies register theirs (`net.ua`, `za.com`), and nobody but the provider can
 * publish a TXT record below a provider's own name.
 */
function isOfConsumers(name: string): boolean {
  consumerDomains ??= new Set<string>(require('free-email-domains') as typeof import('free-email-domains'));
  return consumerDomains.has(name);
}

/** The one spelling under which a domain is stored and compared: ASCII (IDNA), lower case, no trailing dot. Null where it is no domain name. */
export function domainName(text: string): string | null {
  const given = text.trim();
  if (NOT_OF_A_NAME.test(given)) return null;
  const name = domainToASCII(given).replace(/\.$/, '');
  return NAME.test(name) && isIP(name) === 0 ? name : null;
}

/** The domain of an address of mail, spelled as domains are compared; null where that is none. */
export function domainOfAddress(email: string): string | null {
  return domainName(email.slice(email.lastIndexOf('@') + 1));
}

/**
 * The name of a domain that an organization may have.
 * @throws DomainError `domain_not_allowed` where it is no domain name, or a consumer mail provider's
 */
export function allowedDomainName(text: string, field = 'domain'): string {
  const name = domainName(text);
  if (name === null) throw notAllowed('malformed_domain', field, `'${text}' is not a domain name.`);
  if (isOfConsumers(name)) throw notAllowed('consumer_domain', field, `${name} is a consumer mail provider: everybody has addresses there.`);
  return name;
}

function notAllowed(code: string, field: string, message: string): DomainError {
  return refusedField('invalid', 'domain_not_allowed', { field, message, reason: code });
}
