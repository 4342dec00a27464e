import '../all.ts';
import { eventDataOf, type PublicEventName } from '../events.ts';
import { objectSchema } from '../json-schema.ts';
import type { Class } from '../operation.ts';
import { serialiserOf } from '../serialiser.ts';
import { DirectoryGroup } from './directory-group.ts';
import { DirectoryUser } from './directory-user.ts';
import { Directory } from './directory.ts';

/** Clients in typed languages throw where one of these is missing, or of another type; every answer of a spec is held to the document. */
const ALWAYS: readonly (readonly [type: Class, fields: Readonly<Record<string, unknown>>])[] = [
  [
    DirectoryUser,
    {
      ...{ id: 'string', directory_id: 'string', organization_id: 'string', idp_id: 'string', state: 'string', created_at: 'string', updated_at: 'string' },
      ...{ raw_attributes: 'object', custom_attributes: 'object', groups: 'array', emails: 'array' },
      ...{ email: ['string', 'null'], first_name: ['string', 'null'], last_name: ['string', 'null'], name: ['string', 'null'] },
    },
  ],
  [DirectoryGroup, { id: 'string', directory_id: 'string', organization_id: 'string', idp_id: 'string', name: 'string', raw_attributes: 'object' }],
  [Directory, { id: 'string', organization_id: 'string', external_key: 'string', type: 'string', state: 'string', name: 'string' }],
];

describe.each(ALWAYS.map(([type, fields]) => [type.name, type, fields] as const))('%s', (_, type, fields) => {
  const { required = [], properties } = objectSchema(type, 'answer') as {
    readonly required?: readonly string[];
    readonly properties: Readonly<Record<string, { readonly type?: unknown; readonly const?: unknown }>>;
  };

  it.each(Object.entries(fields))('always has %s', (name, expected) => {
    expect(required).toContain(name);
    expect(properties[name]!.type).toEqual(expected);
  });
});

it.each(['dsync.user.created', 'dsync.user.updated', 'dsync.user.deleted', 'dsync.group.user_added'] satisfies readonly PublicEventName[])(
  'a person who was erased has all of it in %s, and nothing in it',
  (name) => {
    const gone = { idp_id: null, email: null, name: null, emails: null, custom_attributes: null, raw_attributes: null, previous_attributes: null };
    const user = { object: 'directory_user', id: 'directory_user_1', state: 'active', ...gone };
    const { user: member, ...shown } = JSON.parse(serialiserOf(eventDataOf(name)!)({ ...user, user }));
    expect(member ?? shown).toMatchObject({ idp_id: '', email: null, emails: [], custom_attributes: {}, raw_attributes: {} });
  },
);
