import { randomBytes } from 'node:crypto';
import type { DomainData } from '#libs/contracts/src/organizations/operations';
import type { RequestedDomain } from '../domain/organization.decider.ts';
import { allowedDomainName } from '../domain/domain-name.ts';

interface GivenDomains {
  readonly domain_data?: readonly DomainData[];
  readonly domains?: readonly string[];
}

/**
 * The domains that a request names, each once; undefined where it names none at all. Both fields: `domain_data` counts.
 * @throws DomainError `domain_not_allowed`
 */
export function requestedDomains({ domain_data, domains }: GivenDomains): readonly RequestedDomain[] | undefined {
  if (domain_data === undefined && domains === undefined) return undefined;
  const requested = new Map<string, RequestedDomain>();
  const add = (text: string, state: 'pending' | 'verified', field: string): void => {
    const domain = requestedDomain(text, state, field);
    if (requested.get(domain.domain)?.state !== 'verified') requested.set(domain.domain, domain);
  };
  if (domain_data !== undefined) domain_data.forEach(({ domain, state }, index) => add(domain, state, `domain_data.${index}.domain`));
  else domains?.forEach((domain, index) => add(domain, 'pending', `domains.${index}`));
  return [...requested.values()];
}

/** @throws DomainError `domain_not_allowed` */
export function requestedDomain(text: string, state: 'pending' | 'verified' = 'pending', field = 'domain'): RequestedDomain {
  return {
    domain: allowedDomainName(text, field),
    state,
    verification_prefix: `gatehouse-domain-verification-${letters(6)}`,
    verification_token: letters(25),
  };
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';

/** Lower case, because some DNS panels fold what is typed into them; 25 of them are 125 random bits. */
function letters(count: number): string {
  return Array.from(randomBytes(count), (byte) => ALPHABET[byte % 32]).join('');
}
