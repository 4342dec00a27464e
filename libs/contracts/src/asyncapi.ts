import { compare, Components } from './components.ts';
import { EVENTS_OF_SCIM } from './directories/events-of-scim.ts';
import { eventDataOf, PUBLIC_EVENT_NAMES, type PublicEventName } from './events.ts';
import { exampleOf } from './examples.ts';
import { DomainEvent } from './feed/domain-event.ts';
import { Event } from './feed/event.ts';
import { ULID_EXAMPLE, type Schema } from './json-schema.ts';
import { operations, type Class, type ServiceName } from './operation.ts';

type Json = Readonly<Record<string, unknown>>;

/** As much of AsyncAPI 3 as readers of the document rely on. */
export interface AsyncApiDocument {
  readonly asyncapi: '3.0.0';
  readonly channels: Readonly<Record<string, { readonly address: string; readonly messages: Json; readonly [key: string]: unknown }>>;
  readonly operations: Json;
  readonly components: {
    readonly messages: Readonly<Record<string, { readonly payload: Schema; readonly headers: Schema; readonly [key: string]: unknown }>>;
    readonly schemas: Readonly<Record<string, Schema>>;
  };
  readonly [key: string]: unknown;
}

const KAFKA = '0.5.0';

/** The document of every topic: the events that the operations emit whose files were imported (`all.ts`). The same contracts give the same text. */
export function asyncApiDocument(version: string): AsyncApiDocument {
  const components = new Components();
  const services = announced();
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Gatehouse announcements',
      version,
      description: 'What happened, as CloudEvents 1.0 in Kafka. The events are those of the feed and of webhooks.',
      license: { name: 'Apache-2.0' },
    },
    defaultContentType: 'application/json',
    channels: Object.fromEntries(services.flatMap(([owner, names]) => [channel(owner, names), domainChannel(owner)])),
    operations: Object.fromEntries(services.flatMap(([owner, names]) => [sending(owner, names), sending(`${owner}-domain`, [DOMAIN_EVENT])])),
    components: {
      messages: {
        ...Object.fromEntries(services.flatMap(([owner, names]) => names.map((name) => [name, message(owner, name, components)]))),
        [DOMAIN_EVENT]: domainMessage(components),
      },
      schemas: components.schemas(),
    },
  };
}

const DOMAIN_EVENT = 'domain_event';

/** Services and what they announce; events whose slice is not built have no data class yet. */
function announced(): readonly [ServiceName, readonly PublicEventName[]][] {
  const owners = new Map<string, ServiceName>();
  // What an operation emits first is its own service's; what follows from it may be another's.
  const emitted = operations().flatMap(({ options: { owner, emits = [] } }) => emits.map((name, place) => ({ owner, name, place })));
  for (const { owner, name } of emitted.toSorted((one, other) => other.place - one.place)) owners.set(name, owner);
  for (const name of EVENTS_OF_SCIM.names) owners.set(name, EVENTS_OF_SCIM.owner);
  const names = PUBLIC_EVENT_NAMES.filter((name) => owners.has(name) && eventDataOf(name) !== null).toSorted(compare);
  return [...new Set(names.map((name) => owners.get(name)!))].sort(compare).map((owner) => [owner, names.filter((name) => owners.get(name) === owner)]);
}

function channel(owner: ServiceName, names: readonly PublicEventName[]) {
  const text = `Public events of ${owner}, in order for each organization.`;
  return [owner, channelObject(`{installation}.{environment}.${owner}`, text, names)] as const;
}

function domainChannel(owner: ServiceName) {
  const text = `What ${owner} tells other services beside its public events. Types and data may change with any release.`;
  return [`${owner}-domain`, channelObject(`{installation}.{environment}.${owner}.domain`, text, [DOMAIN_EVENT])] as const;
}

function channelObject(address: string, description: string, names: readonly string[]) {
  return {
    address,
    description,
    parameters: {
      installation: {
        description: 'The installation, as its setting INSTALLATION calls it.',
        default: 'gatehouse',
        examples: ['gatehouse', 'gatehouse-staging'],
      },
      environment: { description: 'The environment whose events these are.', examples: [`environment_${ULID_EXAMPLE}`] },
    },
    messages: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }])),
    bindings: { kafka: { topicConfiguration: { 'cleanup.policy': ['delete'] }, bindingVersion: KAFKA } },
  };
}

function sending(name: string, messages: readonly string[]) {
  const channels = `#/channels/${name}`;
  const operation = { action: 'send', channel: { $ref: channels }, messages: messages.map((message) => ({ $ref: `${channels}/messages/${message}` })) };
  return [name, operation] as const;
}

function message(owner: ServiceName, name: PublicEventName, components: Components) {
  const type: Class = eventDataOf(name)!;
  return {
    title: `${name} happened`,
    contentType: 'application/json',
    headers: headers(name, owner),
    payload: {
      allOf: [
        components.nest(Event, 'answer'),
        { properties: { event: { type: 'string', const: name }, data: components.nest(type, 'answer') }, required: ['event', 'data'] },
      ],
    },
    ...keyed(),
    examples: [{ headers: exampleHeaders(name, owner, String(exampleOf(Event)['id'])), payload: { ...exampleOf(Event), event: name, data: exampleOf(type) } }],
  };
}

function domainMessage(components: Components) {
  return {
    title: 'Something happened that has no public name',
    contentType: 'application/json',
    headers: headers(null, null),
    payload: components.nest(DomainEvent, 'answer'),
    ...keyed(),
  };
}

function keyed() {
  const description = 'The organization; of an event that belongs to none, the stream that it was recorded in.';
  return { bindings: { kafka: { key: { type: 'string', description }, bindingVersion: KAFKA } } };
}

/** CloudEvents 1.0 in binary mode, and where the log stood. */
function headers(name: string | null, owner: ServiceName | null): Schema {
  const properties = {
    'content-type': { type: 'string', const: 'application/json' },
    ce_specversion: { type: 'string', const: '1.0' },
    ce_id: { type: 'string', description: 'The id of the event, the same when it comes again: drop what has been seen.' },
    ce_type: { type: 'string', description: 'What happened.', ...(name !== null && { const: name }) },
    ce_source: { type: 'string', pattern: `^/environments/[^/]+/${owner ?? '[^/]+'}$`, description: 'Environment and service.' },
    ce_time: { type: 'string', format: 'date-time', description: 'When it happened.' },
    position: { type: 'string', description: 'Where in the log it is recorded. Sorts as text; a later event of the same environment has a later position.' },
  };
  return { type: 'object', properties, required: Object.keys(properties) };
}

function exampleHeaders(name: string, owner: ServiceName, id: string): Json {
  return {
    'content-type': 'application/json',
    ce_specversion: '1.0',
    ce_id: id,
    ce_type: name,
    ce_source: `/environments/environment_${ULID_EXAMPLE}/${owner}`,
    ce_time: '2026-01-15T12:00:00.000Z',
    position: '00000000000000000042',
  };
}
