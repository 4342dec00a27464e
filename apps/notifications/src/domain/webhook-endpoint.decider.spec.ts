import { specOf } from '#libs/testing/src/decider-spec';
import { createEndpoint, deleteEndpoint, rotateSecret, updateEndpoint, webhookEndpointDecider, type WebhookEndpointEvent } from './webhook-endpoint.decider.ts';

const { given, id, now } = specOf(webhookEndpointDecider);

const we = id('we');
const url = { endpoint_url: 'https://acme.test/hooks#top', normalised_url: 'https://acme.test/hooks' };
const created: WebhookEndpointEvent = { type: 'webhook_endpoint.created', data: { id: we, ...url, secret: 'sealed', events: ['organization.created'] } };
const deleted: WebhookEndpointEvent = { type: 'webhook_endpoint.deleted', data: { id: we } };
const rotated = (rotation: string, secret: string): WebhookEndpointEvent => ({
  type: 'webhook_endpoint.secret_rotated',
  data: { rotation, secret, previous_secret_expires_at: now },
});
const fold = (...events: readonly WebhookEndpointEvent[]) =>
  events.reduce((state, event) => webhookEndpointDecider.evolve(state, { ...event, at: now, version: 1 }), webhookEndpointDecider.initial);

describe('a webhook endpoint', () => {
  it('comes into being with the secret that was made for it', () =>
    given()
      .when(createEndpoint({ ...url, secret: 'sealed', events: ['organization.created'] }))
      .then(created));
  it('keeps its first secret when its creation is repeated', () =>
    given(created)
      .when(createEndpoint({ ...url, secret: 'another', events: [] }))
      .thenNothing());
  it('is not created again after its deletion', () =>
    given(created, deleted)
      .when(createEndpoint({ ...url, secret: 'another', events: [] }))
      .thenRefused('entity_not_found'));
  it('records what changes', () =>
    given(created)
      .when(updateEndpoint(we, { status: 'disabled', events: ['organization.created'] }))
      .then({ type: 'webhook_endpoint.updated', data: { status: 'disabled' } }));
  it('moves with both forms of its URL', () => {
    const other = { endpoint_url: 'https://b.test', normalised_url: 'https://b.test/' };
    given(created).when(updateEndpoint(we, other)).then({ type: 'webhook_endpoint.updated', data: other });
  });
  it('ignores an update that changes nothing', () =>
    given(created)
      .when(updateEndpoint(we, { ...url, events: ['organization.created'] }))
      .thenNothing());
  it('gives its secret up slowly', () =>
    given(created)
      .when(rotateSecret(we, 'new', 60))
      .then({
        type: 'webhook_endpoint.secret_rotated',
        data: { rotation: id('webhook_secret_rotation'), secret: 'new', previous_secret_expires_at: '2026-01-15T12:01:00.000Z' },
      }));
  it('is deleted', () => given(created).when(deleteEndpoint(we)).then(deleted));

  it.each([
    ['updated', updateEndpoint(we, { status: 'disabled' })],
    ['rotated', rotateSecret(we, 'new', 0)],
    ['deleted', deleteEndpoint(we)],
  ])('is not %s before it exists', (_, decision) => given().when(decision).thenRefused('entity_not_found'));

  it.each([
    ['updated', updateEndpoint(we, { status: 'disabled' })],
    ['rotated', rotateSecret(we, 'new', 0)],
  ])('is not %s after its deletion', (_, decision) => given(created, deleted).when(decision).thenRefused('entity_not_found'));

  it('signs with the last two secrets at most', () =>
    expect(fold(created, rotated('a', 'second'), rotated('b', 'third'))).toMatchObject({ secret: 'third', previous_secret: 'second' }));
  it('holds its URL while it lives', () => {
    const claims = (...events: readonly WebhookEndpointEvent[]) => webhookEndpointDecider.claims!(fold(...events)).map(({ kind, value }) => [kind, value]);
    expect(claims(created)).toEqual([['webhook_endpoint.url', 'https://acme.test/hooks']]);
    expect(claims(created, deleted)).toEqual([]);
  });
});
