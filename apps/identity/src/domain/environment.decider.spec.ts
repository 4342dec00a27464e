import { specOf } from '#libs/testing/src/decider-spec';
import {
  createEnvironment,
  createKey,
  ensureKey,
  environmentDecider,
  revokeKey,
  rotateKey,
  setClientId,
  type EnvironmentEvent,
} from './environment.decider.ts';

const { given, claims, id, now } = specOf(environmentDecider);

const environment = id('environment');
const keyId = 'environment_key_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const first = { name: 'first', hash: 'a'.repeat(64), obfuscated_value: 'sk_…aaaa' };
const second = { hash: 'b'.repeat(64), obfuscated_value: 'sk_…bbbb' };
const inAnHour = new Date(Date.parse(now) + 3_600_000).toISOString();

const created: EnvironmentEvent = { type: 'environment.created', data: { id: environment, name: 'development', client_id: 'client_1' } };
const keyCreated: EnvironmentEvent = { type: 'environment_key.created', data: { id: keyId, ...first } };
const revoked: EnvironmentEvent = { type: 'environment_key.revoked', data: { id: keyId, hash: first.hash } };
const rotated: EnvironmentEvent = { type: 'environment_key.rotated', data: { id: keyId, hash: first.hash, expires_at: inAnHour } };

describe('an environment', () => {
  it('holds its name alone, once it exists', () => {
    expect([claims(), claims(created)]).toEqual([[], [['environment.name', 'development']]]);
  });

  it('is created', () =>
    given()
      .when(createEnvironment({ name: 'development', client_id: 'client_1' }))
      .then(created));

  it('gets a client id', () => {
    given(created)
      .when(setClientId(environment, 'client_2'))
      .then({ type: 'environment.updated', data: { client_id: 'client_2' } });
    given(created).when(setClientId(environment, 'client_1')).thenNothing();
  });

  it('gets keys', () =>
    given(created, keyCreated)
      .when(createKey(environment, { name: 'second', ...second }))
      .then({ type: 'environment_key.created', data: { id: id('environment_key'), name: 'second', ...second } }));

  it('gets no keys before it exists', () => given().when(createKey(environment, first)).thenRefused('entity_not_found'));

  it('gets a key from outside once, and never again after it was revoked', () => {
    given(created)
      .when(ensureKey(environment, first))
      .then({ type: 'environment_key.created', data: { id: id('environment_key'), ...first } });
    given(created, keyCreated).when(ensureKey(environment, first)).thenNothing();
    given(created, keyCreated, revoked).when(ensureKey(environment, first)).thenNothing();
  });
});

describe('a key of an environment', () => {
  const successor: EnvironmentEvent = { type: 'environment_key.created', data: { id: id('environment_key'), name: 'first', ...second } };

  it('is replaced, and works for a while yet', () =>
    given(created, keyCreated)
      .when(rotateKey(keyId, second, 3_600))
      .then(successor, rotated));

  it('does not work longer because it is replaced again', () =>
    given(created, keyCreated, rotated)
      .when(rotateKey(keyId, second, 7_200))
      .then(successor, rotated));

  it('is not replaced once it is revoked', () =>
    given(created, keyCreated, revoked)
      .when(rotateKey(keyId, second, 3_600))
      .thenRefused('environment_key_revoked'));

  it('is revoked', () => {
    given(created, keyCreated).when(revokeKey(keyId)).then(revoked);
    given(created, keyCreated, revoked).when(revokeKey(keyId)).thenNothing();
  });

  it('is neither replaced nor revoked where it is not', () => {
    given(created)
      .when(rotateKey(keyId, second, 3_600))
      .thenRefused('entity_not_found');
    given(created).when(revokeKey(keyId)).thenRefused('entity_not_found');
  });
});
