import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { chromium } from 'playwright-core';
import { SMTPServer } from 'smtp-server';
import { StartRefused } from '#libs/platform/src/start-refused';
import { givenProgram } from '#libs/testing/src/given-program';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const address = (): string => `${randomUUID()}@mail.test`;
const MAGIC = '/user_management/magic_auth';
const RESET = '/user_management/password_reset';
const CHROMIUM = givenProgram('chromium', 'chromium-browser', 'google-chrome');

interface Received {
  readonly to: readonly string[];
  readonly from: string;
  /** As it came over the wire, with soft line breaks and encoded characters undone. */
  readonly text: string;
}

/** A real receiver. `refuse`: what it answers to a recipient instead of taking it. */
class Receiver {
  readonly received: Received[] = [];
  refuse: (to: string) => number | null = () => null;
  tries = 0;
  private server: SMTPServer | null = null;

  async listen(port = 0): Promise<number> {
    this.server = new SMTPServer({
      authOptional: true,
      // Connections that wait for further mail are cut.
      closeTimeout: 50,
      disabledCommands: ['STARTTLS', 'AUTH'],
      onRcptTo: ({ address: to }, _session, done) => {
        this.tries++;
        const responseCode = this.refuse(to);
        done(responseCode === null ? null : Object.assign(new Error('not here'), { responseCode }));
      },
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          const { mailFrom, rcptTo } = session.envelope;
          const raw = Buffer.concat(chunks).toString();
          const text = raw.replace(/=\r\n/g, '').replace(/(?:=[\dA-F]{2})+/g, (bytes) => Buffer.from(bytes.replaceAll('=', ''), 'hex').toString());
          this.received.push({ to: rcptTo.map((each) => each.address), from: mailFrom === false ? '' : mailFrom.address, text });
          done();
        });
      },
    });
    await new Promise<void>((resolve) => this.server!.listen(port, '127.0.0.1', resolve));
    return (this.server.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => (this.server === null ? resolve() : this.server.close(resolve)));
    this.server = null;
  }

  of(to: string): readonly Received[] {
    return this.received.filter((each) => each.to.includes(to));
  }
}

describe('mail, over SMTP', () => {
  const receiver = new Receiver();
  const lines: string[] = [];
  let port: number;
  let suite: GivenSuite;
  let caller: Caller;
  beforeAll(async () => {
    port = await receiver.listen();
    const variables = { SMTP_URL: `smtp://127.0.0.1:${port}`, MAIL_FROM: 'no-reply@sender.test', APPLICATION_URL: 'https://app.acme.test' };
    suite = await givenSuite({ variables, onLogLine: (line) => lines.push(line) });
    caller = await suite.otherEnvironment('mail');
    const branding = { name: 'Acme <Söhne>', logo_url: 'https://acme.test/logo.png', color: '#aa0000' };
    await caller.patch('/admin/environment_settings', { branding }).expect(200);
  });
  afterAll(() => receiver.close());

  const magic = async (email = address()) => caller.post(MAGIC, { email }).expect(201);
  const arrived = (to: string, count = 1) => eventually(async () => (expect(receiver.of(to)).toHaveLength(count), receiver.of(to).at(-1)!));

  it('brings a code in text and in HTML, as the environment looks', async () => {
    const { email, code } = await magic();
    const { text, from, to } = await arrived(email);
    expect([from, to]).toEqual(['no-reply@sender.test', [email]]);
    expect(text).toMatch(/Message-ID: <[\dA-Z]{26}@sender\.test>/i);
    expect(text.split(code)).toHaveLength(3);
    expect(text).toContain('Acme <Söhne>');
    expect(text).toContain('Acme &lt;Söhne&gt;');
    expect(text).toContain('src="https://acme.test/logo.png"');
    expect(text).toContain('#aa0000');
    expect(text).toContain('for 10 minutes');
  });

  it('speaks the language of the user, or English', async () => {
    const [email, other] = [address(), address()];
    for (const [to, locale] of [
      [email, 'de-AT'],
      [other, 'tlh'],
    ] as const) {
      const { id } = await caller.post('/user_management/users', { email: to }).expect(201);
      await caller.put(`/user_management/users/${id}`, { locale }).expect(200);
      await magic(to);
    }
    expect((await arrived(email)).text).toContain('Melden Sie sich bei');
    expect((await arrived(other)).text).toContain('Sign in to');
  });

  it('brings links that come from the settings, whatever the request says', async () => {
    const { email, user_id } = await magic();
    await arrived(email);
    const headers = { Host: 'evil.test', 'X-Forwarded-Host': 'evil.test' };
    const { password_reset_url: link } = await caller.post(RESET, { email }, headers).expect(201);
    const { text } = await arrived(email, 2);
    expect(text).toContain(link);
    expect(link).toMatch(/^https:\/\/app\.acme\.test\//);
    expect(text).not.toContain('evil.test');
    await caller.post(`/user_management/users/${user_id}/email_verification/send`).expect(200);
    expect((await arrived(email, 3)).text).toMatch(/Verify your email address[^]*\b\d{6}\b/);
  });

  it('brings an invitation: whose, to what, for how long, in the language that was asked for, and the token that was sent last', async () => {
    const [email, other] = [address(), address()];
    const { id: organization_id } = await caller.post('/organizations', { name: 'Söhne & Co' }).expect(201);
    const { id: inviter_user_id } = await caller.post('/user_management/users', { email: address(), first_name: 'Ada', last_name: 'King' }).expect(201);
    const first = await caller.post('/user_management/invitations', { email, organization_id, inviter_user_id, expires_in_days: 3 }).expect(201);
    const { text } = await arrived(email);
    expect(text).toContain('Ada King invites you to join Söhne & Co on Acme <Söhne>.');
    expect(text).toContain('for 3 days');
    expect(text).toContain(`https://app.acme.test/invite?invitation_token=${first.token}`);
    const again = await caller.post(`/user_management/invitations/${first.id}/resend`, { locale: 'de' }).expect(200);
    const second = (await arrived(email, 2)).text;
    expect(second).toContain(again.accept_invitation_url);
    expect(second).toContain('lädt Sie ein, Söhne & Co bei Acme <Söhne> beizutreten');
    expect(second).not.toContain(first.token);
    await caller.patch('/admin/environment_settings', { mail: { invitation: false } }).expect(200);
    await caller.post('/user_management/invitations', { email: other }).expect(201);
    await magic(other);
    await arrived(other);
    await caller.patch('/admin/environment_settings', { mail: { invitation: true } }).expect(200);
  });

  it('lets nobody write the message by a name: it is one line, of bounded length', async () => {
    const email = address();
    const { id: organization_id } = await caller.post('/organizations', { name: 'Acme\r\nBcc: eve@mail.test\r\n\r\nPay here\u202e' }).expect(201);
    const name = { first_name: `Your account is locked.\n\n${'x'.repeat(200)}`, last_name: 'King' };
    const { id: inviter_user_id } = await caller.post('/user_management/users', { email: address(), ...name }).expect(201);
    await caller.post('/user_management/invitations', { email, organization_id, inviter_user_id }).expect(201);
    const { text } = await arrived(email);
    expect(text).toContain(`Your account is locked. ${'x'.repeat(76)}… invites you to join Acme Bcc: eve@ mail․test Pay here on `);
  });

  it('brings no invitation that was revoked, or sent again, before its turn', async () => {
    await receiver.close();
    const [revoked, resent] = [address(), address()];
    const { id } = await caller.post('/user_management/invitations', { email: revoked }).expect(201);
    const old = await caller.post('/user_management/invitations', { email: resent }).expect(201);
    await caller.post(`/user_management/invitations/${id}/revoke`).expect(200);
    const present = await caller.post(`/user_management/invitations/${old.id}/resend`).expect(200);
    await receiver.listen(port);
    const { text } = await arrived(resent);
    expect(text).toContain(present.token);
    expect([text.includes(old.token), receiver.of(revoked)]).toEqual([false, []]);
  });

  it('of a kind that is switched off is not sent', async () => {
    await caller.patch('/admin/environment_settings', { mail: { magic_auth: false } }).expect(200);
    const { email } = await magic();
    await caller.post(RESET, { email }).expect(201);
    expect((await arrived(email)).text).toContain('reset-password');
    await caller.patch('/admin/environment_settings', { mail: { magic_auth: true } }).expect(200);
  });

  it('that the server refuses for good is not sent again, and holds nobody up', async () => {
    const refused = address();
    receiver.refuse = (to) => (to === refused ? 550 : null);
    const before = receiver.tries;
    await magic(refused);
    const { email } = await magic();
    await arrived(email);
    expect(receiver.tries - before).toBe(2);
  });

  it('that the server does not take now is tried a few times, and then set aside', async () => {
    const busy = address();
    receiver.refuse = (to) => (to === busy ? 451 : null);
    const before = receiver.tries;
    await magic(busy);
    const { email } = await magic();
    await arrived(email);
    expect(receiver.tries - before).toBe(5);
    expect(receiver.of(busy)).toEqual([]);
  });

  it('waits while the server is away, and is sent once it is back; what was replaced meanwhile is not', async () => {
    await receiver.close();
    const email = address();
    const { code: replaced } = await magic(email);
    const { code } = await magic(email);
    // A try that is under way may have looked at the code before it was replaced: the next one begins once this one has failed.
    const told = lines.length;
    await eventually(async () => expect(lines.slice(told).some((line) => line.includes('The mail server is away'))).toBe(true));
    await receiver.listen(port);
    const { text } = await arrived(email);
    expect(text).toContain(code);
    if (replaced !== code) expect(text).not.toContain(replaced);
    // Nothing of a person or a code is told.
    for (const line of lines) expect(line).not.toContain('@mail.test');
  });
});

describe('the development mailbox', () => {
  let suite: GivenSuite;
  beforeAll(async () => void (suite = await givenSuite()));

  const read = (path: string, headers: Readonly<Record<string, string>> = {}) => fetch(`${suite.url}/dev/mailbox${path}`, { headers });
  const messages = async () => ((await (await read('/messages')).json()) as { data: { id: string; to: string; subject: string; text: string }[] }).data;

  it('shows what would have been sent: a list, a message, its code, and JSON for tests', async () => {
    await suite.patch('/admin/environment_settings', { branding: { name: '<b>Acme</b>' } }).expect(200);
    const { email, code } = await suite.post(MAGIC, { email: address() }).expect(201);
    const [found] = await eventually(async () => {
      const found = (await messages()).filter(({ to }) => to === email);
      expect(found).toHaveLength(1);
      return found;
    });
    const message = found!;
    expect(message.text).toContain(code);
    const list = await read('');
    expect(list.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'self'/);
    const text = await list.text();
    expect(text).toContain(email);
    expect(text).toContain('&lt;b&gt;Acme&lt;/b&gt;');
    expect(text).not.toContain('<b>');
    expect(await (await read(`/messages/${message.id}`)).text()).toContain(`<code>${code}</code>`);
    const body = await read(`/messages/${message.id}/html`);
    expect(body.headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'/);
    expect(body.headers.get('cache-control')).toBe('no-store');
    expect(await body.text()).toContain(code);
    expect((await read('/messages/unknown')).status).toBe(404);
  });

  (CHROMIUM === null ? it.skip : it)(
    'shows in a browser what came, within its policy: the code to be taken with one click, and the link as it was sent',
    async () => {
      const name = `Acme ${randomUUID().slice(0, 8)}`;
      await suite.patch('/admin/environment_settings', { branding: { name } }).expect(200);
      const { email, code } = await suite.post(MAGIC, { email: address() }).expect(201);
      const invitation = await suite.post('/user_management/invitations', { email: address() }).expect(201);
      await eventually(async () => expect((await messages()).map(({ to }) => to)).toEqual(expect.arrayContaining([email, invitation.email])));
      const browser = await chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox'] });
      try {
        const page = await browser.newPage();
        const complaints: string[] = [];
        page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
        page.on('response', (response) => response.status() >= 400 && complaints.push(`${response.status()} ${response.url()}`));
        const open = async (to: string): Promise<void> => {
          await page.goto(`${suite.url}/dev/mailbox`);
          await page.locator('tr', { hasText: to }).locator('a').click();
          await page.locator('h1').waitFor();
        };
        await open(email);
        expect(await page.locator('h1').textContent()).toBe(`Your code for ${name}`);
        const shown = page.locator('code');
        await shown.click();
        expect([await shown.textContent(), await page.evaluate('getSelection().toString()')]).toEqual([code, code]);
        // What was sent runs nothing, whatever a template would hold.
        expect(await page.frameLocator('iframe').locator('p', { hasText: code }).textContent()).toBe(code);
        await open(invitation.email);
        expect(await page.locator('code').count()).toBe(0);
        const link = page.frameLocator('iframe').locator('a', { hasText: 'Accept the invitation' });
        expect(await link.getAttribute('href')).toBe(invitation.accept_invitation_url);
        expect(complaints).toEqual([]);
      } finally {
        await browser.close();
      }
    },
  );

  it('shows texts, where no webhook sends them', async () => {
    await suite.patch('/admin/environment_settings', { sms: { countries: ['DE'] } }).expect(200);
    const enrol = () => suite.post('/auth/factors/enroll', { type: 'sms', phone_number: '+4915112345678' }).expect(201);
    const { id } = await eventually(enrol);
    const challenge = await suite.post(`/auth/factors/${id}/challenge`, { sms_template: 'A < B: {{code}}' }).expect(201);
    const message = await eventually(async () => (await messages()).find(({ to }) => to === '+4915112345678') ?? Promise.reject(new Error('None came.')));
    expect(message).toMatchObject({ subject: 'Text message', text: expect.stringMatching(/^A < B: \d{6}$/), html: expect.stringContaining('A &lt; B: ') });
    await suite.post(`/auth/challenges/${challenge.id}/verify`, { code: message.text.slice(-6) }).expect(201, { valid: true });
  });

  it('is read by no page of another site', async () => {
    expect((await read('', { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(404);
    expect((await read('', { 'Sec-Fetch-Site': 'none' })).status).toBe(200);
  });
});

describe('production mode', () => {
  const start = (variables: Readonly<Record<string, string>>) => {
    const own = {
      GATEHOUSE_MODE: 'production',
      OPERATIONS_PORT: '0',
      HOST: '127.0.0.1',
      GATEHOUSE_API_KEY: `sk_${'k'.repeat(40)}`,
      PUBLIC_URL: 'https://id.acme.test',
    };
    return givenSuite({ variables: { ...own, MASTER_KEYS: Buffer.alloc(32, 1).toString('base64'), ...variables } });
  };

  it('does not start with mail on and no server, or with links that lead nowhere', async () => {
    await expect(start({ MAIL: 'on' })).rejects.toThrow(new StartRefused('MAIL is on, but there is no mail server: set SMTP_URL, or MAIL=off.'));
    await expect(start({ MAIL: 'on', SMTP_URL: 'smtp://127.0.0.1:1' })).rejects.toThrow('set APPLICATION_URL, or MAIL=off');
  });

  it('has no mailbox', async () => {
    const { url } = await start({});
    expect((await fetch(`${url}/dev/mailbox`)).status).toBe(404);
  });
});
