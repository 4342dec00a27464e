import { Resolver } from 'node:dns/promises';
import { Injectable } from '@nestjs/common';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { DomainVerifier, type DomainChallenge } from './domain-verifier.ts';

/** Of the first try; the second takes twice as long. What is not there by then is looked for again later. */
const TIMEOUT = 1_000;
const TRIES = 2;

/** Reads TXT records. */
@Injectable()
export class DnsDomainVerifier extends DomainVerifier {
  private readonly resolver = new Resolver({ timeout: TIMEOUT, tries: TRIES });

  constructor(settings: IdentitySettings) {
    super();
    if (settings.DNS_SERVERS.length > 0) this.resolver.setServers(settings.DNS_SERVERS);
  }

  /** Guides of several ages name several places and spellings; the token is 125 random bits, so it proves the same in each of them. */
  async isProven({ domain, verification_prefix: prefix, verification_token: token }: DomainChallenge): Promise<boolean> {
    if (prefix === undefined || token === undefined) return false;
    const spellings = new Set([token, `verification_token=${token}`, `${prefix}=${token}`]);
    const places = [domain, `${prefix}.${domain}`, `_acme-challenge.${domain}`];
    const isAt = async (name: string): Promise<boolean> => (await this.texts(name)).some((text) => spellings.has(text));
    return firstTrue(places.map(isAt));
  }

  private async texts(name: string): Promise<readonly string[]> {
    try {
      // A TXT record over 255 bytes comes in pieces.
      return (await this.resolver.resolveTxt(name)).map((pieces) => pieces.join('').trim());
    } catch {
      return [];
    }
  }
}

/** True as soon as one is: a slow name does not hold up the proof at another. */
async function firstTrue(answers: readonly Promise<boolean>[]): Promise<boolean> {
  return Promise.any(answers.map(async (answer) => (await answer) || Promise.reject(new Error('not here')))).catch(() => false);
}
