import type { DirectoryAttribute } from '#libs/contracts/src/directories/directory';
import { ownSchema, SCHEMAS, type ScimAttribute } from '../domain/scim-schema.decider.ts';
import { ENTERPRISE_SCHEMA, GROUP_SCHEMA, OWN_SCHEMA, USER_SCHEMA, type Attributes } from '../domain/scim-values.decider.ts';

const CORE = 'urn:ietf:params:scim:schemas:core:2.0';
const LIST_RESPONSE = 'urn:ietf:params:scim:api:messages:2.0:ListResponse';
/** Resources of one page. */
export const MAX_RESULTS = 200;

/** What a provider is told of the server (RFC 7643, section 5). */
export function serviceProviderConfig(base: string): Attributes {
  const unsupported = { supported: false };
  return {
    schemas: [`${CORE}:ServiceProviderConfig`],
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: MAX_RESULTS },
    changePassword: unsupported,
    sort: unsupported,
    etag: { supported: true },
    pagination: { cursor: false, index: true, maxPageSize: MAX_RESULTS },
    authenticationSchemes: [
      { type: 'oauthbearertoken', name: 'Token of the directory', description: 'A token of this directory, as a bearer token.', primary: true },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
  };
}

/** `mapping`: what of a person becomes custom attributes. */
export function resourceTypes(base: string, mapping: readonly DirectoryAttribute[]): readonly Attributes[] {
  const type = (name: 'User' | 'Group', schema: string, description: string, extensions: readonly string[]): Attributes => ({
    schemas: [`${CORE}:ResourceType`],
    id: name,
    name,
    description,
    endpoint: `/${name}s`,
    schema,
    ...(extensions.length > 0 && { schemaExtensions: extensions.map((extension) => ({ schema: extension, required: false })) }),
    meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${name}` },
  });
  const extensions = [ENTERPRISE_SCHEMA, ...(mapping.length === 0 ? [] : [OWN_SCHEMA])];
  return [type('User', USER_SCHEMA, 'A person.', extensions), type('Group', GROUP_SCHEMA, 'A group of people.', [])];
}

export function schemas(base: string, mapping: readonly DirectoryAttribute[]): readonly Attributes[] {
  return [...SCHEMAS, ...ownSchema(mapping)].map(({ id, name, description, attributes }) => ({
    schemas: [`${CORE}:Schema`],
    id,
    name,
    description,
    attributes: attributes.map(described),
    meta: { resourceType: 'Schema', location: `${base}/Schemas/${id}` },
  }));
}

/** With all that is usual said as well: clients read it. */
function described(attribute: ScimAttribute): Attributes {
  const { subAttributes, canonicalValues, referenceTypes, ...own } = attribute;
  const usual = { multiValued: false, required: false, mutability: 'readWrite', returned: 'default' };
  const ofText = attribute.type === 'complex' || attribute.type === 'boolean' ? {} : { caseExact: attribute.type !== 'string', uniqueness: 'none' };
  return {
    ...usual,
    ...ofText,
    ...own,
    ...(canonicalValues && { canonicalValues }),
    ...(referenceTypes && { referenceTypes }),
    ...(subAttributes && { subAttributes: subAttributes.map(described) }),
  };
}

export function listOf(resources: readonly Attributes[], totalResults: number, startIndex: number): Attributes {
  return { schemas: [LIST_RESPONSE], totalResults, startIndex, itemsPerPage: resources.length, Resources: resources };
}
