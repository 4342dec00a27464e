import { setTimeout as pause } from 'node:timers/promises';
import type { WebhookReceiver } from '#libs/testing/src/webhook-receiver';
import type { Customer, EventData, Remembered } from './customer.ts';

/** An event whose first delivery was cut off is delivered at the second or third try. */
const DELIVERY_MS = 60_000;
/** Questions that are asked at once. */
const AT_ONCE = 8;

export interface FeedEvent {
  readonly id: string;
  readonly event: string;
  readonly data: EventData;
}

const SUBSCRIBED = ['organization.created', 'organization.updated', 'organization.deleted', 'organization_domain.created', 'organization_domain.deleted'];

export async function subscribe(url: string, key: string, endpoint: string): Promise<void> {
  const response = await fetch(`${url}/webhook_endpoints`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ endpoint_url: endpoint, events: SUBSCRIBED }),
  });
  if (response.status !== 201) throw new Error(`The webhook endpoint was answered ${response.status}: ${await response.text()}`);
}

async function get(url: string, key: string, path: string): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetch(url + path, { headers: { Authorization: `Bearer ${key}` } });
  return { status: response.status, body: await response.json() };
}

/** Every acknowledged write is there, each domain once. */
export async function expectRemembered(url: string, key: string, organizations: readonly Remembered[]): Promise<void> {
  for (let at = 0; at < organizations.length; at += AT_ONCE)
    await Promise.all(
      organizations.slice(at, at + AT_ONCE).map(async ({ id, name, isDeleted, domains }) => {
        const { status, body } = await get(url, key, `/organizations/${id}`);
        if (status !== (isDeleted ? 404 : 200)) throw new Error(`${id} is answered ${status}, although it ${isDeleted ? 'was deleted' : 'exists'}.`);
        if (isDeleted) return;
        const found = body as { readonly name: string; readonly domains: readonly { readonly id: string; readonly domain: string }[] };
        if (found.name !== name) throw new Error(`${id} is called '${found.name}', and was acknowledged as '${name}'.`);
        const shown = found.domains.map(({ id: domainId, domain }) => `${domainId} ${domain}`).sort();
        const expected = domains.map(({ id: domainId, domain }) => `${domainId} ${domain}`).sort();
        if (shown.join() !== expected.join()) throw new Error(`${id} has the domains [${shown.join()}], acknowledged were [${expected.join()}].`);
      }),
    );
}

export async function feedOf(url: string, key: string): Promise<readonly FeedEvent[]> {
  const events: FeedEvent[] = [];
  for (let after = ''; ;) {
    const { status, body } = await get(url, key, `/events?limit=100${after === '' ? '' : `&after=${after}`}`);
    if (status !== 200) throw new Error(`The feed is answered ${status}.`);
    const { data, list_metadata } = body as { readonly data: readonly FeedEvent[]; readonly list_metadata: { readonly after: string | null } };
    events.push(...data);
    if (data.length === 0) return events;
    after = list_metadata.after!;
  }
}

/** Every acknowledged change is in the feed once. */
export function expectEvents(events: readonly FeedEvent[], organizations: readonly Remembered[]): void {
  if (new Set(events.map(({ id }) => id)).size !== events.length) throw new Error('An event is in the feed twice.');
  const byObject = new Map<string, FeedEvent[]>();
  for (const told of events) {
    const about = `${told.event} ${told.data.id}`;
    byObject.set(about, [...(byObject.get(about) ?? []), told]);
  }
  for (const { id, domains, changes } of organizations)
    for (const { event, recognise } of changes) {
      const candidates = [id, ...domains.map((domain) => domain.id)].flatMap((object) => byObject.get(`${event} ${object}`) ?? []);
      const found = candidates.filter(({ data }) => recognise(data)).length;
      if (found !== 1) throw new Error(`A change of ${id} is ${found} times in the feed (${event}).`);
    }
}

/** What nobody acknowledged is there with its event, or not at all; and nothing is there twice. Organizations without an external id are not of these customers. */
export async function expectWhole(url: string, key: string, events: readonly FeedEvent[], customers: readonly Customer[]): Promise<void> {
  const listed = new Map<string, string>();
  for (let after = ''; ;) {
    const { body } = await get(url, key, `/organizations?limit=100&order=asc${after === '' ? '' : `&after=${after}`}`);
    const { data, list_metadata } = body as {
      readonly data: readonly { readonly id: string; readonly external_id: string | null }[];
      readonly list_metadata: { readonly after: string | null };
    };
    for (const { id, external_id } of data) {
      if (external_id === null) continue;
      if (listed.has(external_id)) throw new Error(`${external_id} was created twice: ${listed.get(external_id)} and ${id}.`);
      listed.set(external_id, id);
    }
    if (list_metadata.after === null) break;
    after = list_metadata.after;
  }
  const living = customers.flatMap(({ organizations }) => organizations.filter(({ isDeleted }) => !isDeleted));
  const abandoned = customers.flatMap((customer) => customer.abandoned).filter((marker) => listed.has(marker));
  if (listed.size !== living.length + abandoned.length)
    throw new Error(`${listed.size} organizations are listed, ${living.length} were acknowledged and ${abandoned.length} may be there.`);
  const created = new Set(events.filter(({ event, data }) => event === 'organization.created' && data.external_id).map(({ data }) => data.id));
  for (const id of listed.values()) if (!created.has(id)) throw new Error(`${id} is listed, and its creation is not in the feed.`);
  const acknowledged = customers.flatMap(({ organizations }) => organizations).length;
  if (created.size !== acknowledged + abandoned.length)
    throw new Error(`The feed tells of ${created.size} creations, and there were ${acknowledged + abandoned.length}.`);
}

export function deliveredIds({ received }: WebhookReceiver): ReadonlySet<string> {
  return new Set(received.map(({ headers }) => String(headers['webhook-id'])));
}

export async function expectDelivered(events: readonly FeedEvent[], receiver: WebhookReceiver): Promise<void> {
  const subscribed = events.filter(({ event }) => SUBSCRIBED.includes(event));
  const missing = (delivered = deliveredIds(receiver)) => subscribed.filter(({ id }) => !delivered.has(id));
  for (const deadline = Date.now() + DELIVERY_MS; missing().length > 0; await pause(50))
    if (Date.now() > deadline) throw new Error(`${missing().length} events were never delivered, such as ${missing()[0]!.id} (${missing()[0]!.event}).`);
}
