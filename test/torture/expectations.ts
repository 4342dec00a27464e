import { setTimeout as pause } from 'node:timers/promises';
import type { WebhookReceiver } from '#libs/testing/src/webhook-receiver';
import { PERMISSION } from './access.ts';
import type { Customer, Remembered } from './customer.ts';
import type { EventData } from './request.ts';

/** An event whose first delivery was cut off is delivered at the second or third try. */
const DELIVERY_MS = 60_000;
/** An export that was cut off is made by whoever comes next. */
const EXPORT_MS = 60_000;
/** Questions that are asked at once. */
const AT_ONCE = 8;

export interface FeedEvent {
  readonly id: string;
  readonly event: string;
  readonly data: EventData;
}

const SUBSCRIBED = [
  'organization.created',
  'organization.updated',
  'organization.deleted',
  'organization_domain.created',
  'organization_domain.deleted',
  'organization_membership.created',
  'group.created',
];

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

/** Every check and every list of what is reached says what was acknowledged: never more, and never less. Answers how often something was allowed. */
export async function expectAccess(url: string, key: string, organizations: readonly Remembered[]): Promise<number> {
  let allowed = 0;
  const check = async (membership: string, resources: readonly string[]): Promise<{ readonly status: number; readonly text: string }> => {
    const response = await fetch(`${url}/authorization/organization_memberships/${membership}/check_batch`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ checks: resources.map((resource_id) => ({ permission_slug: PERMISSION, resource_id })) }),
    });
    const { results } = (await response.json()) as { readonly results?: readonly { readonly authorized: boolean }[] };
    return { status: response.status, text: results?.map(({ authorized }) => authorized).join() ?? '' };
  };
  const expectChecks = async ({ id, isDeleted, access: { memberships, resources, ended }, access }: Remembered): Promise<void> => {
    const ids = resources.map((resource) => resource.id);
    if (ids.length === 0) return;
    for (const gone of [...ended, ...(isDeleted ? memberships.map((membership) => membership.id) : [])]) {
      const { status } = await check(gone, ids);
      if (status !== 404) throw new Error(`In ${id}, ${gone} is answered ${status}, although it or the organization was deleted.`);
    }
    if (isDeleted) return;
    const workspace = resources.find(({ type }) => type === 'workspace')?.id;
    for (const membership of memberships) {
      const { status, text } = await check(membership.id, ids);
      const expected = resources.map((resource) => access.allows(membership, resource)).join();
      if (status !== 200 || text !== expected)
        throw new Error(`In ${id}, ${membership.id} is answered ${status}, [${text}] on [${ids.join()}]; acknowledged was [${expected}].`);
      allowed += text.split('true').length - 1;
      if (workspace === undefined) continue;
      const path = `/authorization/organization_memberships/${membership.id}/resources?limit=100&permission_slug=${PERMISSION}&parent_resource_id=${workspace}`;
      const { body } = await get(url, key, path);
      const reached = (body as { readonly data: readonly { readonly id: string }[] }).data.map((each) => each.id).sort();
      const reachable = resources.filter((each) => each.parent === workspace && access.allows(membership, each)).map((each) => each.id);
      if (reached.join() !== reachable.sort().join()) throw new Error(`${membership.id} reaches [${reached.join()}], acknowledged was [${reachable.join()}].`);
    }
  };
  const rich = organizations.filter(({ access }) => access.memberships.length > 0);
  for (let at = 0; at < rich.length; at += AT_ONCE) await Promise.all(rich.slice(at, at + AT_ONCE).map(expectChecks));
  return allowed;
}

/**
 * Every export that was acknowledged is made, with what was acknowledged before it, in the order of arrival and without a gap; what is exported of a trail at rest is all that was
 * acknowledged, line by line. Answers how many there were.
 */
export async function expectExports(url: string, key: string, organizations: readonly Remembered[]): Promise<number> {
  let count = 0;
  const linesOf = async (id: string): Promise<readonly { readonly action: string; readonly leaf_index: number }[]> => {
    for (const deadline = Date.now() + EXPORT_MS; ; await pause(100)) {
      const { status, body } = await get(url, key, `/audit_logs/exports/${id}`);
      const { state, url: address } = body as { readonly state?: string; readonly url?: string };
      if (state === 'ready') {
        const { pathname, search } = new URL(address!);
        const text = await (await fetch(url + pathname + search)).text();
        count += 1;
        return text
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as { readonly action: string; readonly leaf_index: number });
      }
      if (status !== 200 || state !== 'pending' || Date.now() > deadline) throw new Error(`The export ${id} is answered ${status}, ${state}.`);
    }
  };
  const expectOf = async ({ id, isDeleted, trail, exports }: Remembered): Promise<void> => {
    if (isDeleted) {
      for (const made of exports) if ((await get(url, key, `/audit_logs/exports/${made.id}`)).status !== 404) throw new Error(`${made.id} outlives ${id}.`);
      return;
    }
    const expectOne = async (exported: string, events: number): Promise<void> => {
      const lines = await linesOf(exported);
      const told = lines.map(({ action }) => action);
      const isOrdered = lines.every(({ leaf_index }, index) => leaf_index === index);
      const isWhole = trail.slice(0, events).every((action) => told.includes(action));
      if (!isOrdered || !isWhole || told.some((action) => !trail.includes(action)) || new Set(told).size !== told.length)
        throw new Error(`The export ${exported} of ${id} has [${told.join()}], acknowledged were [${trail.join()}], ${events} of them before.`);
    };
    for (const made of exports) await expectOne(made.id, made.events);
    if (trail.length === 0) return;
    const [range_start, range_end] = [-24, 1].map((hours) => new Date(Date.now() + hours * 3_600_000).toISOString());
    const response = await fetch(`${url}/audit_logs/exports`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ organization_id: id, range_start, range_end, format: 'ndjson' }),
    });
    const { id: last } = (await response.json()) as { readonly id?: string };
    if (last === undefined) throw new Error(`An export of ${id} was answered ${response.status}.`);
    await expectOne(last, trail.length);
  };
  for (let at = 0; at < organizations.length; at += AT_ONCE) await Promise.all(organizations.slice(at, at + AT_ONCE).map(expectOf));
  return count;
}

/** Every acknowledged audit event is in its trail once, and nothing else is; leaves have no gap. Answers how many there are. */
export async function expectTrails(url: string, key: string, organizations: readonly Remembered[]): Promise<number> {
  let events = 0;
  const expectTrail = async ({ id, isDeleted, trail }: Remembered): Promise<void> => {
    const found: { readonly action: string; readonly leaf_index: number }[] = [];
    for (let after = ''; ;) {
      const { status, body } = await get(url, key, `/audit_logs/events?limit=100&organization_id=${id}${after === '' ? '' : `&after=${after}`}`);
      if (status !== (isDeleted ? 404 : 200)) throw new Error(`The trail of ${id} is answered ${status}, although it ${isDeleted ? 'was deleted' : 'exists'}.`);
      if (isDeleted) return;
      const { data, list_metadata } = body as { readonly data: typeof found; readonly list_metadata: { readonly after: string | null } };
      found.push(...data);
      if (list_metadata.after === null) break;
      after = list_metadata.after;
    }
    const [told, acknowledged] = [found.map(({ action }) => action).sort(), trail.toSorted()];
    if (told.join() !== acknowledged.join()) throw new Error(`The trail of ${id} has [${told.join()}], acknowledged were [${acknowledged.join()}].`);
    const leaves = found.map(({ leaf_index }) => leaf_index).sort((one, other) => one - other);
    if (leaves.some((leaf, index) => leaf !== index)) throw new Error(`The trail of ${id} has the leaves [${leaves.join()}].`);
    events += found.length;
  };
  for (let at = 0; at < organizations.length; at += AT_ONCE) await Promise.all(organizations.slice(at, at + AT_ONCE).map(expectTrail));
  return events;
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
  for (const { changes } of organizations)
    for (const { event, about, recognise } of changes) {
      const found = (byObject.get(`${event} ${about}`) ?? []).filter(({ data }) => recognise(data)).length;
      if (found !== 1) throw new Error(`A change of ${about} is ${found} times in the feed (${event}).`);
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
