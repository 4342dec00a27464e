import { specOf } from '#libs/testing/src/decider-spec';
import {
  acceptInvitation,
  createInvitation,
  endInvitation,
  expireInvitation,
  holderOfInvitation,
  invitationDecider,
  isUsable,
  openKey,
  requireDays,
  resendInvitation,
  revokeInvitation,
  stateAt,
  toPublicInvitation,
  type InvitationEvent,
  type InvitationState,
  type NewInvitation,
  type StoredInvitation,
} from './invitation.decider.ts';

const { given, now, id: idOf, claims } = specOf(invitationDecider);

const id = idOf('invitation');
const user = 'user_01KF0000000000000000000001';
const DAY = 24 * 60 * 60_000;
const later = (days: number): string => new Date(Date.parse(now) + days * DAY).toISOString();

const wanted: NewInvitation = {
  ...{ email: 'ada@acme.test', organization_id: 'org_1', inviter_user_id: null, user_id: null },
  ...{ role: { id: 'role_1', slug: 'admin' }, locale: 'de', days: 7 },
};
const created: InvitationEvent = { type: 'invitation.created', data: { id, ...wanted, expires_at: later(7) } };
const old: InvitationEvent = { type: 'invitation.created', data: { id, ...wanted, expires_at: now } };
const erased: InvitationEvent = { type: 'invitation.created', data: { id, ...wanted, email: null, expires_at: later(7) } };
const resent: InvitationEvent = { type: 'invitation.resent', data: { id, round: 1, expires_at: later(7), locale: 'de' } };
const accepted = (round = 0): InvitationEvent => ({ type: 'invitation.accepted', data: { id, round, accepted_user_id: user } });
const revoked: InvitationEvent = { type: 'invitation.revoked', data: { id, round: 0 } };
const expired: InvitationEvent = { type: 'invitation.expired', data: { id, round: 0 } };

const stateAfter = (...events: readonly InvitationEvent[]): StoredInvitation =>
  events.reduce<InvitationState>((state, event) => invitationDecider.evolve(state, { ...event, at: '2026-01-15T11:59:00.000Z', version: 1 }), null)!;
/** Of a command that may be given again by somebody else: then it is refused, or done again. */
const decided = (state: InvitationState, decide: ReturnType<typeof createInvitation>) => decide(state, { environment: 'environment_1', now, id: idOf });

describe('an invitation', () => {
  it('works for as many days as were asked for', () => given().when(createInvitation(wanted)).then(created));
  it('is created once', () => given(created).when(createInvitation(wanted)).thenNothing());

  it.each([
    [0, 'expires_in_days_too_short'],
    [-3, 'expires_in_days_too_short'],
    [31, 'expires_in_days_too_long'],
  ])('of %s days is refused', (days, code) => expect(() => requireDays(days)).toThrow(expect.objectContaining({ code })));
  it('works for 1 to 30 days', () => expect(() => [1, 30].forEach(requireDays)).not.toThrow());

  it('is another round when it is sent again, for as many days, in the language of before', () =>
    expect(decided(stateAfter(created), resendInvitation(id, null))).toEqual([resent]));
  it('may come in another language then', () => expect(decided(stateAfter(created), resendInvitation(id, 'en'))).toMatchObject([{ data: { locale: 'en' } }]));
  it.each([
    ['accepted', [created, accepted()], 'invite_accepted'],
    ['revoked', [created, revoked], 'invite_revoked'],
    ['over', [old], 'invite_expired'],
    ['noticed to be over', [old, expired], 'invite_expired'],
  ] as const)('is not sent again once it is %s', (_, events, code) =>
    given(...events)
      .when(resendInvitation(id, null))
      .thenRefused(code),
  );

  it('is accepted by whoever has the address, in the round that was sent last', () =>
    expect(decided(stateAfter(created, resent), acceptInvitation(id, user))).toEqual([accepted(1)]));
  it.each([
    ['accepted', [created, accepted()], 'invite_has_accepted_user_id'],
    ['revoked', [created, revoked], 'invite_not_pending'],
    ['over', [old], 'invite_not_pending'],
    ['of somebody who was erased', [erased], 'invite_not_pending'],
  ] as const)('is not accepted once it is %s', (_, events, code) =>
    given(...events)
      .when(acceptInvitation(id, user))
      .thenRefused(code),
  );

  it('is revoked while it is pending', () => expect(decided(stateAfter(created), revokeInvitation(id))).toEqual([revoked]));
  it.each([
    ['accepted', [created, accepted()]],
    ['revoked', [created, revoked]],
    ['over', [old]],
  ] as const)('is not revoked once it is %s', (_, events) =>
    given(...events)
      .when(revokeInvitation(id))
      .thenRefused('invite_not_pending'),
  );
  it('has to be there', () => {
    for (const decide of [resendInvitation(id, null), acceptInvitation(id, user), revokeInvitation(id)]) given().when(decide).thenRefused('entity_not_found');
  });

  it('ends with what it hangs on, once', () => {
    given(created).when(endInvitation(id)).then(revoked);
    given(old).when(endInvitation(id)).then(expired);
    for (const event of [accepted(), revoked, expired]) given(created, event).when(endInvitation(id)).thenNothing();
  });

  it('is over when its time is, and that is recorded once', () => {
    given(created).when(expireInvitation(id)).thenNothing();
    given(old).when(expireInvitation(id)).then(expired);
    given(old, expired).when(expireInvitation(id)).thenNothing();
    given(old, revoked).when(expireInvitation(id)).thenNothing();
  });

  it('says the same of itself before and after somebody noticed that it is over', () => {
    const [before, after] = [stateAfter(old), stateAfter(old, expired)].map((state) => toPublicInvitation(state, stateAt(state, now)));
    expect(after).toEqual(before);
    expect(after!.state).toBe('expired');
  });

  it('holds the address in its organization while it is pending', () => {
    expect(claims(created)).toEqual([['invitation.open', openKey('org_1', 'ADA@acme.test')]]);
    for (const event of [accepted(), revoked, expired]) expect(claims(created, event)).toEqual([]);
    expect(claims(erased)).toEqual([]);
    expect(openKey(null, 'ada@acme.test')).not.toBe(openKey('org_1', 'ada@acme.test'));
  });

  it('lies under the key of whoever had the address, or its own', () => {
    expect(holderOfInvitation({ id, user_id: user })).toBe(`user.${user}`);
    expect(holderOfInvitation({ id, user_id: null })).toBe(`invitation.${id}`);
  });

  it('shows neither its language nor its round', () => {
    const { payload } = invitationDecider.toPublicEvent(resent, stateAfter(created), stateAfter(created, resent))!;
    expect(Object.keys(payload as object).sort()).toEqual(
      [
        ...['object', 'id', 'email', 'state', 'accepted_at', 'revoked_at', 'expires_at', 'organization_id'],
        ...['inviter_user_id', 'accepted_user_id', 'role_slug', 'created_at', 'updated_at'],
      ].sort(),
    );
  });

  it('is of use to whoever accepted it a moment ago, for 30 seconds', () => {
    const state = stateAfter(created, accepted());
    const after = (seconds: number): string => new Date(Date.parse(state.accepted_at!) + seconds * 1_000).toISOString();
    expect([isUsable(state, after(30)), isUsable(state, after(30), user), isUsable(state, after(30), 'user_2'), isUsable(state, after(31), user)]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});
