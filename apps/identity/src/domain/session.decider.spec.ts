import { specOf } from '#libs/testing/src/decider-spec';
import type { StoredMembership } from './membership.decider.ts';
import {
  beginSession,
  endSession,
  isStillMember,
  endOutdatedSession,
  endSessionOfInactive,
  proveFactor,
  sessionDecider,
  type EndReason,
  type NewProof,
  type NewSession,
  type SessionEvent,
  type SessionState,
  type StoredSession,
} from './session.decider.ts';

const { given, now } = specOf(sessionDecider);

const id = 'session_01KF0000000000000000000009';
const user_id = 'user_01KF0000000000000000000001';
const about: NewProof = { id, user_id, email: 'ada@acme.test', ip_address: '192.0.2.1', user_agent: 'Firefox', has_secret: true, credentials_version: 4 };
const session: NewSession = { membership: { id: 'om_1', organization_id: 'org_1', status_version: 3 }, expires_at: '2026-02-14T12:00:00.000Z' };
const password: SessionEvent = { type: 'authentication.password_succeeded', data: about };
const code: SessionEvent = { type: 'authentication.magic_auth_succeeded', data: about };
const mailbox: SessionEvent = { type: 'authentication.email_verification_succeeded', data: about };
const mfa: SessionEvent = { type: 'authentication.mfa_succeeded', data: about };
const created: SessionEvent = {
  type: 'session.created',
  data: {
    ...{ id, user_id, auth_method: 'password', ip_address: '192.0.2.1', user_agent: 'Firefox', expires_at: session.expires_at },
    ...{ organization_id: 'org_1', membership_id: 'om_1', credentials_version: 4, membership_version: 3 },
  },
};
const ended: SessionEvent = { type: 'session.revoked', data: { id, reason: 'revoked' } };

describe('a sign-in', () => {
  it('begins with the first factor that is proven', () =>
    given()
      .when(proveFactor('password', about, null))
      .then(password));
  it('is a session at once where nothing else is asked for', () =>
    given()
      .when(proveFactor('password', about, session))
      .then(password, created));
  it('goes on with another factor', () =>
    given(password)
      .when(proveFactor('email_verification', about, null))
      .then(mailbox));
  it('is a session with its last factor, which says how it began by its first', () =>
    given(password)
      .when(proveFactor('email_verification', about, session))
      .then(mailbox, created));
  it('is a session once nothing else is asked for', () => given(password).when(beginSession(session)).then(created));
  it('takes each factor once', () =>
    given(password)
      .when(proveFactor('password', about, null))
      .thenNothing());
  it('takes a factor for proven where what follows could not be recorded with it', () =>
    given(password)
      .when(proveFactor('password', about, session))
      .then(created));
  it('is told with its session by the factor that came first', () =>
    given()
      .when(proveFactor('magic_auth', about, session))
      .then(code, { ...created, data: { ...created.data, auth_method: 'magic_code' } as never }));
  it('makes no session of nothing', () => given().when(beginSession(session)).thenNothing());
  it('can be ended, and then nothing comes of it', () => {
    given(password).when(endSession(id, 'revoked')).then(ended);
    given(password, ended).when(beginSession(session)).thenNothing();
    given(password, ended)
      .when(proveFactor('email_verification', about, session))
      .thenNothing();
  });
});

describe('a session', () => {
  it('begins once', () => given(password, created).when(beginSession(session)).thenNothing());
  it('takes no further factor', () =>
    given(password, created)
      .when(proveFactor('mfa', about, session))
      .thenNothing());
  it('is ended', () => given(password, created).when(endSession(id, 'revoked')).then(ended));
  it('is ended once', () => given(password, created, ended).when(endSession(id, 'signed_out')).thenNothing());
  it('that has expired is told of by nobody', () => {
    const over = { ...created, data: { ...created.data, expires_at: now } } as SessionEvent;
    given(password, over).when(endSession(id, 'revoked')).thenNothing();
    given(password, over)
      .when(endOutdatedSession(id, { version: 5, at: now }, 'password_reset'))
      .thenNothing();
  });
  const endedBy = (reason: EndReason): SessionEvent => ({ type: 'session.revoked', data: { id, reason } });
  describe.each([
    ['by a clock that is behind', '2020-01-01T00:00:00.000Z'],
    ['by a clock that is ahead', '2030-01-01T00:00:00.000Z'],
  ])('recorded %s', (_, at) => {
    it('is ended by what it did not know of its user, and by nothing else', () => {
      const reset = (version: number) => given(password, created).when(endOutdatedSession(id, { version, at }, 'password_reset'));
      reset(5).then(endedBy('password_reset'));
      reset(4).thenNothing();
    });
    it('is ended where its membership was made inactive since, and not once it began after that', () => {
      const inactive = (version: number) => given(password, created).when(endSessionOfInactive(id, { version, at }));
      inactive(4).then(endedBy('membership_inactive'));
      inactive(3).thenNothing();
      inactive(2).thenNothing();
    });
  });
  it('is ended by time where it was recorded before versions were', () => {
    const { credentials_version: _, membership_version: _active, ...former } = created.data;
    const older: SessionEvent = { type: 'session.created', data: former };
    const [at, before] = ['2026-01-15T11:59:00.000Z', '2026-01-15T11:58:59.999Z'];
    given(password, older)
      .when(endOutdatedSession(id, { version: 1, at }, 'credentials_removed'))
      .then(endedBy('credentials_removed'));
    given(password, older)
      .when(endSessionOfInactive(id, { version: 1, at }))
      .then(endedBy('membership_inactive'));
    for (const decision of [endOutdatedSession(id, { version: 9, at: before }, 'password_reset'), endSessionOfInactive(id, { version: 9, at: before })])
      given(password, older).when(decision).thenNothing();
  });
  it.each<[string, readonly SessionEvent[], true | undefined]>([
    ['one factor', [password], undefined],
    ['two factors', [password, mfa], true],
  ])('is the same to a view that begins with its fact, after %s', (_, proofs, hasSecondFactor) => {
    const fold = (before: SessionState, event: SessionEvent) => sessionDecider.evolve(before, { ...event, at: now, version: 1 });
    const signIn = proofs.reduce(fold, sessionDecider.initial);
    const [began] = beginSession(session)(signIn, { now } as never);
    expect((fold(signIn, began!) as StoredSession).has_second_factor).toBe(hasSecondFactor);
    expect(fold(sessionDecider.initial, began!)).toEqual(fold(signIn, began!));
  });
  it('has the second factor that was proven for it where that was recorded before its fact told it', () => {
    const state = [password, mfa, created].reduce<SessionState>(
      (before, event) => sessionDecider.evolve(before, { ...event, at: now, version: 1 }),
      sessionDecider.initial,
    );
    expect(state).toMatchObject({ object: 'session', has_second_factor: true });
  });
  it('is of the membership that it began with, for as long as that is active', () => {
    const state = [password, created].reduce((before, event) => sessionDecider.evolve(before, { ...event, at: now, version: 1 }), sessionDecider.initial);
    const membership = (fields: object) => ({ id: 'om_1', status: 'active', status_version: 3, ...fields }) as StoredMembership;
    const still = (found: StoredMembership | null) => isStillMember(state as StoredSession, found);
    expect(still(membership({}))).toBe(true);
    expect([null, membership({ id: 'om_2' }), membership({ status: 'inactive', status_version: 4 }), membership({ status_version: 5 })].map(still)).toEqual([
      ...[false, false, false, false],
    ]);
  });
  it('that never was is not ended', () => given().when(endSession(id, 'revoked')).thenNothing());
  it('does not begin again after its end', () => {
    given(password, created, ended).when(beginSession(session)).thenNothing();
    given(password, created, ended)
      .when(proveFactor('password', about, session))
      .thenNothing();
  });
});

describe('events of sign-in', () => {
  const told = (...events: readonly SessionEvent[]) => {
    let state = sessionDecider.initial;
    return events.map((event) => {
      const before = state;
      state = sessionDecider.evolve(state, { ...event, at: now, version: 1 });
      return sessionDecider.toPublicEvent(event, before, state);
    });
  };
  const shown = { object: 'session', id, user_id, organization_id: 'org_1', auth_method: 'password', ip_address: '192.0.2.1', user_agent: 'Firefox' };
  const times = { expires_at: session.expires_at, created_at: now };

  it('tell each factor, and the session at its end', () =>
    expect(told(password, created, ended)).toEqual([
      {
        payload: { type: 'password', status: 'succeeded', user_id, email: 'ada@acme.test', ip_address: '192.0.2.1', user_agent: 'Firefox' },
        names: ['authentication.password_succeeded'],
      },
      { payload: { ...shown, ...times, status: 'active', ended_at: null, updated_at: now }, names: ['session.created'] },
      { payload: { ...shown, ...times, status: 'revoked', ended_at: now, updated_at: now }, names: ['session.revoked'] },
    ]));
  it('tell nothing of a sign-in that was given up', () => expect(told(password, ended)[1]).toBeNull());
  it('name no organization where none was chosen', () => {
    const without: SessionEvent = { ...created, data: { ...created.data, organization_id: null, membership_id: null } as never };
    expect(told(password, without)[1]!.payload).not.toHaveProperty('organization_id');
  });
});
