import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { Event } from '#libs/contracts/src/feed/event';
import { prefixOf } from '#libs/contracts/src/json-schema';
import { operations, type Class, type RegisteredOperation } from '#libs/contracts/src/operation';
import { Organization, OrganizationDomain } from '#libs/contracts/src/organizations/organization';
import { WebhookDelivery, WebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import { isProtocol } from '#libs/event-sourcing/src/log.repository';
import { newUlid } from '#libs/platform/src/ids';
import { startDnsServer, type DnsServer } from '#libs/testing/src/dns-server';
import { exchange, type Exchange } from '#libs/testing/src/exchange';
import { referencesOf, requestNaming, type GeneratedRequest, type KnownIds, type Reference } from '#libs/testing/src/requests';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';

const RUNS = 10;

const published = operations().filter((operation) => operation.route !== null);
const places = published.flatMap((operation) =>
  referencesOf(operation).map((reference): [string, RegisteredOperation, Reference] => [
    `${operation.name} (${reference.place} ${reference.field})`,
    operation,
    reference,
  ]),
);
const lists = published.filter(({ options }) => options.answers.shape === 'list' || options.answers.shape === 'feed');

/** What lies in one environment: an object of each kind. */
interface Inhabited {
  readonly url: string;
  readonly key: string;
  readonly caller: Caller;
  readonly ids: ReadonlyMap<Class, string>;
  readonly externalId: string;
  readonly domain: string;
}

let suite: GivenSuite;
let dns: DnsServer;
let receiver: WebhookReceiver;
let ours: Inhabited;
let theirs: Inhabited;
beforeAll(async () => {
  dns = await startDnsServer();
  receiver = await WebhookReceiver.listen();
  suite = await givenSuite({ variables: { DNS_SERVERS: dns.address } });
  ours = await inhabited(suite);
  theirs = await inhabited(await suite.otherEnvironment());
});
afterAll(async () => {
  await dns.close();
  await receiver.close();
});

async function inhabited(caller: Caller): Promise<Inhabited> {
  const externalId = randomUUID();
  const domain = `${randomUUID()}.test`;
  const { id: endpoint } = await caller
    .post('/webhook_endpoints', { endpoint_url: `${receiver.url}/${externalId}`, events: ['organization.created'] })
    .expect(201);
  const { id: organization } = await caller.post('/organizations', { name: `Called ${externalId}`, external_id: externalId }).expect(201);
  const { id: added } = await caller.post('/organization_domains', { domain, organization_id: organization }).expect(201);
  const { data } = await caller.eventually(`/webhook_endpoints/${endpoint}/deliveries`, { data: [{ status: 'delivered' }] });
  await caller.eventually(`/events?organization_id=${organization}`, { data: [{ event: 'organization.created' }, { event: 'organization_domain.created' }] });
  const ids = new Map<Class, string>([
    [Organization, organization],
    [OrganizationDomain, added],
    [WebhookEndpoint, endpoint],
    [WebhookDelivery, data[0].id],
    [Event, data[0].event_id],
  ]);
  return { url: suite.url, key: caller.key, caller, ids, externalId, domain };
}

/** An answer without the id that it echoes, and without what is new in each answer. */
function comparable({ status, body, headers }: Exchange, id: string): object {
  const { date: _, 'x-request-id': __, 'content-length': ___, 'gatehouse-position': ____, ...rest } = headers;
  return { status, body: body === undefined ? undefined : JSON.parse(JSON.stringify(body).replaceAll(id, 'ID')), headers: rest };
}

describe('an id of another environment', () => {
  /** What is generated beside the one id exists here or there. */
  const known: KnownIds = (type) => [ours, theirs].flatMap(({ ids }) => ids.get(type) ?? []);

  it.each(places)('is as good as one that never existed: %s', async (_, operation, reference) => {
    const foreign = theirs.ids.get(reference.of);
    if (foreign === undefined) throw new Error(`Nothing of ${reference.of.name} lies in the other environment: let there be something.`);
    const prefix = prefixOf(reference.of)!;
    const sent = new Set<string>();
    const ask = (request: GeneratedRequest): Promise<Exchange> => {
      const requestId = randomUUID();
      sent.add(requestId);
      return exchange(ours, request, { 'X-Request-ID': requestId });
    };
    const requests = requestNaming(operation, reference, 'PLACEHOLDER', known);
    const naming = (request: GeneratedRequest, id: string): GeneratedRequest =>
      JSON.parse(JSON.stringify(request).replaceAll('PLACEHOLDER', id)) as GeneratedRequest;

    await fc.assert(
      fc.asyncProperty(requests, async (request) => {
        const never = `${prefix}_${newUlid(Date.now())}`;
        expect(comparable(await ask(naming(request, foreign)), foreign)).toEqual(comparable(await ask(naming(request, never)), never));
      }),
      { numRuns: RUNS },
    );
    const recorded = (await suite.records()).filter(({ type, meta }) => sent.has(meta.requestId) && !isProtocol(type));
    expect(recorded).toEqual([]);
  });

  it('is not found, where its own environment finds it', async () => {
    const paths = ({ ids, externalId }: Inhabited): readonly string[] => [
      `/organizations/${ids.get(Organization)}`,
      `/organizations/external_id/${externalId}`,
      `/organization_domains/${ids.get(OrganizationDomain)}`,
      `/webhook_endpoints/${ids.get(WebhookEndpoint)}/deliveries`,
      `/webhook_endpoints/${ids.get(WebhookEndpoint)}/deliveries/${ids.get(WebhookDelivery)}`,
    ];
    for (const path of paths(theirs)) {
      await theirs.caller.get(path).expect(200);
      await ours.caller.get(path).expect(404, { code: 'entity_not_found' });
    }
  });
});

describe('lists of an environment', () => {
  const pathOf = ({ route }: RegisteredOperation, { ids }: Inhabited): string => route!.path.replace('{id}', ids.get(WebhookEndpoint)!);
  const cases = lists.map((operation): [string, RegisteredOperation] => [operation.name, operation]);

  it.each(cases)('hold nothing of another: %s', async (_, operation) => {
    const { text } = await ours.caller.get(`${pathOf(operation, ours)}?limit=100`);
    expect(text).toContain(ours.ids.get(operation.options.answers.of!));
    for (const foreign of [...theirs.ids.values(), theirs.externalId, theirs.domain]) expect(text).not.toContain(foreign);
  });

  it.each(cases)('take no cursor of another: %s', async (_, operation) => {
    const path = pathOf(operation, ours);
    const { of } = operation.options.answers;
    for (const parameter of ['after', 'before']) {
      await ours.caller.get(`${path}?${parameter}=${ours.ids.get(of!)}`).expect(200);
      await ours.caller.get(`${path}?${parameter}=${theirs.ids.get(of!)}`).expect(422, { errors: [{ code: 'invalid_cursor', field: parameter }] });
    }
  });

  it('find nothing of another by what they search for', async () => {
    for (const query of [`domains=${theirs.domain}`, `search=${theirs.externalId}`]) {
      expect((await theirs.caller.get(`/organizations?${query}`).expect(200)).data).toHaveLength(1);
      expect((await ours.caller.get(`/organizations?${query}`).expect(200)).data).toEqual([]);
    }
  });
});

describe('what is unique in an environment', () => {
  it('may be there again in another', async () => {
    const { caller, externalId, domain } = theirs;
    await caller.post('/organizations', { name: 'Twin', external_id: externalId }).expect(400, { code: 'external_id_already_used' });
    await ours.caller.post('/organizations', { name: 'Twin', external_id: externalId, domain_data: [{ domain, state: 'verified' }] }).expect(201);
    await ours.caller.post('/organizations', { name: 'Twin of the twin', domain_data: [{ domain, state: 'verified' }] }).expect(409);
    const endpoint = { endpoint_url: `${receiver.url}/${externalId}`, events: [] };
    await caller.post('/webhook_endpoints', endpoint).expect(409, { code: 'duplicate_endpoint' });
    await ours.caller.post('/webhook_endpoints', endpoint).expect(201);
  });

  it('is an Idempotency-Key too', async () => {
    const create = ({ caller }: Inhabited) => caller.post('/organizations', { name: 'By key' }, { 'Idempotency-Key': 'the-same' });
    const [mine, other, again] = [await create(ours), await create(theirs), await create(ours)];
    expect(other.body.id).not.toBe(mine.body.id);
    expect(again.body).toEqual(mine.body);
    expect(other.headers['idempotent-replayed']).toBeUndefined();
    await theirs.caller.get(`/organizations/${other.body.id}`).expect(200);
  });
});

it('webhooks of an environment carry nothing of another', async () => {
  const { id } = await ours.caller.post('/organizations', { name: 'Announced' }).expect(201);
  await receiver.receives(({ data }) => data.id === id);
  const { id: other } = await theirs.caller.post('/organizations', { name: 'Announced' }).expect(201);
  await receiver.receives(({ data }) => data.id === other);
  const told = ({ externalId }: Inhabited): string => JSON.stringify(receiver.received.filter(({ path }) => path.endsWith(externalId)));
  expect(told(ours)).toContain(id);
  expect(told(ours)).not.toContain(other);
  expect(told(theirs)).toContain(other);
  expect(told(theirs)).not.toContain(id);
});
