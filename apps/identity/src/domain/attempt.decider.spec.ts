import { specOf } from '#libs/testing/src/decider-spec';
import { attemptDecider, recordFailure, type AttemptEvent, type FailedAttempt } from './attempt.decider.ts';

const { given, id: idOf } = specOf(attemptDecider);
const id = idOf('attempt');
const error = { code: 'invalid_credentials', message: 'Invalid credentials.' };
const attempt: FailedAttempt = { id, user_id: 'user_1', email: 'ada@acme.test', ip_address: '192.0.2.1', user_agent: null, error };
const failed: AttemptEvent = { type: 'authentication.password_failed', data: attempt };

describe('a failed attempt', () => {
  it('is recorded once', () => given().when(recordFailure('password', attempt)).then(failed));
  it("is nobody's whom it names, and does not tell whose key it lies under", () => {
    const data = { ...attempt, user_id: null, holder: 'address.0123.2026-11' };
    const [sealing] = attemptDecider.sealed['authentication.password_failed']!;
    const fact = { type: 'authentication.password_failed', data, at: '' } as const;
    expect(sealing!.of(fact, { key: id, before: null, after: null })).toBe('address.0123.2026-11');
    expect(JSON.stringify(attemptDecider.toPublicEvent(fact, null, null))).not.toContain('0123');
  });
  it('is told with the reason, and without anything that was tried', () =>
    expect(attemptDecider.toPublicEvent(failed, null, null)).toEqual({
      names: ['authentication.password_failed'],
      payload: { type: 'password', status: 'failed', user_id: 'user_1', email: 'ada@acme.test', ip_address: '192.0.2.1', user_agent: null, error },
    }));
  it.each([
    ['user.user_1', 'user_1'],
    [`attempt.${id}`, null],
  ])('is sealed for %s', (holder, user_id) => {
    const [sealing] = attemptDecider.sealed['authentication.password_failed']!;
    const fact = { type: 'authentication.password_failed', data: { ...attempt, user_id }, at: '' } as const;
    expect(sealing!.of(fact, { key: id, before: null, after: null })).toBe(holder);
  });
});
