import { specOf } from '#libs/testing/src/decider-spec';
import {
  createUser,
  deleteUser,
  eraseUser,
  credentialsVersionOf,
  outdatedBy,
  linkData,
  resetPassword,
  updateUser,
  userDecider,
  verifyEmail,
  type StoredUser,
  type UserEvent,
} from './user.decider.ts';

const { given, id, now } = specOf(userDecider);
const user = id('user');
const other = 'user_01HZZZZZZZZZZZZZZZZZZZZZZ1';
const elsewhere = { id: (prefix: string) => `${prefix}_01HZZZZZZZZZZZZZZZZZZZZZZ1` };

const fields = { email: 'Ada@Acme.test', email_verified: false, first_name: null, last_name: null, name: null, external_id: null, metadata: {} };
const created: UserEvent = { type: 'user.created', data: { id: user, ...fields } };
const deleted: UserEvent = { type: 'user.deleted', data: { id: user } };
const updated = (data: Extract<UserEvent, { type: 'user.updated' }>['data']): UserEvent => ({ type: 'user.updated', data });
const password = { type: 'bcrypt-hmac', hash: '$2b$12$stored' } as const;
const passwordSet: UserEvent = { type: 'user.password_set', data: { id: user, password_id: id('password'), password } };

const create = (given: Partial<Parameters<typeof createUser>[0]> = {}) => createUser({ email: 'Ada@Acme.test', ...given }, null);
const update = (given: Parameters<typeof updateUser>[1]) => updateUser(user, given, null);
const stateAfter = (...events: readonly UserEvent[]) =>
  events.reduce((state, event, index) => userDecider.evolve(state, { ...event, at: now, version: index + 1 }), userDecider.initial);
const claimsOf = (...events: readonly UserEvent[]) => userDecider.claims!(stateAfter(...events)).map(({ kind, value }) => [kind, value]);

describe('a user', () => {
  describe('of whom something lies elsewhere', () => {
    const linked = (holder: string): UserEvent => ({ type: 'user.data_linked', data: { holder } });

    it('is known by whoever has it, each once', () => {
      given(created).when(linkData(user, 'invitation.one')).then(linked('invitation.one'));
      given(created, linked('invitation.one')).when(linkData(user, 'invitation.two')).then(linked('invitation.two'));
      given(created, linked('invitation.one')).when(linkData(user, 'invitation.one')).thenNothing();
      given(created)
        .when(linkData(user, `user.${user}`))
        .thenNothing();
      expect(stateAfter(created, linked('invitation.one'), linked('invitation.two'))).toMatchObject({ holders: ['invitation.one', 'invitation.two'] });
    });

    it('is known also once they are deleted, since they may be erased then', () => {
      given(created, deleted).when(linkData(user, 'invitation.one')).then(linked('invitation.one'));
      expect(stateAfter(created, linked('invitation.one'), deleted, linked('invitation.two'))).toEqual({
        object: 'deleted_user',
        id: user,
        holders: ['invitation.one', 'invitation.two'],
      });
    });

    it('is of nobody who never was', () => given().when(linkData(user, 'invitation.one')).thenRefused('entity_not_found'));
  });

  describe('who is erased', () => {
    const linked: UserEvent = { type: 'user.data_linked', data: { holder: 'invitation.one' } };
    const erased = (...holders: readonly string[]): UserEvent => ({ type: 'user.erased', data: { holders } });
    const own = `user.${user}`;

    it('ends with it, and everything that is theirs is named', () => {
      given(created).when(eraseUser(user)).then(erased(own), deleted);
      given(created, linked).when(eraseUser(user)).then(erased(own, 'invitation.one'), deleted);
    });

    it('ends with what nobody has linked to it, once', () => {
      given(created, linked)
        .when(eraseUser(user, ['address.one', 'invitation.one']))
        .then(erased(own, 'invitation.one', 'address.one'), deleted);
      given(created, erased(own, 'address.one'), deleted)
        .when(eraseUser(user, ['address.one', 'address.two']))
        .then(erased('address.two'));
    });

    it('may be deleted already', () => given(created, linked, deleted).when(eraseUser(user)).then(erased(own, 'invitation.one')));
    it('is erased once', () => given(created, erased(own), deleted).when(eraseUser(user)).thenNothing());
    it('has to have been there', () => given().when(eraseUser(user)).thenRefused('entity_not_found'));

    it('is erased of what is learned of them later, too', () => {
      const all = [created, erased(own), deleted] as const;
      given(...all)
        .when(linkData(user, 'invitation.one'))
        .then(linked, erased('invitation.one'));
      given(...all, linked, erased('invitation.one'))
        .when(eraseUser(user))
        .thenNothing();
      given(...all, linked, erased('invitation.one'))
        .when(linkData(user, 'invitation.one'))
        .thenNothing();
    });

    it('holds nothing, and their end shows nothing of them', () => {
      const before = stateAfter(created, passwordSet, updated({ external_id: 'one', name: 'Ada', locale: 'en', metadata: { a: '1' } }), erased(own));
      expect(userDecider.claims!(before)).toEqual([]);
      const { payload, names } = userDecider.toPublicEvent(deleted, before, stateAfter(created, erased(own), deleted))!;
      expect([payload, names]).toEqual([
        {
          object: 'user',
          id: user,
          ...{ email: null, first_name: null, last_name: null, name: null, profile_picture_url: null, external_id: null, metadata: null },
          ...{ email_verified: false, last_sign_in_at: null, locale: null, created_at: now, updated_at: now },
        },
        ['user.deleted'],
      ]);
    });
  });

  it('is created with its email as it was given', () => given().when(create()).then(created));

  it('is created with all that it may have', () => {
    const all = { email_verified: true, first_name: 'Ada', last_name: 'King', name: 'Ada King', external_id: 'one', metadata: { a: '1' } };
    given()
      .when(create({ ...all, metadata: { a: '1', b: null } }))
      .then({ type: 'user.created', data: { id: user, ...fields, ...all } });
  });

  it('is created once, however often it is asked for', () => given(created).when(create()).thenNothing());
  it('is not created anew by a command that is repeated after its deletion', () => given(created, deleted).when(create()).thenRefused('entity_not_found'));
  it('is not created with metadata beyond its limits', () =>
    given()
      .when(create({ metadata: { a: 'ü' } }))
      .thenRefused('invalid_metadata'));

  it('changes only what is given', () =>
    given(created)
      .when(update({ first_name: 'Ada', locale: 'en' }))
      .then(updated({ first_name: 'Ada', locale: 'en' })));
  it('ignores what it has already', () =>
    given(created)
      .when(update({ email: fields.email, email_verified: false, name: null, metadata: {} }))
      .thenNothing());
  it('clears what is null', () =>
    given(created, updated({ name: 'Ada', locale: 'en' }))
      .when(update({ name: null, locale: null }))
      .then(updated({ name: null, locale: null })));
  it('merges metadata', () =>
    given(created, updated({ metadata: { a: '1', b: '2' } }))
      .when(update({ metadata: { a: null, c: '3' } }))
      .then(updated({ metadata: { b: '2', c: '3' } })));
  it('drops all metadata', () =>
    given(created, updated({ metadata: { a: '1' } }))
      .when(update({ metadata: {} }))
      .then(updated({ metadata: {} })));

  describe('whose email is verified', () => {
    const verified = updated({ email_verified: true });
    it('has to verify another one', () =>
      given(created, verified)
        .when(update({ email: 'ada@beta.test' }))
        .then(updated({ email: 'ada@beta.test', email_verified: false })));
    it('need not verify the same in upper case', () =>
      given(created, verified)
        .when(update({ email: 'ADA@ACME.TEST' }))
        .then(updated({ email: 'ADA@ACME.TEST' })));
    it('need not verify another one that its owner has verified', () =>
      given(created, verified)
        .when(update({ email: 'ada@beta.test', email_verified: true }))
        .then(updated({ email: 'ada@beta.test' })));
  });

  describe('whose address is proven', () => {
    const session = 'session_01KF0000000000000000000009';
    const proof = { email: fields.email, by: session, hasPassword: false };
    const verified = updated({ email_verified: true });
    const proven = updated({ email_verified: true, credentials_removed_by: session });
    const reset = { id: 'password_reset_1', email: fields.email, expires_at: now, created_at: now };

    it('by somebody who did not show the password loses what was set before', () => {
      given(created, passwordSet).when(verifyEmail(user, proof)).then(proven);
      expect(stateAfter(created, passwordSet, proven)).toMatchObject({
        ...{ email_verified: true, password_id: null, credentials_removed: { by: session, at: now } },
      });
    });
    it('by somebody who showed it as well keeps it', () => {
      given(created, passwordSet)
        .when(verifyEmail(user, { ...proof, hasPassword: true }))
        .then(verified);
      expect(stateAfter(created, passwordSet, verified)).toMatchObject({ email_verified: true, password_id: id('password') });
    });
    it('by a reset has the password of the reset, and nothing else of before', () => {
      const resets = [
        updated({ email_verified: true, credentials_removed_by: reset.id }),
        passwordSet,
        { type: 'password_reset.succeeded', data: reset },
      ] as const;
      given(created)
        .when(resetPassword(user, reset, password))
        .then(...resets);
      expect(stateAfter(created, ...resets)).toMatchObject({ password_id: id('password'), credentials_removed: { by: reset.id } });
    });
    it('once loses nothing when it is proven again', () => {
      given(created, passwordSet, verified).when(verifyEmail(user, proof)).thenNothing();
      given(created, passwordSet, verified)
        .when(resetPassword(user, reset, password), elsewhere)
        .thenMatching(updated({}), {}, {});
    });
    it('and is another one by then is not proven by it', () =>
      given(created, updated({ email: 'ada@beta.test' }))
        .when(verifyEmail(user, proof))
        .thenNothing());
    it('is proven anew where it is another one, whoever set the password meanwhile', () =>
      given(created, verified, passwordSet, updated({ email: 'ada@beta.test', email_verified: false }))
        .when(verifyEmail(user, { ...proof, email: 'ada@beta.test' }))
        .then(proven));

    it('is signed in no more where that was before, but for the session that it was proven with', () => {
      const [unproven, state] = [stateAfter(created) as StoredUser, stateAfter(created, proven) as StoredUser];
      expect([unproven, state].map(credentialsVersionOf)).toEqual([0, 2]);
      // A clock that is ahead, and one that is behind.
      for (const began_at of ['2020-01-01T00:00:00.000Z', now, '2030-01-01T00:00:00.000Z']) {
        const over = (known_version: number, which = 'session_other') => outdatedBy(state, { id: which, began_at, known_version });
        expect([over(0), over(1), over(2), over(0, session)]).toEqual(['credentials_removed', 'credentials_removed', null, null]);
        expect(outdatedBy(stateAfter(created, verified) as StoredUser, { id: 'session_other', began_at, known_version: 0 })).toBeNull();
      }
    });
    it('is signed in no more with what began before a reset, by whichever it was proven', () => {
      const state = stateAfter(created, proven, { type: 'password_reset.succeeded', data: reset }) as StoredUser;
      expect(credentialsVersionOf(state)).toBe(3);
      const over = (known_version: number, id: string) => outdatedBy(state, { id, began_at: now, known_version });
      expect([over(2, session), over(2, 'session_other'), over(3, 'session_other')]).toEqual(['password_reset', 'password_reset', null]);
    });
    it('goes by time with what was recorded before versions were', () => {
      const state = stateAfter(created, proven) as StoredUser;
      const before = new Date(Date.parse(now) - 1).toISOString();
      const after = new Date(Date.parse(now) + 1).toISOString();
      const over = (began_at: string, which = 'session_other') => outdatedBy(state, { id: which, began_at, known_version: undefined });
      expect([over(before), over(now), over(after)]).toEqual(['credentials_removed', 'credentials_removed', null]);
      expect([over(before, session), over(now, session)]).toEqual([null, null]);
    });
    it('is not reset with a token of before the last reset, whichever is confirmed first', () => {
      const late = { type: 'password_reset.succeeded', data: { ...reset, id: 'password_reset_2' } } as const;
      const decided = (credentials_version: number) => given(created, late).when(resetPassword(user, { ...reset, credentials_version }, password), elsewhere);
      decided(0).thenRefused('entity_not_found');
      decided(2).thenMatching({}, {}, { type: 'password_reset.succeeded', data: reset });
      // Recorded before versions were, it goes by its time.
      given(created, late)
        .when(resetPassword(user, { ...reset, created_at: '2026-01-15T11:58:00.000Z' }, password), elsewhere)
        .thenRefused('entity_not_found');
    });
    it('shows nothing else of it', () => {
      const state = stateAfter(created, passwordSet, proven);
      expect(userDecider.toPublicEvent(proven, state, state)).toEqual({
        payload: {
          object: 'user',
          ...fields,
          id: user,
          email_verified: true,
          ...{ profile_picture_url: null, last_sign_in_at: null, locale: null },
          ...{ created_at: now, updated_at: now },
        },
        names: ['user.updated'],
      });
    });
  });

  describe('with a password', () => {
    it('has it recorded after its creation', () => given().when(createUser(fields, password)).then(created, passwordSet));
    it('changes it, and tells so as any change', () =>
      given(created)
        .when(updateUser(user, {}, password))
        .then(passwordSet, updated({})));
    it('changes it once for a command that is repeated, whatever its hash is then', () =>
      given(created, passwordSet)
        .when(updateUser(user, {}, { ...password, hash: '$2b$12$another' }))
        .thenNothing());
    it('changes it again for another command', () =>
      given(created, passwordSet)
        .when(updateUser(user, {}, password), elsewhere)
        .thenMatching({ type: 'user.password_set', data: { password_id: 'password_01HZZZZZZZZZZZZZZZZZZZZZZ1' } }, updated({})));

    it('shows it in no state and in nothing that is announced', () => {
      const before = stateAfter(created);
      const after = stateAfter(created, passwordSet, updated({}));
      expect(JSON.stringify(after)).not.toContain('$2b$');
      expect(userDecider.toPublicEvent(passwordSet, before, after)).toBeNull();
      for (const event of [updated({}), deleted]) {
        const payload = userDecider.toPublicEvent(event, after, after)?.payload;
        expect(payload).toMatchObject({ object: 'user', id: user, email: 'Ada@Acme.test' });
        expect(payload).not.toHaveProperty('password_id');
      }
    });
  });

  it('is deleted', () => given(created).when(deleteUser(user)).then(deleted));
  it('is deleted once', () => given(created, deleted).when(deleteUser(user)).thenNothing());
  it('is dead after that', () =>
    given(created, deleted)
      .when(update({ name: 'Ada' }))
      .thenRefused('entity_not_found'));
  it('can be neither changed nor deleted before it exists', () => {
    given()
      .when(updateUser(other, {}, null))
      .thenRefused('entity_not_found');
    given().when(deleteUser(other)).thenRefused('entity_not_found');
  });

  it('holds its email, in lower case, and its external id, while it lives', () => {
    expect(claimsOf(created)).toEqual([['user.email', 'ada@acme.test']]);
    expect(claimsOf(created, updated({ external_id: 'One' }))).toEqual([
      ['user.email', 'ada@acme.test'],
      ['user.external_id', 'One'],
    ]);
    expect(claimsOf(created, updated({ email: 'BETA@acme.test' }))).toEqual([['user.email', 'beta@acme.test']]);
    expect(claimsOf(created, deleted)).toEqual([]);
  });

  it('holds its email in the former spelling too, where it was another one', () => {
    expect(claimsOf(created, updated({ email: 'Straße@acme.test' }))).toEqual([
      ['user.email', 'strasse@acme.test'],
      ['user.email', 'straße@acme.test'],
    ]);
    expect(claimsOf(created, updated({ email: 'ｆull@acme.test' }))).toEqual([
      ['user.email', 'full@acme.test'],
      ['user.email', 'ｆull@acme.test'],
    ]);
  });

  it('holds nothing once the person was erased, of whom the log says nothing any more', () => {
    const erased = { ...fields, email: null, external_id: null, metadata: null } as unknown as typeof fields;
    expect(claimsOf({ ...created, data: { ...created.data, ...erased } })).toEqual([]);
  });

  it('has the same email however an accent is written', () =>
    expect(claimsOf(created, updated({ email: 'É@a.test' }))).toEqual(claimsOf(created, updated({ email: 'e\u0301@A.test' }))));
});
