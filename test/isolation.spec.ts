import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { Group } from '#libs/contracts/src/groups/group';
import { prefixOf } from '#libs/contracts/src/json-schema';
import { operations, type RegisteredOperation } from '#libs/contracts/src/operation';
import { OrganizationMembership } from '#libs/contracts/src/organization-memberships/organization-membership';
import { Organization, OrganizationDomain } from '#libs/contracts/src/organizations/organization';
import { User } from '#libs/contracts/src/users/user';
import { WebhookDelivery, WebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import { isProtocol } from '#libs/event-sourcing/src/log/protocol';
import { newUlid } from '#libs/platform/src/ids';
import type { DnsServer } from '#libs/testing/src/dns-server';
import { givenDnsServer } from '#libs/testing/src/given-dns-server';
import { givenWebhookReceiver } from '#libs/testing/src/given-webhook-receiver';
import { exchange, type Exchange } from '#libs/testing/src/exchange';
import { referencesOf, requestNaming, type GeneratedRequest, type KnownIds, type Reference } from '#libs/testing/src/requests';
import { seedOf } from '#libs/testing/src/seed';
import { givenSuite, type Caller, type GivenSuite } from '#libs/testing/src/suite';
import type { WebhookReceiver } from '#libs/testing/src/webhook-receiver';
import { inhabitants, lists, organization, pagedLists, pathOfList, type Inhabitants } from './inhabitants.ts';

const RUNS = 10;
/** More, since most of what is generated beside the one id has to be right. */
const RUNS_OF_NEIGHBOURS = 40;

const published = operations().filter((operation) => operation.route !== null);
const places = published.flatMap((operation) =>
  referencesOf(operation)
    // What the environment is found by is of no other one.
    .filter(({ field }) => field !== operation.options.environmentFrom)
    .map((reference) => caseOf(operation, reference)),
);

function caseOf(operation: RegisteredOperation, reference: Reference): [string, RegisteredOperation, Reference] {
  const { place, field, within } = reference;
  return [`${operation.name} (${place} ${within === null ? '' : `${within}.`}${field})`, operation, reference];
}

/** What lies in one environment: an object of each kind. */
interface Inhabited extends Inhabitants {
  readonly url: string;
  readonly key: string;
  readonly caller: Caller;
}

let suite: GivenSuite;
let dns: DnsServer;
let receiver: WebhookReceiver;
let ours: Inhabited;
let theirs: Inhabited;
beforeAll(async () => {
  dns = await givenDnsServer();
  receiver = await givenWebhookReceiver();
  suite = await givenSuite({ variables: { DNS_SERVERS: dns.address } });
  ours = await inhabited(suite);
  theirs = await inhabited(await suite.otherEnvironment());
});
afterAll(async () => {
  await dns.close();
  await receiver.close();
});

async function inhabited(caller: Caller): Promise<Inhabited> {
  return { url: suite.url, key: caller.key, caller, ...(await inhabitants(caller, receiver.url, await suite.clientIdOf(caller))) };
}

/** An answer without the id that it echoes, and without what is new in each answer. */
function comparable({ status, body, headers }: Exchange, id: string): object {
  const { date: _, 'x-request-id': __, 'content-length': ___, 'gatehouse-position': ____, ...rest } = headers;
  return { status, body: body === undefined ? undefined : JSON.parse(JSON.stringify(body).replaceAll(id, 'ID')), headers: rest };
}

/**
 * Generated requests in which one reference holds an id that is not to be found are answered as where it holds one that never was, and nothing is recorded of
 * them. `known`: what is generated beside it.
 */
async function expectUnseen(
  operation: RegisteredOperation,
  reference: Reference,
  { foreign, known, runs, refusal }: { readonly foreign: string; readonly known: KnownIds; readonly runs: number; readonly refusal?: object },
): Promise<void> {
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
      const answer = await ask(naming(request, foreign));
      if (refusal !== undefined && answer.status === 400) return expect(answer.body).toEqual(refusal);
      expect(comparable(answer, foreign)).toEqual(comparable(await ask(naming(request, never)), never));
    }),
    { numRuns: runs, seed: seedOf('isolation') },
  );
  const recorded = (await suite.records()).filter(({ type, meta }) => sent.has(meta.requestId) && !isProtocol(type));
  expect(recorded).toEqual([]);
}

describe('an id of another environment', () => {
  /** What is generated beside the one id exists here or there. */
  const knownBeside =
    (foreign: string): KnownIds =>
    (type) =>
      [ours, theirs].flatMap(({ ids }) => ids.get(type) ?? []).filter((id) => id !== foreign);

  it.each(places)('is as good as one that never existed: %s', async (_, operation, reference) => {
    const foreign = theirs.ids.get(reference.of);
    if (foreign === undefined) throw new Error(`Nothing of ${reference.of.name} lies in the other environment: let there be something.`);
    await expectUnseen(operation, reference, { foreign, known: knownBeside(foreign), runs: RUNS });
  });

  it('is not found, where its own environment finds it', async () => {
    const paths = ({ ids, externalId }: Inhabited): readonly string[] => [
      `/organizations/${ids.get(Organization)}`,
      `/organizations/external_id/${externalId}`,
      `/organization_domains/${ids.get(OrganizationDomain)}`,
      `/webhook_endpoints/${ids.get(WebhookEndpoint)}/deliveries`,
      `/webhook_endpoints/${ids.get(WebhookEndpoint)}/deliveries/${ids.get(WebhookDelivery)}`,
      `/user_management/users/${ids.get(User)}`,
      `/user_management/users/external_id/${externalId}`,
      `/user_management/organization_memberships/${ids.get(OrganizationMembership)}`,
      `/organizations/${ids.get(Organization)}/groups/${ids.get(Group)}`,
      `/authorization/organizations/${ids.get(Organization)}/roles/org-auditor`,
      `/authorization/organizations/${ids.get(Organization)}/resources/project/project-42`,
    ];
    for (const path of paths(theirs)) {
      await theirs.caller.get(path).expect(200);
      await ours.caller.get(path).expect(404, { code: 'entity_not_found' });
    }
  });
});

describe('an id of another organization', () => {
  /** Where a resource is to be moved under another one, the refusal may say what is wrong: the environment is the same. */
  const OF_ANOTHER_ORGANIZATION = { code: 'bad_request', message: expect.stringContaining('another organization') };
  let neighbours: Inhabitants;
  beforeAll(async () => {
    neighbours = await organization(suite, await suite.clientIdOf(suite));
  });
  const known: KnownIds = (type) => [ours.ids.get(type) ?? []].flat();
  // The first one says which organization the others have to be of.
  const references = published.flatMap((operation) =>
    referencesOf(operation)
      .slice(1)
      .filter(({ sameOrganization }) => sameOrganization)
      .map((reference) => caseOf(operation, reference)),
  );

  it.each(references)('is as good as one that never existed, beside what is of ours: %s', async (_, operation, reference) => {
    const foreign = neighbours.ids.get(reference.of);
    if (foreign === undefined) throw new Error(`Nothing of ${reference.of.name} lies in the other organization: let there be something.`);
    const refusal = operation.route?.method === 'patch' ? OF_ANOTHER_ORGANIZATION : undefined;
    await expectUnseen(operation, reference, { foreign, known, runs: RUNS_OF_NEIGHBOURS, refusal });
  });
});

describe('lists of an environment', () => {
  const cases = lists.map((operation): [string, RegisteredOperation] => [operation.name, operation]);

  it.each(cases)('hold nothing of another: %s', async (_, operation) => {
    const { text } = await ours.caller.get(`${pathOfList(operation, ours.ids)}${pagedLists.includes(operation) ? 'limit=100' : ''}`);
    expect(text).toContain(ours.listed[operation.name] ?? ours.ids.get(operation.options.answers.of!));
    for (const foreign of [...theirs.ids.values(), theirs.externalId, theirs.domain]) expect(text).not.toContain(foreign);
  });

  it.each(cases.filter(([, operation]) => pagedLists.includes(operation)))('take no cursor of another: %s', async (_, operation) => {
    const path = pathOfList(operation, ours.ids);
    const { of } = operation.options.answers;
    for (const parameter of ['after', 'before']) {
      await ours.caller.get(`${path}${parameter}=${ours.ids.get(of!)}`).expect(200);
      await ours.caller.get(`${path}${parameter}=${theirs.ids.get(of!)}`).expect(422, { errors: [{ code: 'invalid_cursor', field: parameter }] });
    }
  });

  it('find nothing of another by what they search for', async () => {
    for (const query of [`domains=${theirs.domain}`, `search=${theirs.externalId}`]) {
      expect((await theirs.caller.get(`/organizations?${query}`).expect(200)).data).toHaveLength(1);
      expect((await ours.caller.get(`/organizations?${query}`).expect(200)).data).toEqual([]);
    }
    const email = `email=${theirs.externalId}@acme.test`;
    expect((await theirs.caller.get(`/user_management/users?${email}`).expect(200)).data).toHaveLength(1);
    expect((await ours.caller.get(`/user_management/users?${email}`).expect(200)).data).toEqual([]);
  });
});

describe('what is unique in an environment', () => {
  it('may be there again in another', async () => {
    const { caller, externalId, domain } = theirs;
    await caller.post('/organizations', { name: 'Twin', external_id: externalId }).expect(400, { code: 'external_id_already_used' });
    await ours.caller.post('/organizations', { name: 'Twin', external_id: externalId, domain_data: [{ domain, state: 'verified' }] }).expect(201);
    await ours.caller.post('/organizations', { name: 'Twin of the twin', domain_data: [{ domain, state: 'verified' }] }).expect(409);
    const user = { email: `${externalId}@acme.test`, external_id: externalId };
    await caller.post('/user_management/users', user).expect(400, { code: 'user_creation_error' });
    await ours.caller.post('/user_management/users', user).expect(201);
    const role = { slug: externalId, name: 'Twin' };
    for (const path of ['/authorization/roles', '/authorization/permissions']) {
      await caller.post(path, role).expect(201);
      await caller.post(path, role).expect(409);
      await ours.caller.post(path, role).expect(201);
    }
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
