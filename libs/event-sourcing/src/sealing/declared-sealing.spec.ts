import type { Fact, Sealed } from '../deciding/decider.ts';
import { requireDeclared, requirePersonalDeclared, sealedPartsOf } from './declared-sealing.ts';

type Met = Fact<'thing.met', { readonly who: string }> | Fact<'thing.left', object>;

const sealed: Sealed<number, Met> = {
  'thing.met': [
    { of: ({ data }) => `user.${data.who}`, fields: ['name'] },
    { of: ({ at }, { key, after }) => `organization.${key}.${at.slice(0, 7)}.${after}`, fields: ['notes.*.text'] },
  ],
  'thing.left': null,
};

describe('what a decider declares', () => {
  it('says whose a fact is, from the fact, its time, its stream and the state after it', () => {
    const about = { key: 'org_1', before: 1, after: 2 };
    expect(sealedPartsOf(sealed, { type: 'thing.met', data: { who: 'user_1' }, at: '2026-11-22T00:00:00.000Z' }, about)).toEqual([
      { of: 'user.user_1', fields: ['data.name', 'subject.name'] },
      { of: 'organization.org_1.2026-11.2', fields: ['data.notes.*.text', 'subject.notes.*.text'] },
    ]);
    expect(sealedPartsOf(sealed, { type: 'thing.left', data: {}, at: '' }, about)).toEqual([]);
  });

  it('has to know every type of its events', () => {
    // @ts-expect-error -- a type is forgotten
    const forgetful: Sealed<number, Met> = { 'thing.met': null };
    expect(Object.keys(forgetful)).toHaveLength(1);
  });

  const all = ['email', 'first_name', 'last_name', 'name', 'profile_picture_url', 'external_id', 'metadata'];

  it('has to have all that the announced class marks as personal', () => {
    requireDeclared([{ category: 'user', sealed: { 'user.created': [{ fields: all }], 'user.private': null } }]);
    requireDeclared([{ category: 'user', sealed: { 'user.created': [{ fields: all.slice(0, 3) }, { fields: all.slice(3) }] } }]);
    expect(() => requireDeclared([{ category: 'user', sealed: { 'user.created': [{ fields: all.slice(1) }] } }])).toThrow(
      'The decider of user does not declare whose email of user.created are, which EventUser marks as personal.',
    );
    expect(() => requireDeclared([{ category: 'user', sealed: { 'user.deleted': null } }])).toThrow('first_name');
  });

  it('makes views say what of their rows is personal that fold what is sealed, and be it nothing', () => {
    const deciders = [{ category: 'thing', sealed }];
    const personal = { holders: () => [], columns: () => [] };
    requirePersonalDeclared([{ name: 'things', handles: ['thing.met', 'thing.left'], personal }], deciders);
    requirePersonalDeclared([{ name: 'things', handles: ['thing.met'], personal: null }], deciders);
    requirePersonalDeclared([{ name: 'ends', handles: ['thing.left'] }], deciders);
    expect(() => requirePersonalDeclared([{ name: 'things', handles: ['thing.met', 'thing.left'] }], deciders)).toThrow(
      'The view things folds thing.met, of which something is sealed, and does not declare what of its rows is personal.',
    );
  });
});
