import { randomUUID } from 'node:crypto';
import { givenWebhookReceiver } from '#libs/testing/src/given-webhook-receiver';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { eventually } from '#libs/testing/src/until';

const USERS = '/user_management/users';

describe('users who are erased', () => {
  let suite: GivenSuite;
  beforeAll(async () => {
    suite = await givenSuite();
  });

  async function create(fields: object = {}) {
    return suite.post(USERS, { email: `ada-${randomUUID()}@acme.test`, first_name: 'Ada', metadata: { tier: 'gold' }, ...fields }).expect(201);
  }

  const erasureOf = (id: string): string => `/admin/users/${id}/erasure`;

  async function recordsOf(id: string) {
    return (await suite.records()).filter(({ stream }) => stream.endsWith(id));
  }

  it('are gone at once, with an empty answer, and leave their email and external id to others', async () => {
    const given = { email: `grace-${randomUUID()}@acme.test`, external_id: randomUUID() };
    const user = await create(given);
    const { status, text } = await suite.post(erasureOf(user.id));
    expect([status, text]).toEqual([202, '']);
    await suite.get(`${USERS}/${user.id}`).expect(404);
    await suite.get(`${USERS}/external_id/${given.external_id}`).expect(404);
    await suite.put(`${USERS}/${user.id}`, { name: 'Nobody' }).expect(404);
    await create(given);
  });

  it('are erased once, whoever asks again', async () => {
    const { id } = await create();
    await Promise.all(Array.from({ length: 4 }, () => suite.post(erasureOf(id)).expect(202)));
    await suite.post(erasureOf(id)).expect(202);
    expect((await recordsOf(id)).map(({ type }) => type)).toEqual(['user.created', 'user.erased', 'user.deleted']);
  });

  it('may be deleted already', async () => {
    const { id } = await create();
    await suite.delete(`${USERS}/${id}`).expect(200);
    await suite.post(erasureOf(id)).expect(202);
    expect((await recordsOf(id)).map(({ type }) => type)).toEqual(['user.created', 'user.deleted', 'user.erased']);
  });

  it('have to have been here', async () => {
    const other = await suite.otherEnvironment();
    const { id } = await create();
    await other.post(erasureOf(id)).expect(404, { code: 'entity_not_found' });
    await suite.post(erasureOf('user_01HZZZZZZZZZZZZZZZZZZZZZZ1')).expect(404);
    await suite.get(`${USERS}/${id}`).expect(200);
  });

  it('are unknown to the log, while it goes on to say what happened', async () => {
    const user = await create();
    await suite.put(`${USERS}/${user.id}`, { last_name: 'King', locale: 'en' }).expect(200);
    await suite.post(erasureOf(user.id)).expect(202);
    await eventually(async () => {
      const [created, updated, erased, deleted] = await recordsOf(user.id);
      expect(created!.data).toMatchObject({ id: user.id, email: null, first_name: null, metadata: null, email_verified: false });
      expect(created!.subject).toMatchObject({ id: user.id, email: null, first_name: null, metadata: null });
      expect(updated!.data).toEqual({ last_name: null, locale: 'en' });
      expect(erased!.data).toEqual({ holders: [`user.${user.id}`, expect.stringMatching(/^address\.[0-9a-f]{64}\.\d{4}-\d{2}$/)] });
      expect([deleted!.data, deleted!.sealed]).toEqual([{ id: user.id }, []]);
      expect(deleted!.subject).toMatchObject({ id: user.id, email: null, locale: null });
    });
  });

  it('end for everybody who is told of their end, without what was personal', async () => {
    const user = await create();
    await suite.post(erasureOf(user.id)).expect(202);
    const { data } = await eventually(async () => {
      const { data: events } = await suite.get('/events?events=user.deleted&order=desc').expect(200);
      return events.find((event: { data: { id: string } }) => event.data.id === user.id) ?? Promise.reject(new Error('not there yet'));
    });
    expect(data).toEqual({
      ...{ object: 'user', id: user.id, email: '', email_verified: false, first_name: null, last_name: null, name: null, profile_picture_url: null },
      ...{ external_id: null, metadata: {}, last_sign_in_at: null, locale: null, created_at: user.created_at, updated_at: user.updated_at },
    });
  });

  it('are in no event of before any more, which is otherwise what it was', async () => {
    const user = await create();
    const after = (await suite.put(`${USERS}/${user.id}`, { last_name: 'King', locale: 'en' }).expect(200)).updated_at;
    const eventsOf = async () => {
      const { data: events } = await suite.get('/events?events=user.created&events=user.updated&order=desc').expect(200);
      return events.filter((event: { data: { id: string } }) => event.data.id === user.id);
    };
    const before = await eventually(async () => {
      const events = await eventsOf();
      expect(events.map(({ data }: { data: { email: string } }) => data.email)).toEqual([user.email, user.email]);
      return events;
    });
    await suite.post(erasureOf(user.id)).expect(202);
    const nothing = { email: '', first_name: null, last_name: null, metadata: {} };
    await eventually(async () =>
      expect(await eventsOf()).toEqual([
        { ...before[0], data: { ...before[0].data, ...nothing, locale: 'en', updated_at: after } },
        { ...before[1], data: { ...before[1].data, ...nothing } },
      ]),
    );
  });

  describe('who have signed in, and tried to before they were users', () => {
    const AUTHENTICATE = '/user_management/authenticate';
    /** Wherever one of these shows, somebody is known who should not be. */
    const words = ['address', 'former', 'agent', 'name'].map((what) => `${what}-${randomUUID()}`);
    const [address, former, agent, name] = words as [string, string, string, string];
    const ip_address = '2001:db8:1234:5678:9abc:def0:1234:5678';
    const SHOWN = ['user.created', 'user.updated', 'user.deleted', 'session.created', 'session.revoked', 'magic_auth.created', 'password_reset.created'].concat(
      ['succeeded', 'failed'].map((outcome) => `authentication.password_${outcome}`),
    );
    const known = (text: string): readonly string[] => [...words, ip_address].filter((word) => text.includes(word));
    let user: { readonly id: string };
    let end: () => Promise<void>;
    let receiver: Awaited<ReturnType<typeof givenWebhookReceiver>>;
    let endpoint: string;
    let deliveries: readonly { readonly id: string; readonly event: string }[];

    const feed = async (): Promise<readonly { readonly event: string; readonly data: object }[]> => {
      const { data } = await suite.get(`/events?limit=100&order=desc&${SHOWN.map((event) => `events=${event}`).join('&')}`).expect(200);
      return data.filter(
        (event: { readonly data: { readonly id?: string } }) => JSON.stringify(event).includes(user.id) || known(JSON.stringify(event)).length > 0,
      );
    };

    beforeAll(async () => {
      const client_id = await suite.clientIdOf(suite);
      receiver = await givenWebhookReceiver();
      // As one that repeats what it was sent, or knows of the person itself.
      receiver.answers(500, `not now, ${address}@acme.test of ${agent}`);
      end = () => receiver.close();
      endpoint = (await suite.post('/webhook_endpoints', { endpoint_url: receiver.url, events: SHOWN }).expect(201)).id;
      const signIn = (email: string, password: string) =>
        suite.post(AUTHENTICATE, { client_id, client_secret: suite.key, grant_type: 'password', email, password, ip_address, user_agent: agent });
      const [before, now] = [`${former}@acme.test`, `${address}@acme.test`];
      for (const email of [before, now]) expect((await signIn(email, 'ride-a-giraffe-7')).status).toBe(400);
      user = await suite.post(USERS, { email: before, email_verified: true, first_name: name, password: 'ride-a-giraffe-7' }).expect(201);
      await suite.put(`${USERS}/${user.id}`, { email: now, email_verified: true }).expect(200);
      expect((await signIn(now, 'ride-a-giraffe-8')).status).toBe(400);
      // One is ended, and one left.
      for (let count = 0; count < 2; count++) await signIn(now, 'ride-a-giraffe-7').expect(200);
      const { data: sessions } = await suite.get(`${USERS}/${user.id}/sessions`).expect(200);
      await suite.post('/user_management/sessions/revoke', { session_id: sessions[0].id }).expect(200);
      await suite.post('/user_management/magic_auth', { email: now }).expect(201);
      await suite.post('/user_management/password_reset', { email: now }).expect(201);
      // Each of them shows something, and is on record as not delivered.
      await eventually(async () => {
        const shown = new Set((await feed()).filter((event) => known(JSON.stringify(event)).length > 0).map(({ event }) => event));
        expect([...shown].sort()).toEqual(SHOWN.filter((event) => event !== 'user.deleted').sort());
        ({ data: deliveries } = await suite.get(`/webhook_endpoints/${endpoint}/deliveries?limit=100`).expect(200));
        expect(new Set(deliveries.map(({ event }) => event))).toEqual(shown);
        // All were tried, and what the receiver said is there for who asks.
        expect(deliveries.map((delivery) => known(JSON.stringify(delivery)).length)).toEqual(deliveries.map(() => 2));
      });
      await suite.post(erasureOf(user.id)).expect(202);
    }, 60_000);
    afterAll(() => end());

    it('are in no record, and in no event of the feed', async () => {
      await eventually(async () => {
        expect(known(JSON.stringify(await suite.records()))).toEqual([]);
        expect((await feed()).filter((event) => known(JSON.stringify(event)).length > 0)).toEqual([]);
      });
      // What nobody had the address for tells of nobody.
      const attempts = (await suite.records('authentication.password_failed')).map(({ data }) => data as { readonly user_id: string | null });
      expect(attempts.filter(({ user_id }) => user_id === null)).toEqual(
        Array(2).fill(expect.objectContaining({ email: null, ip_address: null, user_agent: null })),
      );
      await suite.get(`${USERS}/${user.id}/sessions`).expect(404);
    });

    it('have their sessions ended for everybody who is told', async () => {
      await eventually(async () => {
        const ended = (await feed()).filter(({ event }) => event === 'session.revoked');
        expect(ended.map(({ data }) => data)).toEqual(Array(2).fill(expect.objectContaining({ user_id: user.id, ip_address: null, user_agent: null })));
      });
    });

    it('are in no webhook that is sent again, one by one or all', async () => {
      receiver.answers(200);
      const from = receiver.received.length;
      for (const { id } of deliveries) await suite.post(`/webhook_endpoints/${endpoint}/deliveries/${id}/redeliver`).expect(202);
      const sent = () => receiver.received.slice(from).map(({ body }) => body);
      await eventually(async () => expect(sent().length).toBeGreaterThanOrEqual(deliveries.length), 30_000);
      await suite
        .post(`/webhook_endpoints/${endpoint}/replay`, { since: new Date(Date.now() - 3_600_000).toISOString(), events: ['authentication.password_failed'] })
        .expect(202);
      const failed = () => sent().filter((body) => JSON.parse(body).event === 'authentication.password_failed');
      await eventually(async () => expect(failed().length).toBeGreaterThanOrEqual(6), 30_000);
      expect(known(sent().join('\n'))).toEqual([]);
    }, 60_000);

    it('are in nothing that receivers of webhooks said about them', async () => {
      // Another process may have a key for a minute.
      await eventually(async () => {
        for (const { id } of deliveries) {
          const shown = await suite.get(`/webhook_endpoints/${endpoint}/deliveries/${id}`).expect(200);
          expect([shown.event, known(JSON.stringify(shown))]).toEqual([shown.event, []]);
        }
      }, 20_000);
    }, 100_000);
  });
});
