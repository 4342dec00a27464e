import type { DirectoryAttribute } from '#libs/contracts/src/directories/directory';
import { CUSTOM_ATTRIBUTES, ENTERPRISE_SCHEMA, GROUP_SCHEMA, OWN_SCHEMA, USER_SCHEMA } from './scim-values.decider.ts';

/** An attribute as RFC 7643, section 7 describes it; what is absent has the value that is usual there. */
export interface ScimAttribute {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'reference' | 'complex' | 'binary';
  readonly description: string;
  readonly multiValued?: true;
  readonly required?: true;
  readonly caseExact?: true;
  readonly mutability?: 'readOnly' | 'writeOnly' | 'immutable';
  readonly returned?: 'never' | 'request';
  readonly uniqueness?: 'server';
  readonly canonicalValues?: readonly string[];
  readonly referenceTypes?: readonly string[];
  readonly subAttributes?: readonly ScimAttribute[];
}

export interface ScimSchema {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly attributes: readonly ScimAttribute[];
}

const text = (name: string, description: string, more: Partial<ScimAttribute> = {}): ScimAttribute => ({ name, type: 'string', description, ...more });
const several = (name: string, description: string, types: readonly string[], value: Partial<ScimAttribute> = {}): ScimAttribute => ({
  name,
  type: 'complex',
  description,
  multiValued: true,
  subAttributes: [
    text('value', 'The value itself.', value),
    text('display', 'Shown to people.'),
    text('type', 'What it is for.', types.length === 0 ? {} : { canonicalValues: types }),
    { name: 'primary', type: 'boolean', description: 'Whether it is the one to use; true for at most one.' },
  ],
});

const PLACES = ['work', 'home', 'other'];

export const SCHEMAS: readonly ScimSchema[] = [
  {
    id: USER_SCHEMA,
    name: 'User',
    description: 'A person.',
    attributes: [
      text('userName', 'By what the person signs in at the provider; unique in the directory, whatever its case.', { required: true, uniqueness: 'server' }),
      {
        name: 'name',
        type: 'complex',
        description: 'The parts of the name.',
        subAttributes: [
          text('formatted', 'The whole name.'),
          text('familyName', 'Last name.'),
          text('givenName', 'First name.'),
          text('middleName', 'Middle names.'),
          text('honorificPrefix', 'What stands before the name.'),
          text('honorificSuffix', 'What stands behind the name.'),
        ],
      },
      text('displayName', 'The name that people are shown.'),
      text('nickName', 'How the person is called.'),
      { name: 'profileUrl', type: 'reference', description: 'A page about the person.', referenceTypes: ['external'] },
      text('title', 'The job title.'),
      text('userType', 'The relation to the company.'),
      text('preferredLanguage', 'Language, as `Accept-Language` has it.'),
      text('locale', 'How times and amounts are shown.'),
      text('timezone', 'Time zone of the database of IANA.'),
      { name: 'active', type: 'boolean', description: 'Whether the person may work.' },
      text('password', 'Accepted, and kept nowhere.', { mutability: 'writeOnly', returned: 'never' }),
      several('emails', 'Addresses of mail.', PLACES),
      several('phoneNumbers', 'Numbers of telephones.', [...PLACES, 'mobile', 'fax', 'pager']),
      several('ims', 'Addresses of instant messages.', []),
      several('photos', 'Pictures.', ['photo', 'thumbnail'], { type: 'reference', referenceTypes: ['external'] }),
      {
        name: 'addresses',
        type: 'complex',
        multiValued: true,
        description: 'Postal addresses.',
        subAttributes: [
          text('formatted', 'The whole address.'),
          text('streetAddress', 'Street and number.'),
          text('locality', 'City.'),
          text('region', 'State or region.'),
          text('postalCode', 'Postal code.'),
          text('country', 'Country.'),
          text('type', 'What it is for.', { canonicalValues: PLACES }),
          { name: 'primary', type: 'boolean', description: 'Whether it is the one to use; true for at most one.' },
        ],
      },
      {
        name: 'groups',
        type: 'complex',
        multiValued: true,
        mutability: 'readOnly',
        returned: 'request',
        description: 'The groups that the person is in, where `attributes` asks for them; they change with the groups.',
        subAttributes: [
          text('value', 'The id of the group.', { mutability: 'readOnly' }),
          { name: '$ref', type: 'reference', description: 'The group.', referenceTypes: ['Group'], mutability: 'readOnly' },
          text('display', 'The name of the group.', { mutability: 'readOnly' }),
        ],
      },
      several('entitlements', 'What the person may do.', []),
      several('roles', 'What the person is.', []),
      several('x509Certificates', 'Certificates.', [], { type: 'binary', caseExact: true }),
    ],
  },
  {
    id: ENTERPRISE_SCHEMA,
    name: 'Enterprise User',
    description: 'What companies know of a person.',
    attributes: [
      text('employeeNumber', 'What the company counts the person by.'),
      text('costCenter', 'Cost center.'),
      text('organization', 'Organization.'),
      text('division', 'Division.'),
      text('department', 'Department.'),
      {
        name: 'manager',
        type: 'complex',
        description: 'The manager of the person.',
        subAttributes: [
          text('value', 'The id of the manager.', { caseExact: true }),
          { name: '$ref', type: 'reference', description: 'The manager.', referenceTypes: ['User'] },
          text('displayName', 'The name of the manager.'),
        ],
      },
    ],
  },
  {
    id: GROUP_SCHEMA,
    name: 'Group',
    description: 'A group of people.',
    attributes: [
      text('displayName', 'The name that people are shown; unique in the directory, whatever its case.', { required: true, uniqueness: 'server' }),
      {
        name: 'members',
        type: 'complex',
        multiValued: true,
        description: 'The people in the group.',
        subAttributes: [
          text('value', 'The id of the person.', { mutability: 'immutable', caseExact: true }),
          { name: '$ref', type: 'reference', description: 'The person.', referenceTypes: ['User'], mutability: 'immutable' },
          text('type', 'Always `User`.', { canonicalValues: ['User'], mutability: 'immutable' }),
        ],
      },
    ],
  },
];

/** What the settings of a directory pick, as whoever set up the provider can see it: asked for by its name alone. Nothing where they pick nothing. */
export function ownSchema(mapping: readonly DirectoryAttribute[]): readonly ScimSchema[] {
  if (mapping.length === 0) return [];
  const picked = mapping.map(({ name, source }) => text(name, `From ${source}.`, { mutability: 'readOnly', returned: 'request' }));
  const custom: ScimAttribute = {
    name: CUSTOM_ATTRIBUTES,
    type: 'complex',
    description: 'What the application is shown as custom attributes of the person.',
    mutability: 'readOnly',
    returned: 'request',
    subAttributes: picked,
  };
  return [{ id: OWN_SCHEMA, name: 'Gatehouse User', description: 'What becomes of a person here.', attributes: [custom] }];
}

/** What every resource has beside its schema: as Schemas do not list it. */
const COMMON: readonly ScimAttribute[] = [
  text('externalId', 'What the provider knows it by.', { caseExact: true }),
  text('id', 'What it is known by here.', { mutability: 'readOnly', caseExact: true }),
  { name: 'meta', type: 'complex', description: 'When it changed, and where it is.', mutability: 'readOnly' },
  text('schemas', 'The schemas that it has attributes of.', { multiValued: true }),
];

export type ResourceKind = 'User' | 'Group';

const known: Readonly<Record<ResourceKind, ReadonlyMap<string, ScimAttribute>>> = {
  User: byName([...SCHEMAS[0]!.attributes, ...COMMON]),
  Group: byName([...SCHEMAS[2]!.attributes, ...COMMON]),
};
const enterprise = byName(SCHEMAS[1]!.attributes);
const own = byName([{ name: CUSTOM_ATTRIBUTES, type: 'complex', description: '', mutability: 'readOnly' }]);

function byName(attributes: readonly ScimAttribute[]): ReadonlyMap<string, ScimAttribute> {
  return new Map(attributes.map((attribute) => [attribute.name.toLowerCase(), attribute]));
}

/** The attribute of this name, whatever its case: at the top, of an extension, or none that is known. */
export function attributeNamed(kind: ResourceKind, name: string, schema: string | null = null): ScimAttribute | null {
  if (schema === null) return known[kind].get(name.toLowerCase()) ?? null;
  if (kind !== 'User') return null;
  if (schema.toLowerCase() === OWN_SCHEMA.toLowerCase()) return own.get(name.toLowerCase()) ?? null;
  return schema.toLowerCase() === ENTERPRISE_SCHEMA.toLowerCase() ? (enterprise.get(name.toLowerCase()) ?? null) : null;
}

export function subAttributeNamed({ subAttributes = [] }: ScimAttribute, name: string): ScimAttribute | null {
  return subAttributes.find((each) => each.name.toLowerCase() === name.toLowerCase()) ?? null;
}
