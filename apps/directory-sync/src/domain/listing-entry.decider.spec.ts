import { entryOfJson, groupNamed, ListingFault, userOf } from './listing-entry.decider.ts';

const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';

it.each([
  ['the address where there is no user name', { email: 'a@acme.test' }, 'a@acme.test'],
  ['the id where there is neither', { email: ' ' }, 'a'],
  ['what it is given', { email: 'a@acme.test', username: 'Ada' }, 'Ada'],
])('a person has %s', (_, fields, userName) => {
  expect(userOf({ id: 'a', ...fields }).attributes).toMatchObject({ externalId: 'a', userName, active: true });
});

it.each([
  ['active', true],
  ['inactive', false],
  ['suspended', false],
  [null, true],
])('a state of %s', (state, active) => expect(userOf({ id: 'a', state }).attributes['active']).toBe(active));

it('stands where SCIM has it, and what SCIM does not know stays as it is', () => {
  const { attributes, groups } = userOf({ id: 'a', job_title: 'Dr', department: 'R', manager_id: 'b', shoe: 39, groups: ['x', 'x', 'y'] });
  expect(attributes).toMatchObject({ title: 'Dr', [ENTERPRISE]: { department: 'R', manager: { value: 'b' } }, shoe: 39 });
  expect(groups).toEqual(['x', 'y']);
  expect(groupNamed('x')).toMatchObject({ type: 'group', key: 'x', attributes: { displayName: 'x', externalId: 'x' }, members: [] });
});

it('has what is said by the name of the schema, and by the names of a listing', () => {
  const { attributes } = userOf({ id: 'a', [ENTERPRISE]: { department: 'R', employeeNumber: '7' }, department: 'S' });
  expect(attributes[ENTERPRISE]).toEqual({ department: 'S', employeeNumber: '7' });
});

it.each([
  ['no object', []],
  ['no type', { id: 'a' }],
  ['no id', { type: 'user', id: ' ' }],
  ['a state that there is not', { type: 'user', id: 'a', state: 'gone' }],
  ['a name that is no text', { type: 'user', id: 'a', first_name: 7 }],
  ['a password', { type: 'user', id: 'a', Password: 'secret' }],
  ['a state in another spelling', { type: 'user', id: 'a', State: 'inactive' }],
  ['groups beside the lines of groups', { type: 'user', id: 'a', groups: ['G'] }],
  ['attributes of a schema that are none', { type: 'user', id: 'a', [ENTERPRISE]: 'R' }],
  ['what a copy would inherit from', { type: 'user', id: 'a', ['__proto__']: { active: true } }],
  ['the same in a schema', { type: 'user', id: 'a', [ENTERPRISE]: { ['__proto__']: { department: 'R' } } }],
  ['half a character', { type: 'user', id: 'a', first_name: '\ud800' }],
  ['a group without a name', { type: 'group', id: 'a' }],
  ['members that are no texts', { type: 'group', id: 'a', name: 'a', members: [7] }],
])('a line with %s is a fault, whose words hold nothing of it', (_, line) => {
  const read = (): unknown => entryOfJson(line);
  expect(read).toThrow(ListingFault);
  expect(read).not.toThrow('secret');
});
