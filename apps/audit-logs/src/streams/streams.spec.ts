import { createHash } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { openApiDocument } from '#libs/contracts/src/openapi';
import { canonicalJson } from '#libs/platform/src/canonical-json';
import { environmentVariables } from '#libs/platform/src/config/environment';
import type { Certified } from '#libs/testing/src/certificates';
import { certificateOfReceivers } from '#libs/testing/src/given-webhook-receiver';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import { eventually, until } from '#libs/testing/src/until';
import { verifyCheckpoint } from '../tree/checkpoint.ts';
import { EventCollector, said } from './testing/event-collector.ts';
import { StreamReceiver, type Answered, type Received } from './testing/stream-receiver.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=';
const TOKEN = '5f8b2c1e-0000-4000-8000-a1b2c3d4e5f6';
const REFUSED: Answered = { status: 401, text: `nobody knows ${TOKEN}` };

/** Processes of a cluster write lines of their own. */
const seesLog = environmentVariables()['SUITE'] !== 'processes';

interface PutStream {
  readonly requestBody: { readonly content: { readonly 'application/json': { readonly example: object } } };
}

/** What a batch holds. */
interface Sent {
  readonly id: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a spec reads of an item, it also asserts
  readonly data: readonly any[];
}

describe('the stream of an audit trail', () => {
  let suite: GivenSuite;
  const receivers: StreamReceiver[] = [];
  /** Lines of the log about receivers. */
  const told: string[] = [];
  let certified: Certified | null;
  beforeAll(async () => {
    suite = await givenSuite({ onLogLine: (line) => void (line.includes('does not take it') && told.push(line)) });
    certified = await certificateOfReceivers();
  });
  afterAll(() => Promise.all(receivers.map((receiver) => receiver.close())));

  const receiving = async (answer?: StreamReceiver['answer']): Promise<StreamReceiver> => {
    const receiver = await StreamReceiver.listen(answer, certified);
    receivers.push(receiver);
    return receiver;
  };
  const organization = async (caller: Caller = suite): Promise<string> => (await caller.post('/organizations', { name: 'Acme' }).expect(201)).id;
  const pathOf = (id: string): string => `/admin/organizations/${id}/audit_log_stream`;
  const record = async (organization_id: string, ...actions: readonly string[]): Promise<void> => {
    for (const action of actions) {
      const event = {
        action,
        occurred_at: new Date(Date.now()).toISOString(),
        actor: { id: 'user_42', type: 'user', metadata: { 10: true, 9: 'b', role: 'owner' } },
        targets: [{ id: 'document_7', type: 'document' }],
        context: { location: '192.0.2.1' },
      };
      await suite.post('/audit_logs/events', { organization_id, event }).expect(200);
    }
  };
  const signed = (receiver: StreamReceiver) => ({ type: 'GenericHttps', url: `${receiver.origin}/in`, secret: SECRET });
  const verified = new WeakMap<Received, Sent>();
  /** Each request, verified as receivers of webhooks do. */
  const batches = ({ received }: StreamReceiver): readonly Sent[] =>
    received.map((request) => {
      const { body, headers } = request;
      const sent = verified.get(request) ?? (new Webhook(SECRET).verify(JSON.stringify(JSON.parse(body)), headers as Record<string, string>) as Sent);
      verified.set(request, sent);
      return sent;
    });
  const items = (receiver: StreamReceiver): Sent['data'] => batches(receiver).flatMap(({ data }) => data);
  const actions = (receiver: StreamReceiver): readonly string[] =>
    items(receiver).flatMap(({ object, action }) => (object === 'audit_log_event' ? [action] : []));
  const has = (receiver: StreamReceiver, ...expected: readonly string[]): Promise<void> =>
    until(() => expected.every((action) => actions(receiver).includes(action)));

  it('sends what is recorded from now on, signed, with what proves it', async () => {
    const acme = await organization();
    await record(acme, 'before');
    const receiver = await receiving();
    const { id } = await suite
      .put(pathOf(acme), signed(receiver))
      .expect(200, { type: 'GenericHttps', state: 'active', last_synced_at: null, waiting_events: 0 });
    await record(acme, 'one', 'two');
    await has(receiver, 'one', 'two');
    // Maybe only of what was before: the next is signed a minute later.
    await until(() => items(receiver).some(({ object }) => object === 'audit_log_checkpoint'));
    expect(actions(receiver)).toEqual(['one', 'two']);
    // A checkpoint stands behind the events that it is of.
    let known = 1;
    for (const item of items(receiver)) {
      if (item.object === 'audit_log_event') expect(item.leaf_index).toBe(known++);
      else expect(item.size).toBeLessThanOrEqual(known);
    }
    const batch = batches(receiver).find(({ data }) => data.some(({ action }) => action === 'one'));
    expect(batch).toMatchObject({ object: 'audit_log_batch', stream_id: id, organization_id: acme });
    const event = items(receiver).find(({ action }) => action === 'two');
    const listed = await suite.get(`/audit_logs/events/${event.id}`).expect(200);
    expect(event).toEqual({ ...listed, salt: expect.stringMatching(/^[0-9a-f]{32}$/) });
    const { object: _, id: __, organization_id: ___, received_at: ____, leaf_index: _____, ...content } = listed;
    const commitment = createHash('sha256').update(Buffer.from(event.salt, 'hex')).update(canonicalJson(content)).digest('base64url');
    const { leaf_data } = await suite.eventually(`/audit_logs/organizations/${acme}/inclusion?event_id=${event.id}&size=3`, {});
    expect(JSON.parse(leaf_data)).toMatchObject({ commitment });
    const { data: keys } = await suite.get(`/audit_logs/keys?client_id=${await suite.clientIdOf(suite)}`).expect(200);
    const checkpoint = items(receiver).find(({ object }) => object === 'audit_log_checkpoint');
    expect(verifyCheckpoint(checkpoint.checkpoint, [Buffer.from(keys[0].public_key, 'base64')])).toMatchObject({ size: checkpoint.size });
    const { last_synced_at } = await suite.eventually(pathOf(acme), { waiting_events: 0, error: null, skipped_events: 0, next_attempt_at: null });
    expect(last_synced_at).not.toBeNull();
    const { created_at } = await suite.get(pathOf(acme)).expect(200);
    const { log_stream } = await suite.get(`/organizations/${acme}/audit_log_configuration`).expect(200);
    expect(log_stream).toEqual({ id, type: 'GenericHttps', state: 'active', last_synced_at: expect.any(String), created_at });
    await eventually(async () => {
      const { data } = await suite.get(`${pathOf(acme)}/deliveries`).expect(200);
      expect(data).toContainEqual(expect.objectContaining({ status: 'delivered', batch_id: batch!.id, status_code: 200, error: null, first_leaf_index: 1 }));
    });
  });

  it('is made of what its document shows', async () => {
    const acme = await organization();
    const { requestBody } = openApiDocument('0.1.0').paths['/admin/organizations/{id}/audit_log_stream']!['put'] as unknown as PutStream;
    await suite.put(pathOf(acme), requestBody.content['application/json'].example).expect(200, { state: 'active' });
  });

  it('begins with all that is retained where that is asked for, in batches of 500', async () => {
    const acme = await organization();
    const all = Array.from({ length: 520 }, (_, index) => `action ${index}`);
    for (let first = 0; first < all.length; first += 64) await Promise.all(all.slice(first, first + 64).map((action) => record(acme, action)));
    const receiver = await receiving();
    await suite.put(pathOf(acme), { ...signed(receiver), from: 'beginning' }).expect(200);
    await until(() => actions(receiver).length >= all.length);
    expect(items(receiver).flatMap(({ leaf_index }) => leaf_index ?? [])).toEqual(all.map((_, index) => index));
    expect(new Set(actions(receiver))).toEqual(new Set(all));
    expect(Math.max(...batches(receiver).map(({ data }) => data.length))).toBe(500);
  });

  it('sends the same batch again until it is taken, and nothing before it', async () => {
    const acme = await organization();
    const receiver = await receiving(() => ({ status: 500, text: 'out of order' }));
    await suite.put(pathOf(acme), signed(receiver)).expect(200);
    await record(acme, 'one');
    const failing = await suite.eventually(pathOf(acme), { state: 'error', error: 'status_not_successful', waiting_events: 1 });
    expect(Date.parse(failing.next_attempt_at)).toBeGreaterThan(Date.now() - 1_000);
    await record(acme, 'two');
    await until(() => receiver.received.length >= 2);
    const first = batches(receiver)[0]!.id;
    expect(batches(receiver).map(({ id }) => id)).toEqual(batches(receiver).map(() => first));
    expect(actions(receiver)).not.toContain('two');
    const { data } = await suite.get(`${pathOf(acme)}/deliveries`).expect(200);
    expect(data[0]).toMatchObject({
      batch_id: first,
      status: 'failed',
      status_code: 500,
      events: 1,
      error: 'status_not_successful',
      response_excerpt: 'out of order',
    });
    const failed = receiver.received.length;
    receiver.answer = () => ({ status: 204 });
    await suite.post(`${pathOf(acme)}/resume`).expect(200, { state: 'active' });
    await has(receiver, 'two');
    await suite.eventually(pathOf(acme), { state: 'active', error: null, waiting_events: 0 });
    const since = batches(receiver).slice(failed);
    expect(since[0]!.id).toBe(first);
    expect(since.flatMap(({ data: sent }) => sent.flatMap(({ action }) => action ?? []))).toEqual(['one', 'two']);
  });

  it.each([
    ['it refuses the secret', REFUSED, 'status_not_successful'],
    ['it sends elsewhere', { status: 302, headers: { location: 'http://169.254.169.254/' } }, 'redirect_not_followed'],
  ])('does not ask a receiver again and again where %s', async (_, answered, error) => {
    const acme = await organization();
    const receiver = await receiving(() => answered);
    await suite.put(pathOf(acme), signed(receiver)).expect(200);
    await record(acme, 'one');
    // Whoever reads the log sees why.
    const reasons = (): readonly unknown[] => told.filter((line) => line.includes(acme)).map((line) => JSON.parse(line).reason);
    await until(() => !seesLog || reasons().length > 0);
    expect(reasons()).toEqual(seesLog ? [error] : []);
    const { next_attempt_at } = await suite.eventually(pathOf(acme), { state: 'invalid', error });
    expect(Date.parse(next_attempt_at) - Date.now()).toBeGreaterThan(40_000);
    await record(acme, 'two');
    expect(receiver.received).toHaveLength(1);
    // What stays the same need not be told again; whoever says so wants it tried.
    await suite.put(pathOf(acme), { type: 'GenericHttps', url: `${receiver.origin}/in` }).expect(200, { state: 'active' });
    await until(() => receiver.received.length === 2);
    await suite.eventually(pathOf(acme), { state: 'invalid' });
    receiver.answer = () => ({ status: 200 });
    await suite.post(`${pathOf(acme)}/resume`).expect(200, { state: 'active' });
    await has(receiver, 'one', 'two');
  });

  it('cuts a batch that is too large for its receiver', async () => {
    const acme = await organization();
    const receiver = await receiving(({ body }) => ({ status: (JSON.parse(body) as Sent).data.length > 2 ? 413 : 200 }));
    await record(acme, 'one', 'two', 'three', 'four', 'five', 'six', 'seven');
    await suite.put(pathOf(acme), { ...signed(receiver), from: 'beginning' }).expect(200);
    await until(() => actions(receiver).at(-1) === 'seven');
    await suite.eventually(pathOf(acme), { state: 'active', waiting_events: 0 });
  });

  it('waits while it is paused, and goes on where it was', async () => {
    const acme = await organization();
    const receiver = await receiving();
    await suite.put(pathOf(acme), signed(receiver)).expect(200);
    await record(acme, 'one');
    await has(receiver, 'one');
    await suite.eventually(pathOf(acme), { waiting_events: 0 });
    await suite.post(`${pathOf(acme)}/pause`).expect(200, { state: 'inactive' });
    await record(acme, 'two');
    await suite.eventually(pathOf(acme), { state: 'inactive', waiting_events: 1 });
    await suite.post(`${pathOf(acme)}/pause`).expect(200, { state: 'inactive' });
    expect(actions(receiver)).toEqual(['one']);
    await suite.post(`${pathOf(acme)}/resume`).expect(200, { state: 'active' });
    await has(receiver, 'two');
    expect(actions(receiver)).toEqual(['one', 'two']);
  });

  it('ends with the stream, and with the organization', async () => {
    const receiver = await receiving();
    const [acme, other] = [await organization(), await organization()];
    for (const id of [acme, other]) {
      await suite.put(pathOf(id), signed(receiver)).expect(200);
      await record(id, `${id} one`);
      await has(receiver, `${id} one`);
    }
    await suite.delete(pathOf(acme)).expect(204);
    await suite.delete(pathOf(acme)).expect(404);
    expect(await suite.get(`/organizations/${acme}/audit_log_configuration`).expect(200)).not.toHaveProperty('log_stream');
    for (const answer of [
      suite.get(pathOf(acme)),
      suite.post(`${pathOf(acme)}/pause`),
      suite.post(`${pathOf(acme)}/resume`),
      suite.get(`${pathOf(acme)}/deliveries`),
    ])
      await answer.expect(404);
    await record(acme, 'after the stream');
    await suite.delete(`/organizations/${other}`).expect(202);
    await suite.get(pathOf(other)).expect(404);
    await suite.put(pathOf(other), signed(receiver)).expect(404);
    // One that is created later is another, and begins later.
    const later = await receiving();
    await suite.put(pathOf(acme), signed(later)).expect(200, { waiting_events: 0, last_synced_at: null });
    await record(acme, 'later');
    await has(later, 'later');
    expect(actions(later)).toEqual(['later']);
    expect(actions(receiver)).not.toContain('after the stream');
    await until(async () => (await suite.records('audit_log_stream.deleted')).length === 2);
  });

  it('sends nobody the secret of another, and needs it where the address changes', async () => {
    const acme = await organization();
    const receiver = await receiving();
    await suite.put(pathOf(acme), { type: 'GenericHttps', url: receiver.origin }).expect(422, { errors: [{ code: 'required', field: 'secret' }] });
    await suite.put(pathOf(acme), signed(receiver)).expect(200);
    const elsewhere = await receiving();
    await suite.put(pathOf(acme), { type: 'GenericHttps', url: elsewhere.origin }).expect(422, { errors: [{ code: 'required', field: 'secret' }] });
    await suite.put(pathOf(acme), { type: 'Splunk', url: `${receiver.origin}/in` }).expect(422, { errors: [{ code: 'required', field: 'token' }] });
    const stranger = await suite.otherEnvironment();
    await stranger.get(pathOf(acme)).expect(404);
    await stranger.put(pathOf(acme), signed(elsewhere)).expect(404);
    await stranger.delete(pathOf(acme)).expect(404);
  });

  it.each([
    ['a metadata address', { url: 'http://169.254.169.254/' }, 'url', 'invalid_url'],
    ['credentials', { url: 'https://user:password@acme.test/' }, 'url', 'invalid_url'],
    ['no address', { url: 'gopher://acme.test/' }, 'url', 'invalid_url'],
    ['a token for no collector', { token: TOKEN }, 'token', 'not_allowed'],
    ['an index of no collector', { index: 'audit' }, 'index', 'not_allowed'],
    ['a query where the collector has its own', { type: 'Splunk', secret: undefined, token: TOKEN, url: 'https://acme.test/?token=x' }, 'url', 'invalid_url'],
    ['a secret for the collector', { type: 'Splunk', token: TOKEN }, 'secret', 'not_allowed'],
  ])('refuses %s', async (_, wrong, field, code) => {
    const acme = await organization();
    const given = { type: 'GenericHttps', url: 'https://acme.test/', secret: SECRET, ...wrong };
    await suite.put(pathOf(acme), given).expect(422, { errors: [{ code, field }] });
  });

  it('is held up by no receiver but its own, however many hang', async () => {
    const dead = await receiving(() => null);
    // More than are sent to at once.
    const hanging = await Promise.all(Array.from({ length: 40 }, () => organization()));
    await Promise.all(hanging.map((id) => suite.put(pathOf(id), signed(dead)).expect(200)));
    await Promise.all(hanging.map((id) => record(id, 'one')));
    await until(() => dead.received.length > 0);
    const other = await organization();
    const receiver = await receiving();
    await suite.put(pathOf(other), signed(receiver)).expect(200);
    await record(other, 'one');
    await has(receiver, 'one');
    // None of them was given up yet.
    for (const id of hanging) expect((await suite.get(`${pathOf(id)}/deliveries`).expect(200)).data).toEqual([]);
    await Promise.all(hanging.map((id) => suite.delete(pathOf(id)).expect(204)));
  });

  describe('to the HTTP Event Collector of Splunk', () => {
    const splunk = (receiver: StreamReceiver, more: object = {}) => ({ type: 'Splunk', url: receiver.origin, token: TOKEN, index: 'audit', ...more });

    it('says what it documents', async () => {
      const acme = await organization();
      const collector = new EventCollector(TOKEN, ['audit']);
      const receiver = await receiving((request) => collector.answer(request));
      await suite.put(pathOf(acme), splunk(receiver)).expect(200, { type: 'Splunk', index: 'audit', source: null, state: 'active' });
      await record(acme, 'one', 'two');
      await until(() => collector.taken.length >= 3);
      const [first] = collector.taken;
      expect(first).toMatchObject({
        source: 'gatehouse',
        sourcetype: 'gatehouse:audit',
        index: 'audit',
        event: { object: 'audit_log_event', action: 'one', organization_id: acme, leaf_index: 0 },
        fields: { object: 'audit_log_event', organization_id: acme, action: 'one', actor_id: 'user_42', actor_type: 'user', leaf_index: '0' },
      });
      expect(first!.time).toBe(Date.parse(first!.event.occurred_at) / 1_000);
      expect(collector.taken.map(({ event }) => event.object)).toContain('audit_log_checkpoint');
    });

    it.each([
      ['an invalid token', said(403, 4, 'Invalid token'), 'invalid', 'invalid_token'],
      ['an index that there is not', said(400, 7, 'Incorrect index'), 'invalid', 'incorrect_index'],
      ['that it is busy', said(503, 9, 'Server is busy'), 'error', 'server_busy'],
      ['a page of a proxy', { status: 200, text: '<html>' }, 'error', 'not_acknowledged'],
    ])('heeds %s', async (_, answered, state, error) => {
      const acme = await organization();
      const collector = new EventCollector(TOKEN, ['audit']);
      const receiver = await receiving(() => answered);
      await suite.put(pathOf(acme), splunk(receiver)).expect(200);
      await record(acme, 'one');
      await suite.eventually(pathOf(acme), { state, error });
      receiver.answer = (request) => collector.answer(request);
      await suite.post(`${pathOf(acme)}/resume`).expect(200);
      await until(() => collector.taken.length > 0);
      await suite.delete(pathOf(acme)).expect(204);
    });

    it('shows nobody the token, whatever the receiver says', async () => {
      const acme = await organization();
      const padded = `${'.'.repeat(1_010)}${TOKEN}`;
      const receiver = await receiving(({ headers, body }) => ({ status: 400, text: `${headers.authorization} ${body}` }));
      await suite.put(pathOf(acme), splunk(receiver)).expect(200);
      await record(acme, 'one');
      await suite.eventually(pathOf(acme), { state: 'error' });
      receiver.answer = () => ({ status: 400, text: padded });
      await suite.post(`${pathOf(acme)}/resume`).expect(200);
      const texts = await eventually(async () => {
        const { data } = await suite.get(`${pathOf(acme)}/deliveries`).expect(200);
        expect(data.length).toBeGreaterThanOrEqual(2);
        return data.map(({ response_excerpt }: { response_excerpt: string }) => response_excerpt) as string[];
      });
      expect(texts.at(-1)).toMatch(/^Splunk \[redacted\] \{/);
      expect(texts[0]).toBe(`${'.'.repeat(1_010)}[redacted]`);
      expect((await suite.get(pathOf(acme))).text).not.toContain(TOKEN);
      expect(JSON.stringify(await suite.records())).not.toContain(TOKEN);
    });
  });
});
