import { specOf } from '#libs/testing/src/decider-spec';
import {
  authenticationFactorDecider,
  challengeFactor,
  countingFactors,
  deleteFactor,
  deleteRemovedFactor,
  enrolFactor,
  holderOfFactor,
  isLastChallenge,
  isRemoved,
  toPublicFactor,
  verifyFactor,
  type AuthenticationFactorEvent,
  type BegunSignIn,
  type FactorEnrolled,
  type StoredFactor,
} from './authentication-factor.decider.ts';

const { given, id: idOf, now } = specOf(authenticationFactorDecider);
const id = idOf('auth_factor');
const user_id = 'user_01KF0000000000000000000001';
const fields: Omit<FactorEnrolled, 'id'> = {
  ...{ user_id, type: 'totp', totp_issuer: 'Acme', totp_user: 'ada@acme.test', totp_secret: 'sealed', phone_number: null },
};
const enrolled: AuthenticationFactorEvent = { type: 'authentication_factor.enrolled', data: { id, ...fields } };
const verified: AuthenticationFactorEvent = { type: 'authentication_factor.verified', data: { id } };
const deleted: AuthenticationFactorEvent = { type: 'authentication_factor.deleted', data: { id } };
const early = '2020-01-01T00:00:00.000Z';
const late = new Date(Date.parse(now) + 1).toISOString();
const factor = (changes: Partial<StoredFactor> = {}): StoredFactor => ({
  ...{ object: 'authentication_factor', id, ...fields, verified_at: now, created_at: now, updated_at: now },
  ...changes,
});

describe('an authentication factor', () => {
  it('is enrolled, once', () => {
    given().when(enrolFactor(fields)).then(enrolled);
    given(enrolled).when(enrolFactor(fields)).thenNothing();
    given(enrolled, deleted).when(enrolFactor(fields)).thenRefused('entity_not_found');
  });
  it('is verified, once', () => {
    given(enrolled).when(verifyFactor(id)).then(verified);
    given(enrolled, verified).when(verifyFactor(id)).thenNothing();
    given(enrolled, deleted).when(verifyFactor(id)).thenRefused('entity_not_found');
  });
  it('is challenged by text, once for a challenge, and has the code of the last one alone', () => {
    const challengeOf = (challenge_id: string) => ({ id, user_id, challenge_id, sms_template: null, expires_at: late });
    const challenged = (challenge_id: string): AuthenticationFactorEvent => ({ type: 'authentication_factor.challenged', data: challengeOf(challenge_id) });
    given(enrolled, challenged('one'))
      .when(challengeFactor(challengeOf('two')))
      .then(challenged('two'));
    given(enrolled, challenged('one'))
      .when(challengeFactor(challengeOf('one')))
      .thenNothing();
    given(enrolled, deleted)
      .when(challengeFactor(challengeOf('one')))
      .thenRefused('entity_not_found');
    const sms = factor({ type: 'sms', last_challenge_id: 'two' });
    expect([isLastChallenge(sms, 'one'), isLastChallenge(sms, 'two'), isLastChallenge(factor(), 'one')]).toEqual([false, true, true]);
  });
  it('is deleted, once', () => {
    given(enrolled).when(deleteFactor(id)).then(deleted);
    given(enrolled, deleted).when(deleteFactor(id)).thenNothing();
    given().when(deleteFactor(id)).thenNothing();
    // Of whom nobody knows whose it was, nothing can be read any more.
    const unowned: AuthenticationFactorEvent = { type: 'authentication_factor.enrolled', data: { id, ...fields, user_id: null } };
    const erased: AuthenticationFactorEvent = { type: 'authentication_factor.erased', data: { holders: [`authentication_factor.${id}`] } };
    given(unowned).when(deleteFactor(id)).then(deleted, erased);
    given(unowned, deleted, erased).when(deleteFactor(id)).thenNothing();
  });
  it('is deleted with what was set before a fact of its user, where it did not know of that, whatever clocks say', () => {
    const knowing: AuthenticationFactorEvent = { type: 'authentication_factor.enrolled', data: { id, ...fields, credentials_version: 4 } };
    given(knowing)
      .when(deleteRemovedFactor(id, { version: 5, at: early }))
      .then(deleted);
    given(knowing)
      .when(deleteRemovedFactor(id, { version: 4, at: late }))
      .thenNothing();
  });
  it('is deleted so by its time, where it was recorded before versions were', () => {
    given(enrolled)
      .when(deleteRemovedFactor(id, { version: 5, at: now }))
      .then(deleted);
    given(enrolled)
      .when(deleteRemovedFactor(id, { version: 5, at: early }))
      .thenNothing();
  });
  it('is nobody else’s than its user’s, or its own', () => {
    expect(holderOfFactor({ id, user_id })).toBe(`user.${user_id}`);
    expect(holderOfFactor({ id, user_id: null })).toBe(`authentication_factor.${id}`);
  });
  it('is shown without its secret, and is told of by no event', () => {
    expect(toPublicFactor(factor())).toEqual({
      ...{ object: 'authentication_factor', id, type: 'totp', user_id, totp: { issuer: 'Acme', user: 'ada@acme.test' } },
      ...{ created_at: now, updated_at: now },
    });
    expect(toPublicFactor(factor({ user_id: null, type: 'generic_otp' }))).toEqual({
      ...{ object: 'authentication_factor', id, type: 'generic_otp', created_at: now, updated_at: now },
    });
    expect(toPublicFactor(factor({ type: 'sms', phone_number: '+491' }))).toMatchObject({ sms: { phone_number: '+491' } });
    expect(authenticationFactorDecider.toPublicEvent(enrolled, null, factor())).toBeNull();
  });
  it('of before the first proof of its user’s address is none', () => {
    expect(isRemoved(factor(), {})).toBe(false);
    const credentials_removed = { by: 'session_1', at: now, version: 5 };
    expect(isRemoved(factor({ credentials_version: 4, created_at: late }), { credentials_removed })).toBe(true);
    expect(isRemoved(factor({ credentials_version: 5, created_at: early }), { credentials_removed })).toBe(false);
    expect(isRemoved(factor(), { credentials_removed })).toBe(true);
    expect(isRemoved(factor({ created_at: late }), { credentials_removed })).toBe(false);
  });
});

describe('what counts as a second factor', () => {
  const [one, unverified, after] = [factor({ id: 'one' }), factor({ id: 'unverified', verified_at: null }), factor({ id: 'after', verified_at: late })];
  const idsOf = (factors: readonly StoredFactor[], begun: BegunSignIn | null) => countingFactors(factors, begun).map((each) => each.id);
  const knowing = (...factor_ids: string[]): BegunSignIn => ({ began_at: now, factor_ids });

  it('is one that was verified', () => {
    expect(idsOf([unverified], null)).toEqual([]);
    expect(idsOf([one, unverified, after], null)).toEqual(['one', 'after']);
  });
  it('is none that came after the sign-in began, where there was one before', () => {
    expect(idsOf([one, unverified, after], knowing('one'))).toEqual(['one']);
    // Whatever the clocks say.
    expect(idsOf([one, unverified, after], knowing('after'))).toEqual(['after']);
  });
  it('is one that came after it for somebody who had none, or has none of those any more', () => {
    expect(idsOf([unverified, after], knowing())).toEqual(['after']);
    expect(idsOf([after], knowing('one'))).toEqual(['after']);
  });
  it('goes by times where the sign-in was recorded before it said which there were', () => {
    expect(idsOf([one, unverified, after], { began_at: now })).toEqual(['one']);
    expect(idsOf([unverified, after], { began_at: now })).toEqual(['after']);
  });
});
