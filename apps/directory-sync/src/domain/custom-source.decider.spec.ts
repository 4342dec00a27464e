import { canBePicked } from './custom-source.decider.ts';
import { DEFAULT_ATTRIBUTES } from './directory-user.decider.ts';
import { ENTERPRISE_SCHEMA, OWN_SCHEMA, USER_SCHEMA } from './scim-values.decider.ts';

const OTHER = 'urn:acme:params:scim:schemas:extension:2.0:User';

it.each([
  ...DEFAULT_ATTRIBUTES.map(({ source }) => source),
  ...['title', 'TITLE', 'name', 'name.givenName', 'emails.value', 'addresses.locality', 'externalId', 'schemas', 'active'],
  ...['shoe_size', 'shoe size', 'shoe.size.eu', 'shoe[eu]', `${USER_SCHEMA}:title`, `${ENTERPRISE_SCHEMA}:vehicle`, ENTERPRISE_SCHEMA, `${OTHER}:shoe.size`],
])('a custom attribute may be from %s', (source) => expect(canBePicked(source)).toBe(true));

it.each([
  ...['name.given', 'title.long', 'emails.value.domain', 'name..givenName', '.title', 'title.', 'emails[type eq "work"].value', 'active.value'],
  ...['password', 'Password', 'id', 'meta.version', 'groups', `${USER_SCHEMA}:password`, `${USER_SCHEMA}:name.first`],
  ...[`${ENTERPRISE_SCHEMA}:manager.name`, `${ENTERPRISE_SCHEMA}:department.name`, `${OWN_SCHEMA}:customAttributes`],
])('nothing stands at %s', (source) => expect(canBePicked(source)).toBe(false));
