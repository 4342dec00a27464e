import type { Resolver } from 'node:dns/promises';
import { Injectable } from '@nestjs/common';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { dnsResolver } from '../readers/dns-resolver.ts';
import { DomainVerifier, type DomainChallenge } from './domain-verifier.ts';

/** Reads TXT records. What is not there in time is looked for again later. */
@Injectable()
export class DnsDomainVerifier extends DomainVerifier {
  private readonly resolver: Resolver;

  constructor(settings: IdentitySettings) {
    super();
    this.resolver = dnsResolver(settings);
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
