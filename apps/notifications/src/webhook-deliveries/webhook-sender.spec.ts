import { TargetRule } from '#libs/messaging/src/webhooks/target-address';
import { Receiver } from '../testing/given-notifications.ts';
import { WebhookSender } from '#libs/messaging/src/webhooks/webhook-sender';

const production = new TargetRule({ mode: 'production', allowNetworks: [] });
/** Passes the rule, and is routed nowhere. */
const PUBLIC = '3ffe::1';
const development = new TargetRule({ mode: 'development', allowNetworks: [] });

describe('a webhook request', () => {
  let receiver: Receiver;
  let sender: WebhookSender;
  beforeEach(async () => {
    receiver = await Receiver.start();
    sender = new WebhookSender({ rule: development, timeout: 500 });
  });
  afterEach(async () => {
    await sender.close();
    await receiver.stop();
  });
  const post = (url: string, by = sender) => by.send({ url: new URL(url), headers: { 'webhook-id': 'event_1' }, body: '{}' });

  it('arrives as it was sent', async () => {
    receiver.answer = (_request, response) => void response.writeHead(202, { 'content-type': 'text/plain' }).end('thanks');
    expect(await post(`${receiver.url}/hooks?a=1`)).toEqual({ status: 202, error: null, excerpt: 'thanks', retryAfter: null });
    expect(receiver.received).toMatchObject([{ path: '/hooks?a=1', body: '{}', headers: { 'webhook-id': 'event_1' } }]);
  });

  it('follows no redirect', async () => {
    receiver.answer = (_request, response) => void response.writeHead(307, { location: `${receiver.url}/elsewhere` }).end();
    expect(await post(receiver.url)).toMatchObject({ status: 307 });
    expect(receiver.received).toHaveLength(1);
  });

  it('keeps 1 KiB of a long answer, and does not wait for the end of an endless one', async () => {
    receiver.answer = (_request, response) => {
      response.writeHead(200);
      const more = setInterval(() => response.write('ö'.repeat(40_000)), 1);
      response.on('close', () => clearInterval(more));
    };
    const { status, excerpt } = await post(receiver.url);
    expect([status, Buffer.byteLength(excerpt!)]).toEqual([200, 1024]);
  });

  it('keeps an excerpt of bytes that are no text within its limit', async () => {
    receiver.answer = (_request, response) => void response.writeHead(200).end(Buffer.alloc(2_000, 0xff));
    expect(Buffer.byteLength((await post(receiver.url)).excerpt!)).toBeLessThanOrEqual(1024);
  });

  it('ends when its time is over, wherever it is', async () => {
    receiver.answer = () => {};
    expect(await post(receiver.url)).toMatchObject({ status: null, error: 'timeout' });
    receiver.answer = (_request, response) => void response.writeHead(200, { 'content-length': '10' }).write('1');
    expect(await post(receiver.url)).toMatchObject({ status: null, error: 'timeout' });
  });

  it('tells of a receiver that is not there or hangs up', async () => {
    receiver.answer = (_request, response) => void response.destroy();
    expect(await post(receiver.url)).toMatchObject({ status: null, error: 'connection_lost' });
    const { url } = receiver;
    await receiver.stop();
    expect(await post(url)).toMatchObject({ status: null, error: 'ECONNREFUSED' });
    receiver = await Receiver.start();
  });

  it.each([
    ['120', 120_000],
    [new Date(Date.now() + 60_000).toUTCString(), expect.closeTo(60_000, -4)],
    ['soon', null],
  ])('hears Retry-After: %s', async (header, retryAfter) => {
    receiver.answer = (_request, response) => void response.writeHead(503, { 'retry-after': header }).end();
    expect(await post(receiver.url)).toMatchObject({ status: 503, retryAfter });
  });

  describe('in production mode', () => {
    const refused = { status: null, error: 'address_not_allowed' };

    it.each(['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '0.0.0.0', 'localhost'])('is not sent to %s', async (host) => {
      const strict = new WebhookSender({ rule: production, timeout: 500 });
      expect(await post(`http://${host}:${new URL(receiver.url).port}/`, strict)).toMatchObject(refused);
      expect(receiver.received).toEqual([]);
      await strict.close();
    });

    it('is judged at each connection: a name that turns to this machine is refused', async () => {
      const answers = [[PUBLIC], ['127.0.0.1']];
      const strict = new WebhookSender({ rule: production, timeout: 300, resolve: async () => answers.shift()! });
      const url = `http://turncoat.test:${new URL(receiver.url).port}/`;
      expect(await post(url, strict)).not.toMatchObject(refused);
      expect(await post(url, strict)).toMatchObject(refused);
      expect(answers).toEqual([]);
      expect(receiver.received).toEqual([]);
      await strict.close();
    });

    it('is refused where any of the addresses is private', async () => {
      const strict = new WebhookSender({ rule: production, timeout: 300, resolve: async () => [PUBLIC, '10.0.0.1'] });
      expect(await post('http://mixed.test/', strict)).toMatchObject(refused);
      await strict.close();
    });
  });

  it('goes to the address that was judged, under its name', async () => {
    let asked = 0;
    const named = new WebhookSender({
      rule: development,
      timeout: 500,
      resolve: async () => (asked++ === 0 ? ['127.0.0.1'] : ['10.255.255.1']),
    });
    const { port } = new URL(receiver.url);
    expect(await post(`http://acme.test:${port}/`, named)).toMatchObject({ status: 200 });
    expect(asked).toBe(1);
    expect(receiver.received[0]!.headers.host).toBe(`acme.test:${port}`);
    await named.close();
  });

  it('tries the next address of a name', async () => {
    const named = new WebhookSender({ rule: development, timeout: 500, resolve: async () => ['::1', '127.0.0.1'] });
    expect(await post(`http://acme.test:${new URL(receiver.url).port}/`, named)).toMatchObject({ status: 200 });
    await named.close();
  });
});
