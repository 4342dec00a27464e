import type { PublicTokenKey } from '#libs/contracts/src/token-keys/key-set';
import { specOf } from '#libs/testing/src/decider-spec';
import { ensureTokenKey, publishedKeys, rotateTokenKey, signingKey, tokenKeysDecider, type NewTokenKey, type TokenKeysEvent } from './token-keys.decider.ts';

const { given, now } = specOf(tokenKeysDecider);

const HOUR = 3_600_000;
const key = (kid: string, alg: PublicTokenKey['alg'] = 'RS256'): NewTokenKey => ({
  public_key: { kty: alg === 'RS256' ? 'RSA' : 'EC', use: 'sig', alg, kid, x5c: [], 'x5t#S256': 'x' },
  private_key: 'enc.v1.sealed',
});
const after = (milliseconds: number): string => new Date(Date.parse(now) + milliseconds).toISOString();
const created = (made: NewTokenKey, signs_from: string) => ({ type: 'token_key.created', data: { ...made, signs_from } }) as const;
const dropped = (...kids: readonly string[]) => ({ type: 'token_keys.dropped', data: { kids } }) as const;
const later = { isNow: false, isDropped: false };

/** Each event at the time from which it has its key sign, or a day before. */
const stateAfter = (...events: readonly (TokenKeysEvent & { readonly at: string })[]) =>
  events.reduce((state, event) => tokenKeysDecider.evolve(state, { ...event, version: 1 }), tokenKeysDecider.initial);
const kids = (keys: readonly PublicTokenKey[]): readonly string[] => keys.map(({ kid }) => kid);

describe('the token keys of an environment', () => {
  it('begin with one that signs at once', () =>
    given()
      .when(ensureTokenKey(key('one')))
      .then(created(key('one'), now)));

  it('keep the one that was made first where two are made at once', () =>
    given(created(key('one'), now))
      .when(ensureTokenKey(key('two')))
      .thenNothing());

  it('begin anew with another algorithm', () =>
    given(created(key('one'), now))
      .when(ensureTokenKey(key('two', 'ES256')))
      .then(created(key('two', 'ES256'), now)));

  it('are published a day before they sign', () =>
    given(created(key('one'), after(-HOUR)))
      .when(rotateTokenKey(key('two'), later))
      .then(created(key('two'), after(24 * HOUR))));

  it('wait for the one that is published already', () =>
    given(created(key('one'), after(-HOUR)), created(key('two'), after(HOUR)))
      .when(rotateTokenKey(key('three'), later))
      .thenNothing());

  it('sign at once in an emergency, also while one waits', () =>
    given(created(key('one'), after(-HOUR)), created(key('two'), after(HOUR)))
      .when(rotateTokenKey(key('three'), { ...later, isNow: true }))
      .then(created(key('three'), now)));

  it('leave at once where they were stolen', () =>
    given(created(key('one'), after(-HOUR)), created(key('two'), after(HOUR)))
      .when(rotateTokenKey(key('three'), { isNow: true, isDropped: true }))
      .then(created(key('three'), now), dropped('one', 'two')));

  it('sign one after the other, and stay until what they signed has expired', () => {
    const state = stateAfter({ ...created(key('one'), after(0)), at: after(0) }, { ...created(key('two'), after(25 * HOUR)), at: after(HOUR) });
    const times = [0, 24, 25, 49, 50].map((hours) => after(hours * HOUR));
    expect(times.map((time) => signingKey(state, time)?.public_key.kid)).toEqual(['one', 'one', 'two', 'two', 'two']);
    expect(times.map((time) => kids(publishedKeys(state, time)))).toEqual([['one', 'two'], ['one', 'two'], ['one', 'two'], ['one', 'two'], ['two']]);
  });

  it('sign by the first where a clock is behind that of whoever made it, also after an emergency', () => {
    const made = { ...created(key('one'), after(0)), at: after(0) };
    const state = stateAfter(made, { ...created(key('two'), after(24 * HOUR)), at: after(0) });
    expect(signingKey(state, after(-5 * 60_000))?.public_key.kid).toBe('one');
    const emergency = stateAfter(made, { ...created(key('two'), after(HOUR)), at: after(HOUR) }, { ...dropped('one'), at: after(HOUR) });
    expect(signingKey(emergency, after(HOUR - 5 * 60_000))?.public_key.kid).toBe('two');
    expect(signingKey(null, now)).toBeNull();
  });

  it('never publish one again that was overtaken before it signed', () => {
    const state = stateAfter(
      { ...created(key('one'), after(0)), at: after(0) },
      { ...created(key('two'), after(25 * HOUR)), at: after(HOUR) },
      { ...created(key('three'), after(2 * HOUR)), at: after(2 * HOUR) },
    );
    expect(kids(publishedKeys(state, after(2 * HOUR)))).toEqual(['one', 'three']);
    expect(signingKey(state, after(25 * HOUR))?.public_key.kid).toBe('three');
  });

  it('verify what another algorithm signed, until it has expired', () => {
    const state = stateAfter({ ...created(key('one'), after(0)), at: after(0) }, { ...created(key('two', 'ES256'), after(HOUR)), at: after(HOUR) });
    expect(kids(publishedKeys(state, after(24 * HOUR)))).toEqual(['one', 'two']);
    expect(kids(publishedKeys(state, after(26 * HOUR)))).toEqual(['two']);
    expect(signingKey(state, after(HOUR))?.public_key.kid).toBe('two');
  });
});
