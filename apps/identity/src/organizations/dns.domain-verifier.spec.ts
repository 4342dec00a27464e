import { readSettings } from '#libs/platform/src/config/setting';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { startDnsServer, type DnsServer } from '#libs/testing/src/dns-server';
import { DnsDomainVerifier } from './dns.domain-verifier.ts';
import type { DomainVerifier } from './domain-verifier.ts';

const challenge = { domain: 'acme.test', verification_prefix: 'gatehouse-domain-verification-z3kjny', verification_token: 'abcdefghijklmnopqrstuvwxy' };
const { verification_prefix: prefix, verification_token: token } = challenge;

describe('proof of a domain by DNS', () => {
  let dns: DnsServer;
  let verifier: DomainVerifier;
  beforeEach(async () => {
    dns = await startDnsServer();
    verifier = new DnsDomainVerifier(readSettings(IdentitySettings, { DNS_SERVERS: dns.address }));
  });
  afterEach(() => dns.close());

  it.each([
    ['the value form on the domain', 'acme.test', `verification_token=${token}`],
    ['the prefix form on the domain', 'acme.test', `${prefix}=${token}`],
    ['the token below the prefix', `${prefix}.acme.test`, token],
    ['the value form below the prefix', `${prefix}.acme.test`, `verification_token=${token}`],
    ['the older name', '_acme-challenge.acme.test', `verification_token=${token}`],
  ])('is seen in %s', async (_, name, record) => {
    dns.answers(name, 'v=spf1 -all', record);
    expect(await verifier.isProven(challenge)).toBe(true);
  });

  it('is seen in a record that comes in pieces', async () => {
    dns.answers('acme.test', ['verification_token=', token.slice(0, 10), token.slice(10)]);
    expect(await verifier.isProven(challenge)).toBe(true);
  });

  it.each([
    ['no record', []],
    ['the token of somebody else', ['verification_token=zyxwvutsrqponmlkjihgfedcb']],
    ['the token as a part of something longer', [`verification_token=${token}2`]],
    ['the token in other letters', [`verification_token=${token.toUpperCase()}`]],
    ['an empty token', ['verification_token=']],
  ])('is not seen in %s', async (_, records) => {
    dns.answers('acme.test', ...records);
    expect(await verifier.isProven(challenge)).toBe(false);
  });

  it('is not seen where the domain does not exist', async () => expect(await verifier.isProven(challenge)).toBe(false));

  it('is not asked for where there is no token', async () => {
    expect(await verifier.isProven({ domain: 'acme.test' })).toBe(false);
    expect(dns.asked).toEqual([]);
  });

  it('does not wait for a silent name once another has it', async () => {
    dns.answers('acme.test', `verification_token=${token}`);
    dns.isSilentAbout('_acme-challenge.acme.test');
    const first = await Promise.race([verifier.isProven(challenge), new Promise((resolve) => setTimeout(resolve, 1_500, 'late'))]);
    expect(first).toBe(true);
  });

  it('is not seen where the server is silent', async () => {
    dns.isSilentAbout('test');
    expect(await verifier.isProven(challenge)).toBe(false);
  });
});
