import { setTimeout as pause } from 'node:timers/promises';
import { WEBHOOK_EVENT_NAMES } from '#libs/contracts/src/events';
import { givenWebhookReceiver } from '#libs/testing/src/given-webhook-receiver';
import { SMALL_LIMITS } from '#libs/testing/src/small-limits';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import { until } from '#libs/testing/src/until';

describe('webhook endpoints over HTTP', () => {
  let suite: GivenSuite;
  let other: Caller;
  beforeAll(async () => {
    suite = await givenSuite({ variables: SMALL_LIMITS });
    other = await suite.otherEnvironment();
  });

  let count = 0;
  const newUrl = (): string => `https://receiver-${++count}.test/hooks`;
  const create = (url = newUrl(), events: readonly string[] = ['organization.created']) => suite.post('/webhook_endpoints', { endpoint_url: url, events });
  const created: string[] = [];
  const given = async (url?: string, events?: readonly string[]) => {
    const endpoint = await create(url, events).expect(201);
    created.push(endpoint.id as string);
    return endpoint;
  };
  afterEach(async () => {
    for (const id of created.splice(0)) await suite.delete(`/webhook_endpoints/${id}`);
  });

  it('are created with a secret that every later answer shows', async () => {
    const url = newUrl();
    const endpoint = await given(url);
    expect(endpoint).toEqual({
      object: 'webhook_endpoint',
      id: expect.stringMatching(/^we_[0-9A-Z]{26}$/),
      endpoint_url: url,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      status: 'enabled',
      events: ['organization.created'],
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    await suite.get('/webhook_endpoints').expect(200, { data: [endpoint], list_metadata: { before: null, after: null } });
    await suite.get(`/webhook_endpoints/${endpoint.id}`).expect(200, endpoint);
    await suite.patch(`/webhook_endpoints/${endpoint.id}`, { status: 'disabled' }).expect(200, { secret: endpoint.secret, status: 'disabled' });
  });

  it('answer a repeated creation with the secret that was made first', async () => {
    const body = { endpoint_url: newUrl(), events: [] };
    const headers = { 'Idempotency-Key': `create-${count}` };
    const first = await suite.post('/webhook_endpoints', body, headers).expect(201);
    created.push(first.id as string);
    expect(await suite.post('/webhook_endpoints', body, headers).expect(201)).toEqual(first);
  });

  it('share no URL, in whatever spelling', async () => {
    const endpoint = await given('https://Same.test');
    expect(endpoint.endpoint_url).toBe('https://same.test/');
    await create('https://same.test:443/#part').expect(409, { code: 'duplicate_endpoint' });
    const { id } = await given();
    await suite.patch(`/webhook_endpoints/${id}`, { endpoint_url: 'https://same.test/' }).expect(409, { code: 'duplicate_endpoint' });
    await suite.delete(`/webhook_endpoints/${endpoint.id}`).expect(204);
    await suite.patch(`/webhook_endpoints/${id}`, { endpoint_url: 'https://SAME.test:443' }).expect(200, { endpoint_url: 'https://same.test/' });
    await other.post('/webhook_endpoints', { endpoint_url: 'https://same.test/', events: [] }).expect(201);
  });

  it.each([
    'nonsense',
    'ftp://acme.test',
    'https://user:secret@acme.test',
    'http://169.254.169.254/',
    'https://acme.test:0/',
    'https://acme.test\\@evil.test/',
    ' https://acme.test/',
  ])('do not have the URL %s', (url) => create(url).expect(422, { code: 'invalid_url', errors: [{ code: 'invalid_url', field: 'endpoint_url' }] }));

  it('are refused without what they need', async () => {
    await suite.post('/webhook_endpoints', {}).expect(422, {
      code: 'invalid_request_parameters',
      errors: [
        { code: 'required', field: 'endpoint_url' },
        { code: 'required', field: 'events' },
      ],
    });
    await create(newUrl(), ['organization.created', 'organization.renamed', 'vault.data.read']).expect(422, {
      code: 'invalid_request_parameters',
      errors: [
        { code: 'unknown_event_type', field: 'events.1' },
        { code: 'unknown_event_type', field: 'events.2' },
      ],
    });
  });

  it('take all 93 names, each once', async () => {
    expect(WEBHOOK_EVENT_NAMES).toHaveLength(93);
    const endpoint = await given(undefined, [...WEBHOOK_EVENT_NAMES, 'user.created']);
    expect(endpoint.events).toEqual(WEBHOOK_EVENT_NAMES);
  });

  it('are limited in number, also when many come at once', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => create()));
    created.push(...answers.flatMap(({ status, body }) => (status === 201 ? [body.id as string] : [])));
    expect(created).toHaveLength(5);
    await create().expect(422, { code: 'webhook_endpoint_limit_reached' });
  });

  it('are paged', async () => {
    const ids = [(await given()).id, (await given()).id, (await given()).id];
    const first = await suite.get('/webhook_endpoints?limit=2').expect(200);
    expect(first.data.map(({ id }: { id: string }) => id)).toEqual([ids[2], ids[1]]);
    await suite.get(`/webhook_endpoints?limit=2&after=${first.list_metadata.after}`).expect(200, { data: [{ id: ids[0] }] });
    await suite.get('/webhook_endpoints?after=we_nonsense').expect(422, { errors: [{ code: 'invalid_cursor', field: 'after' }] });
  });

  it('get another secret', async () => {
    const { id, secret } = await given();
    const rotated = await suite.post(`/webhook_endpoints/${id}/rotate_secret`).expect(200);
    expect(rotated.secret).not.toBe(secret);
    expect(rotated.secret).toMatch(/^whsec_/);
    await suite.get('/webhook_endpoints').expect(200, { data: [{ id, secret: rotated.secret }] });
    await suite.post(`/webhook_endpoints/${id}/rotate_secret`, { overlap_seconds: 604_801 }).expect(422);
  });

  it('do not exist for others, or once they are deleted', async () => {
    const { id } = await given();
    const elsewhere = await other.get('/webhook_endpoints').expect(200);
    expect(JSON.stringify(elsewhere)).not.toContain(id);
    const unknown = `we_${'0'.repeat(26)}`;
    for (const path of ['', '/deliveries', '/deliveries/x']) {
      const method = path === '' ? 'delete' : 'get';
      const { status, body } = await other[method](`/webhook_endpoints/${id}${path}`);
      expect({ status, body: JSON.stringify(body).replaceAll(id as string, unknown) }).toEqual({
        status: 404,
        body: JSON.stringify((await other[method](`/webhook_endpoints/${unknown}${path}`)).body),
      });
    }
    await suite.delete(`/webhook_endpoints/${id}`).expect(204);
    await suite.delete(`/webhook_endpoints/${id}`).expect(404, { code: 'entity_not_found', entity_id: id });
    await suite.get(`/webhook_endpoints/${id}`).expect(404, { code: 'entity_not_found', entity_id: id });
    await suite.patch(`/webhook_endpoints/${id}`, { status: 'enabled' }).expect(404);
    await suite.post(`/webhook_endpoints/${id}/rotate_secret`, {}).expect(404);
  });

  it('are told of what happens, with the event that the feed shows', async () => {
    const receiver = await givenWebhookReceiver();
    const { id } = await given(receiver.url);
    const organization = await suite.post('/organizations', { name: 'Acme' }).expect(201);
    await until(() => receiver.received.length > 0);
    const event = JSON.parse(receiver.received[0]!.body) as { id: string; data: { id: string } };
    expect(event.data.id).toBe(organization.id);
    const { data } = await suite.eventually(`/events?organization_id=${organization.id}`, { data: [{ id: event.id }] });
    expect(data).toEqual([event]);
    const deliveries = await suite.eventually(`/webhook_endpoints/${id}/deliveries`, {
      data: [{ event_id: event.id, status: 'delivered', attempts: [{ status_code: 200 }] }],
    });
    const [delivery] = deliveries.data;
    await suite.get(`/webhook_endpoints/${id}/deliveries/${delivery.id}`).expect(200, delivery);

    await suite.post(`/webhook_endpoints/${id}/deliveries/${delivery.id}/redeliver`).expect(202, { id: delivery.id, status: 'pending' });
    await until(() => receiver.received.length === 2);
    await suite
      .post(`/webhook_endpoints/${id}/replay`, { since: organization.created_at })
      .expect(202, { webhook_endpoint_id: id, events: ['organization.created'] });
    await until(() => receiver.received.length === 3);
    await suite.post(`/webhook_endpoints/${id}/test`, { event: 'organization.deleted' }).expect(202, { event: 'organization.deleted', status: 'pending' });
    await until(() => receiver.received.length === 4);
    expect(new Set(receiver.received.slice(0, 3).map(({ body }) => body)).size).toBe(1);
    await suite.post(`/webhook_endpoints/${id}/replay`, { since: 'yesterday' }).expect(422);
    await suite.post(`/webhook_endpoints/${id}/test`, { event: 'nonsense' }).expect(422);
    await receiver.close();
  });

  it('announce nothing of themselves', async () => {
    const { id } = await given(undefined, [...WEBHOOK_EVENT_NAMES]);
    await suite.delete(`/webhook_endpoints/${id}`).expect(204);
    await pause(200);
    const { data } = await suite.get('/events?limit=100').expect(200);
    expect(JSON.stringify(data)).not.toContain('webhook_endpoint');
  });

  it('hold their secrets sealed in the log', async () => {
    const { secret } = await given();
    const records = JSON.stringify(await suite.records('webhook_endpoint.created'));
    expect(records).toContain('enc.v1.');
    expect(records).not.toContain((secret as string).slice(6));
  });
});
