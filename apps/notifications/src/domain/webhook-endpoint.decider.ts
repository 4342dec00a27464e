import type { WebhookEndpoint } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import type { Claim, Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { type DomainError, notFound, refusedField } from '#libs/platform/src/domain-error';

// These types are the storage format: a stored name or shape is never edited.

export type WebhookEndpointEvent =
  | Fact<'webhook_endpoint.created', WebhookEndpointCreated>
  | Fact<'webhook_endpoint.updated', Partial<Pick<WebhookEndpoint, 'status' | 'events'> & ClaimedUrl>>
  /** The old secret goes on working until `previous_secret_expires_at`; `rotation` tells a repeated command that it was carried out. */
  | Fact<'webhook_endpoint.secret_rotated', { readonly rotation: string; readonly secret: string; readonly previous_secret_expires_at: string }>
  | Fact<'webhook_endpoint.deleted', { readonly id: string }>;

type WebhookEndpointCreated = Pick<WebhookEndpoint, 'id' | 'events' | 'secret'> & ClaimedUrl;

interface ClaimedUrl {
  readonly endpoint_url: string;
  /** The same for every spelling of one URL. */
  readonly normalised_url: string;
}

/** The public resource with what belongs to it alone. Its secrets are sealed. */
export interface StoredWebhookEndpoint extends WebhookEndpoint {
  readonly normalised_url: string;
  readonly rotation: string | null;
  readonly previous_secret: string | null;
  readonly previous_secret_expires_at: string | null;
}

export type WebhookEndpointState = StoredWebhookEndpoint | { readonly object: 'deleted_webhook_endpoint'; readonly id: string } | null;

function evolve(state: WebhookEndpointState, event: WebhookEndpointEvent & { readonly at: string }): WebhookEndpointState {
  if (event.type === 'webhook_endpoint.created') return state ?? initialEndpoint(event.data, event.at);
  if (state?.object !== 'webhook_endpoint') return state;
  switch (event.type) {
    case 'webhook_endpoint.updated':
      return { ...state, ...event.data, updated_at: event.at };
    case 'webhook_endpoint.secret_rotated':
      return { ...state, ...event.data, previous_secret: state.secret, updated_at: event.at };
    case 'webhook_endpoint.deleted':
      return { object: 'deleted_webhook_endpoint', id: state.id };
  }
}

function initialEndpoint({ id, endpoint_url, normalised_url, secret, events }: WebhookEndpointCreated, at: string): StoredWebhookEndpoint {
  return {
    object: 'webhook_endpoint',
    id,
    endpoint_url,
    secret,
    status: 'enabled',
    events,
    created_at: at,
    updated_at: at,
    normalised_url,
    rotation: null,
    previous_secret: null,
    previous_secret_expires_at: null,
  };
}

function claims(state: WebhookEndpointState): readonly Claim[] {
  if (state?.object !== 'webhook_endpoint') return [];
  return [{ kind: 'webhook_endpoint.url', value: state.normalised_url, refusal: () => duplicate(state.endpoint_url) }];
}

export const webhookEndpointDecider: Decider<WebhookEndpointState, WebhookEndpointEvent> = {
  category: 'webhook_endpoint',
  foldVersion: 1,
  initial: null,
  sealed: { 'webhook_endpoint.created': null, 'webhook_endpoint.updated': null, 'webhook_endpoint.secret_rotated': null, 'webhook_endpoint.deleted': null },
  evolve,
  claims,
  // An endpoint is configuration: nothing of it is announced, its secret least of all.
  toPublicEvent: () => null,
};

type Decide = Decision<WebhookEndpointState, WebhookEndpointEvent>;
type Url = Pick<StoredWebhookEndpoint, 'endpoint_url' | 'normalised_url'>;

/** `secret` was made for this command alone: a repeated command keeps the one that was recorded first. */
export function createEndpoint(given: Url & Pick<WebhookEndpoint, 'events' | 'secret'>): Decide {
  return (state, context) => {
    const id = context.id('we');
    if (state !== null) return repeated(state, id);
    return [{ type: 'webhook_endpoint.created', data: { id, ...given } }];
  };
}

export function updateEndpoint(id: string, given: Partial<Url & Pick<WebhookEndpoint, 'status' | 'events'>>): Decide {
  return (state) => {
    const endpoint = requireWebhookEndpoint(state, id);
    const { status, events, endpoint_url, normalised_url } = given;
    const changes = {
      ...(endpoint_url !== undefined && endpoint_url !== endpoint.endpoint_url && { endpoint_url, normalised_url: normalised_url! }),
      ...(status !== undefined && status !== endpoint.status && { status }),
      ...(events !== undefined && !sameNames(events, endpoint.events) && { events }),
    };
    return Object.keys(changes).length === 0 ? [] : [{ type: 'webhook_endpoint.updated', data: changes }];
  };
}

export function rotateSecret(id: string, secret: string, overlapSeconds: number): Decide {
  return (state, context) => {
    const endpoint = requireWebhookEndpoint(state, id);
    const rotation = context.id('webhook_secret_rotation');
    if (endpoint.rotation === rotation) return [];
    const previous_secret_expires_at = new Date(Date.parse(context.now) + overlapSeconds * 1000).toISOString();
    return [{ type: 'webhook_endpoint.secret_rotated', data: { rotation, secret, previous_secret_expires_at } }];
  };
}

export function deleteEndpoint(id: string): Decide {
  return (state) => {
    if (state?.object === 'deleted_webhook_endpoint') return [];
    requireWebhookEndpoint(state, id);
    return [{ type: 'webhook_endpoint.deleted', data: { id } }];
  };
}

/** @throws DomainError `entity_not_found` */
export function requireWebhookEndpoint(state: WebhookEndpointState, id: string): StoredWebhookEndpoint {
  if (state?.object !== 'webhook_endpoint') throw notFound('Webhook endpoint', id);
  return state;
}

/** A repeated command meets what it made; once that was deleted, it stays deleted. */
function repeated(state: WebhookEndpointState, id: string): readonly WebhookEndpointEvent[] {
  requireWebhookEndpoint(state, id);
  return [];
}

function sameNames(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, index) => name === other[index]);
}

function duplicate(url: string): DomainError {
  const message = `Another webhook endpoint has the URL '${url}'.`;
  return refusedField('conflict', 'duplicate_endpoint', { field: 'endpoint_url', message });
}
