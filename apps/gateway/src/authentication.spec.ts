import { hash } from 'node:crypto';
import { EventStore, START, type Appended, type Position, type RecordedEvent } from '#libs/event-sourcing/src/event-store';
import { newUlid } from '#libs/platform/src/ids';
import { Authentication } from './authentication.ts';
import { givenGateway, KeptLog, type GivenGateway } from './given-gateway.ts';

const PATH = '/notes/note_01J00000000000000000000000';
const ENVIRONMENT = 'environment_01J00000000000000000000000';

describe('authentication', () => {
  let gateway: GivenGateway;
  beforeAll(async () => {
    gateway = await givenGateway();
  });
  afterAll(() => gateway.close());

  const statusWith = async (Authorization: string): Promise<number> => (await gateway.request('GET', PATH, { headers: { Authorization } })).status;
  const allow = (key: string): unknown => gateway.keys.usable.set(hash('sha256', key, 'hex'), ENVIRONMENT);
  const tell = (type: string, version: number): Promise<unknown> =>
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
    await tell('organization.created', 1);
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
    await tell('environment_key.revoked', 2);
    while ((await statusWith('Bearer sk_revoked')) === 200) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(await statusWith('Bearer sk_too_early')).toBe(200);
  });
});

describe('without word from the log', () => {
  /** Tells its head twice, then fails like an engine that is away. */
  class SilentLog extends EventStore {
    private asked = 0;
    async read(): Promise<readonly RecordedEvent[]> {
      return [];
    }
    async last(): Promise<null> {
      return null;
    }
    append(): Promise<Appended> {
      return Promise.reject(new Error('away'));
    }
    async head(): Promise<Position> {
      if (this.asked++ > 1) throw new Error('away');
      return START;
    }
    async *subscribe(): AsyncIterable<readonly RecordedEvent[]> {
      yield Promise.reject(new Error('away'));
    }
  }

  it('vouches for no key after 30 seconds', async () => {
    const clock = { now: () => time };
    let time = Date.now();
    const transport = { call: async () => ({ id: 'environment_key_1', environment_id: ENVIRONMENT, name: 'specs', expires_at: null }) as never };
    const authentication = new Authentication(transport, new SilentLog(), clock, new KeptLog());
    await authentication.start();
    try {
      expect(await authentication.authenticate('Bearer sk_any', 'req')).toMatchObject({ environment: ENVIRONMENT });
      time += 29_000;
      expect(await authentication.authenticate('Bearer sk_any', 'req')).toMatchObject({ environment: ENVIRONMENT });
      time += 2_000;
      expect(() => authentication.authenticate('Bearer sk_any', 'req')).toThrow(expect.objectContaining({ code: 'service_unavailable' }));
    } finally {
      await authentication.stop();
    }
  });
});
