import { memberOperation, membersAfter } from '../scim/member-changes.ts';
import { parsePatch } from '../scim/patch-request.ts';
import { shownTogether } from '../scim/search.ts';
import { ScimError } from './scim-domain-error.ts';
import { patched } from './scim-patch.decider.ts';
import { keptAttributes } from './scim-resource.decider.ts';
import { ENTERPRISE_SCHEMA } from './scim-values.decider.ts';

const user = {
  schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
  userName: 'ada@acme.test',
  name: { givenName: 'Ada', familyName: 'Lovelace' },
  emails: [{ value: 'ada@acme.test', type: 'work', primary: true }],
};
const after = (...Operations: readonly object[]) => {
  const { schemas: _, ...attributes } = keptAttributes('User', patched('User', user, parsePatch('User', { Operations })));
  return attributes;
};
const refused = (...operations: readonly object[]): string | null => {
  try {
    after(...operations);
    return null;
  } catch (error) {
    return error instanceof ScimError ? `${error.status} ${error.scimType}` : String(error);
  }
};

describe('a PATCH of a person', () => {
  it('leaves what it does not name', () => expect(after({ op: 'replace', value: { active: false } })).toEqual({ ...user, schemas: undefined, active: false }));

  it.each([
    ['a text for a truth value', { op: 'Replace', path: 'active', value: 'False' }, { active: false }],
    ['paths as keys', { op: 'Add', value: { 'name.givenName': 'Augusta' } }, { name: { givenName: 'Augusta', familyName: 'Lovelace' } }],
    [
      'an attribute of an extension as a key',
      { op: 'add', value: { [`${ENTERPRISE_SCHEMA}:employeeNumber`]: '7' } },
      { [ENTERPRISE_SCHEMA]: { employeeNumber: '7' } },
    ],
    ['an extension as an object', { op: 'add', value: { [ENTERPRISE_SCHEMA]: { department: 'R' } } }, { [ENTERPRISE_SCHEMA]: { department: 'R' } }],
    ['a manager as a text', { op: 'Replace', path: `${ENTERPRISE_SCHEMA}:manager`, value: 'm-1' }, { [ENTERPRISE_SCHEMA]: { manager: { value: 'm-1' } } }],
    ['any case of names', { op: 'REPLACE', path: 'NAME.GIVENNAME', value: 'A' }, { name: { givenName: 'A', familyName: 'Lovelace' } }],
    [
      'parts of a name, and leaves the others',
      { op: 'replace', path: 'name', value: { givenName: 'A' } },
      { name: { givenName: 'A', familyName: 'Lovelace' } },
    ],
    ['the name of the own schema', { op: 'replace', path: 'urn:ietf:params:scim:schemas:core:2.0:User:title', value: 'Dr' }, { title: 'Dr' }],
    ['what is read-only in an object, by leaving it', { op: 'replace', value: { id: 'x', meta: {}, title: 'Dr' } }, { title: 'Dr' }],
  ])('takes %s', (_, operation, expected) => expect(after(operation)).toMatchObject(expected));

  it.each(['Add', 'Replace'])('makes the item that a filter names where there is none (%s)', (op) =>
    expect(after({ op, path: 'emails[type eq "home"].value', value: 'ada@home.test' })['emails']).toEqual([
      ...user.emails,
      { type: 'home', value: 'ada@home.test' },
    ]),
  );

  it('reads "True" as true in a filter', () =>
    expect(after({ op: 'replace', path: 'emails[primary eq "True"].value', value: 'new@acme.test' })['emails']).toEqual([
      { ...user.emails[0], value: 'new@acme.test' },
    ]));

  it('has one primary item, that which was changed last', () =>
    expect(after({ op: 'add', path: 'emails', value: [{ value: 'b@acme.test', primary: true }] })['emails']).toEqual([
      { ...user.emails[0], primary: false },
      { value: 'b@acme.test', primary: true },
    ]));

  it('removes what it names, and nothing else', () => {
    expect(after({ op: 'remove', path: 'name.givenName' })).toMatchObject({ name: { familyName: 'Lovelace' } });
    expect(after({ op: 'remove', path: 'emails[value eq "ada@acme.test"]' })).not.toHaveProperty('emails');
    expect(after({ op: 'remove', path: 'emails', value: [{ value: 'other@acme.test' }] })).toMatchObject({ emails: user.emails });
    expect(after({ op: 'remove', path: 'emails' })).not.toHaveProperty('emails');
    expect(after({ op: 'add', path: `${ENTERPRISE_SCHEMA}:manager`, value: 'm' }, { op: 'remove', path: `${ENTERPRISE_SCHEMA}:manager` })).not.toHaveProperty([
      ENTERPRISE_SCHEMA,
    ]);
  });

  it('adds nothing twice, and keeps no password', () => {
    expect(after({ op: 'add', path: 'emails', value: user.emails })).toEqual({ ...user, schemas: undefined });
    for (const operation of [
      { op: 'replace', path: 'password', value: 'secret' },
      { op: 'replace', value: { Password: 'secret' } },
    ])
      expect(JSON.stringify(after(operation))).not.toContain('secret');
  });

  it.each([
    ['an operation that there is not', { op: 'move', path: 'title' }, '400 invalidSyntax'],
    ['a removal of nothing', { op: 'remove' }, '400 noTarget'],
    ['an addition without a value', { op: 'add', path: 'title' }, '400 invalidSyntax'],
    ['a path to nowhere', { op: 'replace', path: 'favouriteColour', value: 'red' }, '400 invalidPath'],
    ['a path to no part', { op: 'replace', path: 'name.shoeSize', value: '39' }, '400 invalidPath'],
    ['a path that cannot be read', { op: 'replace', path: 'emails[type eq', value: 'x' }, '400 invalidPath'],
    ['a filter that cannot be read', { op: 'replace', path: 'emails[type is "work"].value', value: 'x' }, '400 invalidFilter'],
    ['a filter that makes no item', { op: 'replace', path: 'emails[type ne "work"].value', value: 'x' }, '400 noTarget'],
    ['a change of the id', { op: 'replace', path: 'id', value: 'x' }, '400 mutability'],
    ['no user name', { op: 'remove', path: 'userName' }, '400 invalidValue'],
    ['no truth value', { op: 'replace', path: 'active', value: 'perhaps' }, '400 invalidValue'],
    [
      'two primary items',
      {
        op: 'replace',
        path: 'emails',
        value: [
          { value: 'a', primary: true },
          { value: 'b', primary: true },
        ],
      },
      '400 invalidValue',
    ],
  ])('is refused with %s', (_, operation, expected) => expect(refused(operation)).toBe(expected));

  const deep = (depth: number): object => (depth === 0 ? {} : { a: [deep(depth - 1)] });
  it.each([
    ['too many attributes', [{ op: 'add', value: Object.fromEntries(Array.from({ length: 251 }, (_, index) => [`a${index}`, index])) }], 'invalidSyntax'],
    ['too many values', Array.from({ length: 5 }, () => ({ op: 'add', path: 'emails', value: Array(450).fill({}) })), 'invalidSyntax'],
    ['values too deep', Array.from({ length: 2 }, () => ({ op: 'add', path: 'emails', value: [deep(5_000)] })), 'invalidSyntax'],
    ['a list too long', [{ op: 'replace', path: 'emails', value: Array.from({ length: 501 }, (_, index) => `${index}`) }], 'invalidValue'],
    [
      'an object of too many names',
      [{ op: 'replace', path: 'name', value: Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`a${index}`, 1])) }],
      'invalidValue',
    ],
  ])('is refused with %s, since nobody else is answered while it is looked at', (_, operations, expected) =>
    expect(refused(...operations)).toBe(`400 ${expected}`),
  );
});

describe('a PATCH of members', () => {
  const people = new Set(Array.from({ length: 300_000 }, (_, index) => `directory_user_${index}`));
  const removal = (filter: string) => {
    const [operation] = parsePatch('Group', { Operations: [{ op: 'remove', path: `members[${filter}]` }] });
    return memberOperation(operation!);
  };

  it('looks at each of them where a filter says more than who', () => {
    const left = membersAfter(new Set(['directory_user_1', 'directory_user_2']), [removal('value ew "_1"')]);
    expect([...left]).toEqual(['directory_user_2']);
  });

  it('is refused where filters leave too many to be looked at', () => {
    const operation = removal('value sw "a" or value sw "b" or value sw "c" or value sw "d"');
    expect(() => membersAfter(people, [operation])).toThrow(expect.objectContaining({ scimType: 'tooMany' }));
    expect(
      membersAfter(
        people,
        Array.from({ length: 1_000 }, () => removal('value eq "x"')),
      ).size,
    ).toBe(people.size);
  });
});

describe('groups of one answer', () => {
  it('are no more than have so many members together, but one', async () => {
    const sizes = [3, 2, 4, 1];
    const show = async (size: number) => ({ members: Array(size).fill({}) });
    const shown = async (most: number) => (await shownTogether(sizes, show, most)).map(({ members }) => (members as readonly object[]).length);
    expect(await Promise.all([100, 5, 1].map(shown))).toEqual([sizes, [3, 2], [3]]);
    expect(await shownTogether([1, 2], async () => ({}), 0)).toHaveLength(2);
  });
});
