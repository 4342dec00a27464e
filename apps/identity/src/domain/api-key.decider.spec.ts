import { specOf } from '#libs/testing/src/decider-spec';
import { apiKeyDecider, createApiKey, expireApiKey, hasExpired, recordRevocation, type ApiKeyEvent, type ApiKeyState } from './api-key.decider.ts';

const { given, id: idOf, now } = specOf(apiKeyDecider);

const id = idOf('api_key');
const organization_id = 'org_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const earlier = '2026-01-15T11:59:59.999Z';
const later = '2026-01-15T12:00:00.001Z';
const muchLater = '2027-01-15T12:00:00.000Z';

const key = {
  owner: { type: 'organization' as const, id: organization_id },
  organization_id,
  membership_id: null,
  name: 'Build server',
  obfuscated_value: 'sk_…1f9a',
  hash: 'abc',
  permissions: ['documents:read'],
  expires_at: null,
};
const created = (changes: object = {}): ApiKeyEvent => ({ type: 'api_key.created', data: { id, ...key, ...changes } });
const updated = (expires_at: string | null, before: string | null): ApiKeyEvent => ({
  type: 'api_key.updated',
  data: { id, expires_at, previous_attributes: { expires_at: before } },
});
const revoked: ApiKeyEvent = { type: 'api_key.revoked', data: { id } };

describe('an API key', () => {
  it('is created', () => given().when(createApiKey(key)).then(created()));
  it('is created with a time to come', () =>
    given()
      .when(createApiKey({ ...key, expires_at: later }))
      .then(created({ expires_at: later })));
  it.each([earlier, now])('is not created to expire at %s', (expires_at) =>
    given()
      .when(createApiKey({ ...key, expires_at }))
      .thenRefused('invalid_request_parameters'),
  );
  it('is there when its creation is repeated, also once it has expired', () =>
    given(created({ expires_at: earlier }))
      .when(createApiKey({ ...key, expires_at: earlier }))
      .thenNothing());
  it('stays revoked when its creation is repeated', () => given(created(), revoked).when(createApiKey(key)).thenRefused('entity_not_found'));

  it('expires now, unless a time to come is given', () => {
    for (const requested of [undefined, earlier, now])
      expect(expireApiKey(id, requested)(stateOf(created()), { environment: '', now, id: idOf })).toEqual([updated(now, null)]);
  });
  it('expires when it is told to', () => given(created()).when(expireApiKey(id, later)).then(updated(later, null)));
  it('expires later, or never, than it was told before', () => {
    given(created({ expires_at: later }))
      .when(expireApiKey(id, muchLater))
      .then(updated(muchLater, later));
    given(created({ expires_at: later }))
      .when(expireApiKey(id, null))
      .then(updated(null, later));
  });
  it('ignores a time that it has', () => given(created()).when(expireApiKey(id, null)).thenNothing());
  it.each([undefined, null, muchLater])('that has expired does so for good: %s', (requested) =>
    given(created({ expires_at: now }))
      .when(expireApiKey(id, requested))
      .thenRefused('api_key_already_expired'),
  );
  it('has expired at its time, and not before', () => {
    expect([earlier, now, later, null].map((expires_at) => hasExpired({ expires_at }, now))).toEqual([true, true, false, false]);
  });

  it('is revoked once', () => {
    given(created()).when(recordRevocation(id)).then(revoked);
    given(created(), revoked).when(recordRevocation(id)).thenNothing();
  });
  it('that was revoked does not expire, and is not known', () => {
    given(created(), revoked).when(expireApiKey(id, undefined)).thenRefused('entity_not_found');
    given().when(expireApiKey(id, undefined)).thenRefused('entity_not_found');
  });

  it('is announced without its hash and what it hangs on; when it expires, with what was there before', () => {
    const [before, after] = [stateOf(created()), stateOf(created(), updated(later, null))];
    const shown = apiKeyDecider.toPublicEvent(updated(later, null), before, after)!;
    expect(shown.payload).toEqual({
      ...{ object: 'api_key', id, owner: key.owner, name: key.name, obfuscated_value: key.obfuscated_value, permissions: key.permissions },
      ...{ last_used_at: null, expires_at: later, created_at: earlier, updated_at: earlier, previous_attributes: { expires_at: null } },
    });
    expect(apiKeyDecider.toPublicEvent(revoked, before, stateOf(created(), revoked))!.payload).not.toHaveProperty('previous_attributes');
  });
});

function stateOf(...events: readonly ApiKeyEvent[]): ApiKeyState {
  return events.reduce<ApiKeyState>((state, event) => apiKeyDecider.evolve(state, { ...event, at: earlier, version: 1 }), null);
}
