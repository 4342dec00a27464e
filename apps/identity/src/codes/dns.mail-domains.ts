import type { Resolver } from 'node:dns/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { Clock } from '#libs/platform/src/clock';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { dnsResolver } from '../readers/dns-resolver.ts';
import { MailDomains } from './mail-domains.ts';

/** How long somebody waits for a server; what it says later serves the next one. */
const PATIENCE = 1_000;
/** What was said of a domain is not asked for again for so long, be it nothing. */
const KEPT = 60_000;
const MOST_KEPT = 10_000;

/** There is no such name, or nothing of the kind that was asked for. */
const ABSENT: readonly unknown[] = ['ENOTFOUND', 'ENODATA'];

interface Known {
  readonly answer: Promise<boolean>;
  readonly until: number;
}

/** Reads MX records, and where a domain has none the addresses of its own, which then take its mail (RFC 5321, 5.1). */
@Injectable()
export class DnsMailDomains extends MailDomains {
  private readonly resolver: Resolver;
  private readonly known = new BoundedMap<Known>(MOST_KEPT);

  constructor(
    settings: IdentitySettings,
    private readonly clock: Clock,
  ) {
    super();
    this.resolver = dnsResolver(settings);
  }

  takesMail(domain: string): Promise<boolean> {
    const now = this.clock.now();
    let known = this.known.get('', domain);
    if (known === undefined || known.until <= now) this.known.set('', domain, (known = { answer: this.lookUp(domain), until: now + KEPT }));
    return Promise.race([known.answer, pause(PATIENCE, true, { ref: false })]);
  }

  private async lookUp(domain: string): Promise<boolean> {
    // The lone root is how a domain says that it takes none (RFC 7505).
    const exchanges = await has(this.resolver.resolveMx(domain), (records) => records.some(({ exchange }) => exchange !== ''));
    if (exchanges !== null) return exchanges;
    const isThere = (addresses: readonly string[]): boolean => addresses.length > 0;
    const [four, six] = await Promise.all([has(this.resolver.resolve4(domain), isThere), has(this.resolver.resolve6(domain), isThere)]);
    return (four ?? false) || (six ?? false);
  }
}

/** What is said of the records; null where there are none, and true where nobody can say. */
async function has<Answer>(asked: Promise<Answer>, said: (records: Answer) => boolean): Promise<boolean | null> {
  try {
    return said(await asked);
  } catch (error) {
    return ABSENT.includes((error as { code?: unknown }).code) ? null : true;
  }
}
