import { specOf } from '#libs/testing/src/decider-spec';
import { codeOf, createCode, isOfUser, magicAuthDecider, passwordResetDecider, redeemCode, type OneTimeCodeEvent } from './one-time-code.decider.ts';
import { createUser, userDecider, type StoredUser } from './user.decider.ts';

const { given, id: idOf, now } = specOf(magicAuthDecider);

const id = idOf('magic_auth');
const user_id = 'user_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const email = 'ada@acme.test';
const older = 'magic_auth_01HZZZZZZZZZZZZZZZZZZZZZZ2';
const lifetime = 600_000;

const created = (fields: object = {}): OneTimeCodeEvent<'magic_auth'> => ({
  type: 'magic_auth.created',
  data: { id, user_id, email, credentials_version: 4, expires_at: '2026-01-15T12:10:00.000Z', ...fields },
});
const redeemed = (redeemed_by: string): OneTimeCodeEvent<'magic_auth'> => ({ type: 'magic_auth.redeemed', data: { id, redeemed_by } });
const create = createCode('magic_auth', { user_id, email, credentials_version: 4, lifetime });
const redeem = (by: string) => redeemCode('magic_auth', id, by);
/** Facts lie a minute before the command. */
const at = (time: string) => ({ now: time });

describe('a code that was sent', () => {
  it('is created once by a command', () => given().when(create).then(created()));
  it('takes the place of the one before', () => {
    given(created({ id: older }))
      .when(create)
      .then(created());
    given(created(), created({ id: older }))
      .when(redeem('session_1'))
      .thenRefused('invalid_one_time_code');
  });

  it('is redeemed once', () => {
    given(created()).when(redeem('session_1')).then(redeemed('session_1'));
    given(created(), redeemed('session_1')).when(redeem('session_2')).thenRefused('one_time_code_previously_used');
    given().when(redeem('session_1')).thenRefused('invalid_one_time_code');
  });
  it.each([
    ['within 30 s', '2026-01-15T11:59:30.000Z'],
    ['a moment later', '2026-01-15T11:59:00.000Z'],
  ])('may be redeemed by the same session again: %s', (_, time) => given(created(), redeemed('session_1')).when(redeem('session_1'), at(time)).thenNothing());
  it('may not be redeemed by the same session later', () =>
    given(created(), redeemed('session_1')).when(redeem('session_1'), at('2026-01-15T11:59:30.001Z')).thenRefused('one_time_code_previously_used'));

  it.each([
    ['now', now],
    ['before', '2026-01-15T11:59:59.999Z'],
  ])('is not redeemed when it has expired: %s', (_, expires_at) =>
    given(created({ expires_at })).when(redeem('session_1')).thenRefused('one_time_code_expired'),
  );
  it('works until its last millisecond', () =>
    given(created({ expires_at: '2026-01-15T12:00:00.001Z' }))
      .when(redeem('session_1'))
      .then(redeemed('session_1')));

  it('ends with its user, and is not created again by the same command', () => {
    const removed: OneTimeCodeEvent<'magic_auth'> = { type: 'magic_auth.removed', data: { id } };
    const end = magicAuthDecider.hangsOn!.end(user_id);
    given(created()).when(end).then(removed);
    given().when(end).thenNothing();
    given(created(), removed).when(create).thenRefused('entity_not_found');
    given(created(), removed).when(redeem('session_1')).thenRefused('invalid_one_time_code');
  });

  it('says to whom it was sent, and nobody else', () => {
    const state = magicAuthDecider.evolve(null, { ...created(), at: now, version: 1 });
    expect(magicAuthDecider.toPublicEvent(created(), null, state)).toEqual({
      names: ['magic_auth.created'],
      payload: { object: 'magic_auth', id, user_id, email, expires_at: '2026-01-15T12:10:00.000Z', created_at: now, updated_at: now },
    });
    expect(magicAuthDecider.sealed['magic_auth.created']).toMatchObject([{ fields: ['email'] }]);
    const reset = passwordResetDecider.evolve(null, {
      type: 'password_reset.created',
      data: { id: 'password_reset_1', user_id, email, expires_at: now },
      at: now,
      version: 1,
    });
    expect(passwordResetDecider.toPublicEvent({ type: 'password_reset.created', data: {} as never }, null, reset)?.payload).toEqual({
      ...{ object: 'password_reset', id: 'password_reset_1', user_id, email, expires_at: now, created_at: now },
    });
  });
});

describe('whether a code is still of use to its user', () => {
  const context = { environment: 'environment_1', now, id: idOf };
  const user = createUser({ email }, null)(null, context).reduce(
    (state, fact) => userDecider.evolve(state, { ...fact, at: now, version: 1 }),
    userDecider.initial,
  ) as StoredUser;
  const reset = (version: number, at: string) => ({ id: 'password_reset_1', at, version });
  const code = codeOf(magicAuthDecider.evolve(null, { ...created(), at: now, version: 1 }))!;

  it.each<[string, boolean, Partial<StoredUser>]>([
    ['as it was', true, {}],
    ['written otherwise', true, { email: 'ADA@acme.test' }],
    ['with another address', false, { email: 'eve@acme.test' }],
    ['erased', false, { email: null }],
    ['whose password was reset before, by a clock that was ahead', true, { last_reset: reset(4, '2026-01-15T12:05:00.000Z') }],
    ['whose password was reset since, by a clock that was behind', false, { last_reset: reset(5, '2026-01-15T11:55:00.000Z') }],
  ])('%s: %p', (_, expected, changes) => expect(isOfUser(code, { ...user, ...changes })).toBe(expected));

  it('goes by time where it was recorded before versions were', () => {
    const { credentials_version: _, ...older } = code;
    const isOf = (at: string) => isOfUser(older, { ...user, last_reset: reset(5, at) });
    expect([isOf('2026-01-15T11:59:59.999Z'), isOf(now)]).toEqual([true, false]);
  });
});
