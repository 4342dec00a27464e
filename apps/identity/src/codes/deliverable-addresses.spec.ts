import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { readSettings } from '#libs/platform/src/config/setting';
import { IdentitySettings } from '#libs/platform/src/config/settings';
import { startDnsServer, type DnsServer } from '#libs/testing/src/dns-server';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { DnsMailDomains } from './dns.mail-domains.ts';

const MAGIC = '/user_management/magic_auth';
const INVITATIONS = '/user_management/invitations';

let dns: DnsServer;
beforeAll(async () => void (dns = await startDnsServer()));
afterAll(() => dns.close());

describe('a domain takes mail, as DNS has it', () => {
  const clock = new SettableClock();
  let domains: DnsMailDomains;
  beforeAll(() => void (domains = new DnsMailDomains(readSettings(IdentitySettings, { DNS_SERVERS: dns.address }), clock)));

  it.each<[string, boolean, (name: string) => void]>([
    ['with an exchange', true, (name) => dns.exchanges(name, 'mail.acme.test')],
    ['with an address of its own alone', true, (name) => dns.isAt(name, '192.0.2.1')],
    ['with an address of version 6 alone', true, (name) => dns.isAt(name, '2001:db8::1')],
    ['but not where there is neither', false, (name) => dns.answers(name, 'v=spf1 -all')],
    ['but not where it says so itself', false, (name) => dns.exchanges(name, '.')],
    ['but not where there is no such domain', false, () => {}],
    ['as far as anybody knows where the server fails', true, (name) => dns.failsAbout(name)],
    ['as far as anybody knows where the server is silent', true, (name) => dns.isSilentAbout(name)],
  ])('%s', async (_, takes, given) => {
    const name = `${randomUUID()}.test`;
    given(name);
    // Before a server is given up.
    expect(await Promise.race([domains.takesMail(name), pause(2_000, 'late', { ref: false })])).toBe(takes);
  });

  it('as far as anybody knows where there is no server', async () => {
    const nobody = new DnsMailDomains(readSettings(IdentitySettings, { DNS_SERVERS: '127.0.0.1:1' }), clock);
    expect(await nobody.takesMail('acme.test')).toBe(true);
  });

  it('which is asked for once a minute', async () => {
    const name = `${randomUUID()}.test`;
    const asked = (): number => dns.asked.filter((each) => each === name).length;
    dns.exchanges(name, '.');
    for (let times = 0; times < 3; times++) expect(await domains.takesMail(name)).toBe(false);
    expect(asked()).toBe(1);
    dns.exchanges(name, 'mail.acme.test');
    clock.forward(60_000);
    expect(await domains.takesMail(name)).toBe(true);
    expect(asked()).toBe(2);
  });
});

describe('where the domains of addresses are checked', () => {
  const clock = new SettableClock(Date.now());
  let suite: GivenSuite;
  beforeAll(async () => {
    suite = await givenSuite({ clock, variables: { CHECK_MAIL_DOMAINS: 'on', DNS_SERVERS: dns.address } });
    dns.exchanges('acme.test', 'mail.acme.test');
  });
  const refused = { code: 'email_domain_not_deliverable', message: "The domain 'nowhere.test' takes no mail." };

  it('a code and an invitation are refused to one that takes no mail, and nothing comes of it', async () => {
    for (const path of [MAGIC, INVITATIONS]) await suite.post(path, { email: 'ada@nowhere.test' }).expect(400, refused);
    expect(await suite.records('user.created', 'magic_auth.created', 'invitation.created')).toEqual([]);
  });

  it('they are sent to one that does', async () => {
    for (const path of [INVITATIONS, MAGIC]) await suite.post(path, { email: 'ada@ACME.test' }).expect(201);
  });

  it('they are sent to an address that was verified', async () => {
    const verified = { email: 'grace@nowhere.test', email_verified: true };
    await suite.post('/user_management/users', verified).expect(201);
    await suite.post(MAGIC, { email: verified.email }).expect(201);
    const { id } = await suite.post('/user_management/users', { email: 'joan@nowhere.test' }).expect(201);
    await suite.post(MAGIC, { email: 'joan@nowhere.test' }).expect(400, refused);
    await suite.put(`/user_management/users/${id}`, { email_verified: true }).expect(200);
    await suite.post(MAGIC, { email: 'joan@nowhere.test' }).expect(201);
  });

  it('an invitation is not sent again once its domain takes no more mail', async () => {
    dns.failsAbout('soon.test');
    const { id } = await suite.post(INVITATIONS, { email: 'ada@soon.test' }).expect(201);
    await suite.post(`${INVITATIONS}/${id}/resend`, {}).expect(200);
    dns.exchanges('soon.test', '.');
    clock.forward(60_000);
    await eventually(() => suite.post(`${INVITATIONS}/${id}/resend`, {}).expect(400, { ...refused, message: "The domain 'soon.test' takes no mail." }));
  });
});
