import { SystemClock } from '#libs/platform/src/clock';
import { RETENTION, SWEPT_METRIC } from '#libs/platform/src/retention';
import { PinoLog } from '#libs/platform/src/pino.log';
import { ProductInProcess } from '#libs/testing/src/running-product';
import { Caller } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';

/** Goes on as usual, and can be set forward. */
class ForwardedClock extends SystemClock {
  ahead = 0;

  override now(): number {
    return super.now() + this.ahead;
  }
}

const [KEY, client_id] = [`sk_${'a'.repeat(32)}`, 'client_retention'];

async function signedIn(suite: Caller): Promise<string> {
  const email = 'ada@retention.test';
  const { code } = await suite.post('/user_management/magic_auth', { email }).expect(201);
  const grant_type = 'urn:workos:oauth:grant-type:magic-auth:code';
  const { access_token } = await suite.post('/user_management/authenticate', { grant_type, client_id, client_secret: KEY, email, code }).expect(200);
  return JSON.parse(Buffer.from(access_token.split('.')[1], 'base64url').toString()).sid;
}

const swept = Object.entries(RETENTION).flatMap(([name, { setting }]) => (setting === null ? [] : [{ name, setting }]));

describe('what has a retention', () => {
  const clock = new ForwardedClock();
  let product: ProductInProcess;
  let receiver: WebhookReceiver;
  beforeAll(async () => {
    receiver = await WebhookReceiver.listen();
    const retentions = Object.fromEntries(swept.map(({ setting }) => [setting, '1h']));
    product = await ProductInProcess.open({
      variables: { GATEHOUSE_API_KEY: KEY, GATEHOUSE_CLIENT_ID: client_id, ...retentions, SWEEP_INTERVAL: '1s' },
      log: new PinoLog({ level: 'silent', readable: false }),
      clock,
    });
  });
  afterAll(async () => {
    await product.close();
    await receiver.close();
  });

  it('is removed by the running product once it is over, of every kind', async () => {
    const suite = new Caller(() => product.url, product.key);
    const { id } = await suite.post('/webhook_endpoints', { endpoint_url: receiver.url, events: ['organization.created'] }).expect(201);
    await suite.post('/organizations', { name: 'Acme' }, { 'Idempotency-Key': 'once' }).expect(201);
    const deliveries = `/webhook_endpoints/${id}/deliveries`;
    await suite.eventually(deliveries, { data: [{ status: 'delivered' }] });
    await suite.eventually('/events?events=organization.created', { data: [{ event: 'organization.created' }] });
    const session_id = await signedIn(suite);
    await suite.post('/user_management/sessions/revoke', { session_id }).expect(200);

    const { id: gone } = await suite.post('/organizations', { name: 'Gone' }).expect(201);
    const event = {
      action: 'document.shared',
      occurred_at: new Date().toISOString(),
      actor: { id: 'a', type: 'user' },
      targets: [],
      context: { location: '' },
    };
    await suite.post('/audit_logs/events', { organization_id: gone, event }).expect(200);
    await suite.delete(`/organizations/${gone}`).expect(202);

    await suite.patch('/admin/environment_settings', { sign_out_uris: ['https://acme.test/bye'] }).expect(200);
    const { id: exporting } = await suite.post('/organizations', { name: 'Exports' }).expect(201);
    const range = { range_start: event.occurred_at, range_end: event.occurred_at };
    const { id: exported } = await suite.post('/audit_logs/exports', { organization_id: exporting, ...range }).expect(201);
    await suite.eventually(`/audit_logs/exports/${exported}`, { state: 'ready' });

    const removed = async (): Promise<readonly string[]> => {
      const text = await (await fetch(`${product.url}/metrics`)).text();
      return swept
        .filter(({ name }) => Number(new RegExp(`^${SWEPT_METRIC}\\{data="${name}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0) > 0)
        .map(({ name }) => name);
    };
    clock.ahead = 400 * 86_400_000;
    await eventually(async () => expect(await removed()).toEqual(swept.map(({ name }) => name).filter((name) => name !== 'administration_origins')));
    // What cannot be had again goes once the clock has said so for a day.
    clock.ahead += 1.1 * 86_400_000;
    await eventually(async () => expect(await removed()).toEqual(swept.map(({ name }) => name)));
    // Whoever has not heard of the others for days answers once it has.
    await suite.eventually(deliveries, { data: [] });
  });
});
