import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { newUlid } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import { Readiness } from '#libs/platform/src/readiness';
import { FaultyLog } from '#libs/testing/src/faulty-log';
import { KeptLog } from '#libs/testing/src/kept-log';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { until } from '#libs/testing/src/until';
import { Authentication } from './authentication.ts';
import { givenGateway, type GivenGateway } from './testing/given-gateway.ts';

const PATH = '/notes/note_01J00000000000000000000000';
const ENVIRONMENT = 'environment_01J00000000000000000000000';

/** What the log has to say about keys. */
const tell = (gateway: GivenGateway, type: string, version: number): Promise<unknown> =>
  gateway.events.append('environment-system-01J00000000000000000000000', version - 1, [
    {
      id: newUlid(Date.now()),
      type,
      shape: 1,
      data: {},
      subject: null,
      public: [],
      meta: { environment: 'system', actor: { id: 'specs', source: 'system', name: null }, requestId: 'req', commandId: newUlid(Date.now()), at: Date.now() },
    },
  ]);

describe('authentication', () => {
  let gateway: GivenGateway;
  beforeAll(async () => {
    gateway = await givenGateway();
  });
  afterAll(() => gateway.close());

  const statusWith = async (Authorization: string): Promise<number> => (await gateway.request('GET', PATH, { headers: { Authorization } })).status;
  const allow = (key: string): unknown => gateway.keys.usable.set(hash('sha256', key, 'hex'), ENVIRONMENT);

  it.each(['', 'Bearer', 'Bearer ', 'Basic abc', 'sk_test_of_the_gateway_specs', 'Bearer wrong', `Bearer ${'x'.repeat(513)}`])(
    'refuses %p',
    async (authorization) => {
      const response = await gateway.request('GET', PATH, { headers: { Authorization: authorization } });
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
      expect(await response.json()).toEqual({ message: 'Unauthorized', code: 'unauthorized' });
    },
  );

  it('refuses before it looks at the body', async () => {
    const response = await gateway.request('POST', '/notes', { body: '{', headers: { Authorization: 'Bearer wrong', 'Content-Type': 'application/json' } });
    expect(response.status).toBe(401);
  });

  it('takes the scheme in any case', async () => {
    allow('sk_any_case');
    expect(await statusWith('bearer sk_any_case')).toBe(200);
  });

  it('asks once for a key that it knows, and once for one that it does not', async () => {
    allow('sk_known');
    await statusWith('Bearer sk_known');
    await statusWith('Bearer sk_unknown');
    const asked = gateway.keys.asked;
    await Promise.all([statusWith('Bearer sk_known'), statusWith('Bearer sk_unknown'), statusWith('Bearer sk_known')]);
    expect(gateway.keys.asked).toBe(asked);
  });

  it('asks no more often because of other events', async () => {
    allow('sk_steady');
    await statusWith('Bearer sk_steady');
    const asked = gateway.keys.asked;
    await tell(gateway, 'organization.created', 1);
    await statusWith('Bearer sk_steady');
    expect(gateway.keys.asked).toBe(asked);
  });

  it('drops a revoked key as soon as the log tells of it, and takes a new one that was tried too early', async () => {
    allow('sk_revoked');
    expect(await statusWith('Bearer sk_revoked')).toBe(200);
    expect(await statusWith('Bearer sk_too_early')).toBe(401);
    gateway.keys.usable.delete(hash('sha256', 'sk_revoked', 'hex'));
    allow('sk_too_early');
    expect(await statusWith('Bearer sk_revoked')).toBe(200);
    await tell(gateway, 'environment_key.revoked', 2);
    await until(async () => (await statusWith('Bearer sk_revoked')) !== 200);
    expect(await statusWith('Bearer sk_too_early')).toBe(200);
  });
});

it('lets a revoked key in at no gateway a second later', async () => {
  const first = await givenGateway();
  const gateways = [first, await givenGateway({}, { beside: first })];
  const statuses = () => Promise.all(gateways.map(async (gateway) => (await gateway.request('GET', PATH)).status));
  try {
    expect(await statuses()).toEqual([200, 200]);
    first.keys.usable.clear();
    expect(await statuses()).toEqual([200, 200]);
    await tell(first, 'environment_key.revoked', 1);
    await pause(1_000);
    expect(await statuses()).toEqual([401, 401]);
  } finally {
    for (const gateway of gateways.reverse()) await gateway.close();
  }
});

it('starts without the log, is not ready before it heard of it, and is ready from then on', async () => {
  const events = new FaultyLog('away');
  const gateway = await givenGateway({}, { events });
  const ask = async (path: string) => {
    const response = await gateway.request('GET', path);
    return { status: response.status, ...((await response.json()) as object) };
  };
  try {
    expect(await ask('/health/ready')).toEqual({ status: 'not_ready', reason: 'waiting for the event log' });
    expect(await ask('/health/live')).toEqual({ status: 'live' });
    expect((await gateway.request('GET', PATH)).status).toBe(503);
    events.state = 'there';
    await until(async () => (await gateway.request('GET', PATH)).status === 200);
    events.fail('away');
    expect(await ask('/health/ready')).toEqual({ status: 'ready' });
    expect((await gateway.request('GET', PATH)).status).toBe(200);
  } finally {
    await gateway.close();
  }
});

describe('without word from the log', () => {
  let clock: SettableClock;
  let events: FaultyLog;
  let authentication: Authentication;
  let asked: number;
  beforeEach(async () => {
    clock = new SettableClock();
    events = new FaultyLog();
    asked = 0;
    const transport = {
      call: async () => {
        asked++;
        return { id: 'environment_key_1', environment_id: ENVIRONMENT, name: 'specs', expires_at: null } as never;
      },
    };
    authentication = new Authentication(transport, new Readiness(), clock, new LogFollowing(events, clock, new KeptLog()), new Metrics());
    await authentication.start();
  });
  afterEach(() => authentication.stop());

  const come = async () => authentication.authenticate('Bearer sk_any', 'req');
  const refused = { code: 'service_unavailable' };

  it.each(['away', 'hanging'] as const)('vouches for no key after 30 seconds of a log that is %s, and does so again once it is there', async (state) => {
    await pause(1_100);
    events.fail(state);
    await pause(1_100);
    expect(await come()).toMatchObject({ environment: ENVIRONMENT });
    clock.forward(29_000);
    expect(await come()).toMatchObject({ environment: ENVIRONMENT });
    clock.forward(2_000);
    await expect(come()).rejects.toMatchObject(refused);
    if (state === 'hanging') return;
    events.state = 'there';
    await pause(1_500);
    expect(await come()).toMatchObject({ environment: ENVIRONMENT });
  });

  it('hears afterwards what it missed', async () => {
    await come();
    clock.forward(10);
    await come();
    expect(asked).toBe(2);
    events.fail('away');
    events.record('environment_key.revoked');
    await come();
    expect(asked).toBe(2);
    events.state = 'there';
    await pause(1_000);
    await come();
    expect(asked).toBe(3);
  });
});
