import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDnsServer, type DnsServer } from '#libs/testing/src/dns-server';
import { gatehouse, SuiteProcess } from '#libs/testing/src/process';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';

const SUBSCRIBED = ['organization.created', 'organization_domain.created', 'organization_domain.verified'];

interface Told {
  readonly id: string;
  readonly event: string;
  readonly data: { readonly id: string };
}

/** What a newcomer does on the first day, with a kill in the middle. The tests follow each other. */
describe('from nothing to a verified domain, through a kill', () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-fresh-'));
  let variables: Readonly<Record<string, string>>;
  let dns: DnsServer;
  let receiver: WebhookReceiver;
  let suite: SuiteProcess;
  let key: string;
  let organization: string;
  let domain: { readonly id: string; readonly domain: string; readonly verification_token: string };

  beforeAll(async () => {
    dns = await startDnsServer();
    receiver = await WebhookReceiver.listen();
    variables = { DATA_DIR: join(root, 'data'), DATA_MIN_FREE: '0', DNS_SERVERS: dns.address };
    suite = await SuiteProcess.start(variables);
    key = readFileSync(join(variables['DATA_DIR']!, 'development.key'), 'utf8').trim();
  });
  afterAll(async () => {
    await suite.killHard();
    await receiver.close();
    await dns.close();
    rmSync(root, { recursive: true });
  });

  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an answer, it also asserts
  async function ask(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<any> {
    const response = await fetch(suite.url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    expect({ path, ok: response.ok }).toEqual({ path, ok: true });
    return response.json();
  }

  async function feed(): Promise<readonly Told[]> {
    const events: Told[] = [];
    for (let after = ''; ; after = `&after=${events.at(-1)!.id}`) {
      const { data } = (await ask('GET', `/events?limit=100${after}`)) as { readonly data: readonly Told[] };
      if (data.length === 0) return events;
      events.push(...data);
    }
  }

  it('an organization and a domain are announced in the feed and at a webhook receiver', async () => {
    await ask('POST', '/webhook_endpoints', { endpoint_url: receiver.url, events: SUBSCRIBED });
    organization = (await ask('POST', '/organizations', { name: 'Acme' }, { 'Idempotency-Key': 'first' })).id;
    domain = await ask('POST', '/organization_domains', { domain: 'acme.test', organization_id: organization }, { 'Idempotency-Key': 'second' });
    for (const id of [organization, domain.id]) await receiver.receives(({ data }) => data.id === id);
    expect((await feed()).map(({ event }) => event)).toEqual(['organization.created', 'organization_domain.created']);
  });

  it('what was acknowledged right before a kill is there after it, and what was under way is delivered', async () => {
    // Nobody takes it now: it has to be tried again by the next process.
    receiver.answers(503);
    const acknowledged = await Promise.all(
      Array.from(
        { length: 20 },
        async (_, index): Promise<string> => (await ask('POST', '/organizations', { name: `Late ${index}` }, { 'Idempotency-Key': `late-${index}` })).id,
      ),
    );
    await suite.killHard();
    receiver.answers(200);
    dns.answers('acme.test', `verification_token=${domain.verification_token}`);
    suite = await SuiteProcess.start(variables);

    for (const [index, id] of acknowledged.entries()) {
      expect(await ask('GET', `/organizations/${id}`)).toMatchObject({ id, name: `Late ${index}` });
      expect(await ask('POST', '/organizations', { name: `Late ${index}` }, { 'Idempotency-Key': `late-${index}` })).toMatchObject({ id });
    }
    const announced = (await feed()).filter(({ event }) => event === 'organization.created').map(({ data }) => data.id);
    expect(announced.toSorted()).toEqual([organization, ...acknowledged].toSorted());
  });

  it('the domain is verified over DNS by the process that was started again', async () => {
    // It looks by itself as well, at times of its own.
    expect(await ask('POST', `/admin/organization_domains/${domain.id}/check`)).toMatchObject({ state: 'verified' });
    await receiver.receives(({ event, data }) => event === 'organization_domain.verified' && data.id === domain.id);
  });

  it('nothing was lost: the feed holds each event once, and the receiver was told of each', async () => {
    const events = await feed();
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    for (const { id } of events.filter(({ event }) => SUBSCRIBED.includes(event))) await receiver.receives((event) => event.id === id);
    expect((await suite.stop()).code).toBe(0);
    expect(await gatehouse(variables, 'verify')).toMatchObject({ code: 0, stderr: '' });
  });
});
