import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { openApiDocument, type OpenApiDocument } from '#libs/contracts/src/openapi';
import { isPublic, operations, type RegisteredOperation } from '#libs/contracts/src/operation';
import { WebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import type { Position } from '#libs/event-sourcing/src/log/event-store';
import { isProtocol } from '#libs/event-sourcing/src/log/protocol';
import { startDnsServer, type DnsServer } from '#libs/testing/src/dns-server';
import { exchange, holdToDocument } from '#libs/testing/src/exchange';
import { brokenRequest, validRequest, type GeneratedRequest, type KnownIds } from '#libs/testing/src/requests';
import { isEverythingWanted, seedOf } from '#libs/testing/src/seed';
import { givenSuite, type GivenSuite } from '#libs/testing/src/suite';
import { WebhookReceiver } from '#libs/testing/src/webhook-receiver';
import { inhabitants, toReceiver } from './inhabitants.ts';

/** For each operation; the next commit draws others. */
const RUNS = 12;
/** Of the operations a commit asks so many. */
const ONE_OF = isEverythingWanted() ? 1 : 3;
/** A failure names it with the path to the smallest request that fails; put it here to see that again. */
const seed = seedOf('properties');

const document = openApiDocument('0.1.0');
const all = operations().filter((operation) => operation.route !== null);
/** Queries come first: they share what is there with those that come to nothing, and commands may take from it what the examples name. */
const published = [...all.filter(({ kind }) => kind === 'query'), ...all.filter(({ kind }) => kind !== 'query')].map(
  (operation): [string, RegisteredOperation] => [operation.name, operation],
);
const drawn = published.filter(([name]) => seedOf(`properties of ${name}`) % ONE_OF === 0);

let suite: GivenSuite;
let dns: DnsServer;
let receiver: WebhookReceiver;
let unchanged: KnownIds;
beforeAll(async () => {
  dns = await startDnsServer();
  receiver = await WebhookReceiver.listen();
  suite = await givenSuite({ variables: { DNS_SERVERS: dns.address, WEBHOOK_ENDPOINTS_PER_ENVIRONMENT: '10000' } });
  unchanged = await existing();
});
afterAll(async () => {
  await dns.close();
  await receiver.close();
});

/** Something of every kind that the generated requests can find, change and delete. */
async function existing(): Promise<KnownIds> {
  const { ids } = await inhabitants(suite, receiver.url, await suite.clientIdOf(suite));
  // From here on it is told nothing: there will be many of them.
  await suite.patch(`/webhook_endpoints/${ids.get(WebhookEndpoint)}`, { events: [] }).expect(200);
  return (type) => [ids.get(type) ?? []].flat();
}

/** Sends each request under an id of its own, and notes the ids of those that were refused. */
class Sender {
  readonly refused = new Set<string>();

  async send(request: GeneratedRequest, key?: string) {
    const requestId = randomUUID();
    const answer = await exchange(suite, toReceiver(request, receiver.url), {
      'X-Request-ID': requestId,
      ...(key !== undefined && { 'Idempotency-Key': key }),
    });
    if (answer.status >= 400) this.refused.add(requestId);
    return answer;
  }
}

/** None, or one of a few, so that some requests come again. */
const idempotencyKey = fc.oneof(fc.constant(undefined), fc.constantFrom('a', 'b', 'c'));

describe.each(drawn)('%s', (_, operation) => {
  const sender = new Sender();
  let begun: Position;
  beforeAll(async () => (begun = await suite.head()));
  const isKeyed = operation.kind === 'command' && operation.route!.method === 'post';
  const key = isKeyed ? idempotencyKey : fc.constant(undefined);

  it('answers every valid request as the API document says', async () => {
    const requests = validRequest(operation, operation.kind === 'query' ? unchanged : await existing());
    await fc.assert(
      fc.asyncProperty(requests, key, async (request, idempotent) => holdToDocument(document, request, await sender.send(request, idempotent))),
      { numRuns: RUNS, seed },
    );
  });

  it('refuses every request that is broken in one place, and names the place', async () => {
    const requests = brokenRequest(operation, unchanged);
    // Nothing can be wrong with a request that takes nothing.
    if (requests === null) return;
    await fc.assert(
      fc.asyncProperty(requests, key, async ({ request, broken: { place, field, code } }, idempotent) => {
        const answer = await sender.send(request, idempotent);
        holdToDocument(document, request, answer);
        // Whoever says in the path which client it is, and is none, is told that before anything else is looked at.
        const isNoClient = isPublic(operation) && place === 'path' && field === 'client_id';
        const errors = isNoClient ? undefined : expect.arrayContaining([expect.objectContaining({ field, code })]);
        if (operation.options.isOAuth === true)
          expect([answer.status, answer.body]).toMatchObject([400, { error: 'invalid_request', error_description: expect.stringContaining(field) }]);
        else expect({ status: answer.status, errors: answer.body.errors }).toEqual({ status: isNoClient ? 404 : 422, errors });
      }),
      { numRuns: RUNS, seed },
    );
  });

  it('records nothing of a request that it refuses', async () => {
    const recorded = (await suite.recordsAfter(begun)).filter(({ type, meta }) => sender.refused.has(meta.requestId) && !isProtocol(type));
    expect(recorded).toEqual([]);
  });
});

describe('a divergence between answers and document', () => {
  /** The document with the node at this path changed, or without it. */
  const planted = (path: readonly string[], node?: unknown): OpenApiDocument => {
    const changed = structuredClone(document) as unknown as Record<string, unknown>;
    const parent = path.slice(0, -1).reduce((at, key) => at[key] as Record<string, unknown>, changed);
    if (node === undefined) delete parent[path.at(-1)!];
    else parent[path.at(-1)!] = node;
    return changed as unknown as OpenApiDocument;
  };
  const schemas = ['components', 'schemas'];

  it.each<[string, string, OpenApiDocument]>([
    ['the type of a property', 'GetOrganization', planted([...schemas, 'Organization', 'properties', 'name', 'type'], 'integer')],
    ['a property that is not declared', 'CreateOrganization', planted([...schemas, 'Organization', 'properties', 'metadata'])],
    ['a property that is never there', 'GetWebhookDelivery', planted([...schemas, 'WebhookDelivery', 'required'], ['colour'])],
    ['an answer that is not declared', 'DeleteOrganization', planted(['paths', '/organizations/{id}', 'delete', 'responses', '202'])],
  ])('is seen: %s', async (_, name, diverging) => {
    const operation = published.find(([each]) => each === name)![1];
    const requests = validRequest(operation, await existing());
    const checked = await fc.check(
      fc.asyncProperty(requests, async (request) => holdToDocument(diverging, request, await exchange(suite, request))),
      { numRuns: RUNS, seed, endOnFailure: true },
    );
    expect(String(checked.errorInstance)).toContain('otherwise than the API document says');
  });
});
