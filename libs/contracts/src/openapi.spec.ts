import { DocumentSchemas } from '#libs/testing/src/document-schemas';
import './all.ts';
import { ERRORS, type ErrorCode } from './errors.ts';
import { WEBHOOK_EVENT_NAMES } from './events.ts';
import { Integer, ListOf, Nested, Optional, Ref, Text } from './fields.ts';
import { created, isPublic, listOf, Operation, operations, Command } from './operation.ts';
import { openApiDocument, type OpenApiOperation } from './openapi.ts';
import { PageQuery } from './pages.ts';
import { Organization } from './organizations/organization.ts';

class Shelf {
  @Text({ doc: 'Its name.', max: 4 }) name!: string;
  @Optional() @ListOf(() => Shelf, { doc: 'Shelves on it.' }) shelves?: readonly Shelf[];
}

@Operation({
  post: '/shelves',
  owner: 'identity',
  summary: 'Build a shelf',
  answers: created(Shelf),
  refuses: ['domain_already_exists'],
  emits: ['organization.created'],
  limit: { requests: 3, perSeconds: 60 },
})
export class BuildShelf extends Command<Shelf> {
  @Nested(() => Shelf, { doc: 'What it looks like.', nullable: true }) plan!: Shelf | null;
  @Integer({ doc: 'How wide.', minimum: 1 }) width!: number;
  @Ref(() => Organization, { doc: 'Whose.' }) organization_id!: string;
}

@Operation({ get: '/rooms/{room}/shelves', owner: 'identity', summary: 'List shelves', answers: listOf(Shelf) })
export class ListShelves extends PageQuery<Shelf> {
  @Text({ doc: 'Whose.', pattern: /^[a-z]+$/ }) room!: string;
  @Optional() @ListOf({ text: {} }, { doc: 'Any of these.' }) names?: readonly string[];
}

const document = openApiDocument('1.2.3');
const operationsOf = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]): [string, string, OpenApiOperation] => [method, path, operation]),
);

/** Every object in the document, with its JSON pointer. */
function* walk(value: unknown, pointer = ''): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [pointer, value as Record<string, unknown>];
  for (const [key, inner] of Object.entries(value)) yield* walk(inner, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
}

function resolve(reference: string): unknown {
  return reference
    .slice(2)
    .split('/')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
}

const schemas = new DocumentSchemas(document, 'closed');

describe('the API document', () => {
  it('has an entry for every operation with a route', () => {
    expect(operationsOf).toHaveLength(operations().filter((operation) => operation.route !== null).length);
    expect(new Set(operationsOf.map(([, , operation]) => operation.operationId)).size).toBe(operationsOf.length);
    expect(document.info).toMatchObject({ title: 'Gatehouse', version: '1.2.3' });
  });

  it('is the same whenever it is made', () => {
    expect(JSON.stringify(openApiDocument('1.2.3'))).toBe(JSON.stringify(document));
    expect(Object.keys(document.paths)).toEqual(Object.keys(document.paths).sort());
    expect(Object.keys(document.components.schemas)).toEqual(Object.keys(document.components.schemas).sort());
  });

  it('refers to nothing that is not in it', () => {
    const references = [...walk(document)].flatMap(([, { $ref }]) => (typeof $ref === 'string' ? [$ref] : []));
    expect(references.length).toBeGreaterThan(10);
    for (const reference of references) expect([reference, typeof resolve(reference)]).toEqual([reference, 'object']);
  });

  it('declares every parameter of every path, and no path twice under other names', () => {
    for (const [, path, { parameters }] of operationsOf) {
      const declared = parameters.filter((parameter) => parameter['in'] === 'path').map((parameter) => parameter['name']);
      expect(declared).toEqual([...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]));
    }
    const shapes = Object.keys(document.paths).map((path) => path.replaceAll(/\{\w+\}/g, '{}'));
    expect(new Set(shapes).size).toBe(shapes.length);
  });

  it('has schemas that compile', () => {
    for (const schema of Object.values(document.components.schemas)) expect(() => schemas.compile(schema)).not.toThrow();
  });

  it('has examples that its schemas take', () => {
    let count = 0;
    const hold = (pointer: string, schema: unknown, example: unknown): void => {
      expect({ pointer, problems: schemas.problemsOf(schema, example) }).toEqual({ pointer, problems: [] });
      count++;
    };
    for (const [pointer, object] of walk(document)) {
      if (pointer.includes('/example')) continue;
      const schema = object['schema'];
      if (schema !== undefined && 'example' in object) hold(pointer, schema, object['example']);
      if (schema !== undefined && 'examples' in object)
        for (const { value } of Object.values(object['examples'] as Record<string, { value: unknown }>)) hold(pointer, schema, value);
      if (schema === undefined && Array.isArray(object['examples'])) for (const example of object['examples']) hold(pointer, object, example);
    }
    expect(count).toBeGreaterThan(30);
  });

  it('names every refusal of every operation under its status', () => {
    for (const operation of operations()) {
      const { name, options, route } = operation;
      if (route === null) continue;
      const { responses } = document.paths[route.path]![route.method]!;
      for (const code of [
        ...(options.refuses ?? []),
        ...(isPublic(operation) ? [] : ['unauthorized']),
        ...(options.isOAuth === true ? ['invalid_request', 'too_many_requests'] : ['invalid_request_parameters', 'rate_limit_exceeded']),
        'internal_error',
        'service_unavailable',
      ] as ErrorCode[])
        expect([name, code, JSON.stringify(responseAt(responses, ERRORS[code].status)).includes(`"${code}"`)]).toEqual([name, code, true]);
    }
  });

  it('shows an operation with all that there is to know', () => {
    const operation = document.paths['/shelves']!['post']!;
    expect(operation).toMatchObject({
      operationId: 'buildShelf',
      summary: 'Build a shelf',
      tags: ['Shelves'],
      description: 'Emits `organization.created`.\n\nAt most 3 requests per 60 seconds.',
    });
    expect(operation.parameters).toContainEqual({ $ref: '#/components/parameters/IdempotencyKey' });
    expect(operation['requestBody']).toEqual({
      required: true,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            properties: {
              plan: { oneOf: [{ $ref: '#/components/schemas/Shelf' }, { type: 'null' }], description: 'What it looks like.' },
              width: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'How wide.' },
              organization_id: { type: 'string', pattern: '^org_[0-7][0-9A-HJKMNP-TV-Z]{25}$', description: 'Whose.' },
            },
            required: ['plan', 'width', 'organization_id'],
          },
          example: { plan: null, width: 1, organization_id: 'org_01J0000000000000000000000A' },
        },
      },
    });
    expect(Object.keys(operation.responses)).toEqual(['201', '400', '401', '404', '408', '409', '413', '414', '422', '429', '431', '500', '503']);
    expect(operation.responses['201']).toMatchObject({ content: { 'application/json': { schema: { $ref: '#/components/schemas/Shelf' } } } });
  });

  it('asks for no key, and takes forms, where the environment is found by client id', () => {
    const found = operations().filter((operation) => operation.route !== null && isPublic(operation));
    expect(found.map(({ name }) => name)).toContain('GetTokenKeySet');
    for (const { route } of found) {
      const { security, responses, requestBody, parameters } = document.paths[route!.path]![route!.method]! as OpenApiOperation & {
        readonly requestBody?: { readonly content: object };
      };
      expect(security).toEqual([]);
      expect(responses['401']).toBeUndefined();
      expect(parameters).not.toContainEqual({ $ref: '#/components/parameters/IdempotencyKey' });
      if (requestBody !== undefined) expect(Object.keys(requestBody.content)).toEqual(['application/json', 'application/x-www-form-urlencoded']);
    }
  });

  it('says of a refusal that waits for a later part of the product what it comes with', () => {
    const { responses } = document.paths['/user_management/users/{id}']!['delete']!;
    expect(responses['409']!['description']).toBe(
      '`user_deletion_not_allowed`: The user cannot be deleted at the moment. Not answered yet: comes with a reason to keep users, of which there is none so far.',
    );
  });

  it('names what is not found where a path or a body does, and of filters only where they are refused', () => {
    expect(Object.keys(document.paths['/user_management/users']!['get']!.responses)).not.toContain('404');
    expect(Object.keys(document.paths['/user_management/organization_memberships']!['get']!.responses)).toContain('404');
    expect(Object.keys(document.paths['/user_management/organization_memberships']!['post']!.responses)).toContain('404');
    expect(Object.keys(document.paths['/organizations/{organization_id}/groups']!['get']!.responses)).toContain('404');
  });

  it('shows the headers of refusals', () => {
    const headersOf = (name: string) => Object.keys(document.components.responses[name]!['headers'] as object);
    expect(headersOf('Unauthorized')).toEqual(['X-Request-ID', 'WWW-Authenticate']);
    expect(headersOf('RateLimited')).toEqual(['X-Request-ID', 'Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset']);
  });

  it('takes addresses with letters beyond ASCII for addresses, as the API does', () => {
    expect(document.components.schemas['User']).toMatchObject({ properties: { email: { type: 'string', format: 'idn-email' } } });
  });

  it('shows lists in queries as comma joined, and texts in paths as anything', () => {
    const { parameters } = document.paths['/rooms/{room}/shelves']!['get']!;
    expect(parameters).toContainEqual({
      name: 'names',
      in: 'query',
      required: false,
      description: 'Any of these.',
      schema: { type: 'array', maxItems: 100, items: { type: 'string' } },
      style: 'form',
      explode: false,
    });
    expect(parameters).toContainEqual(expect.objectContaining({ name: 'room', schema: { type: 'string', maxLength: 128 } }));
    expect(parameters).not.toContainEqual({ $ref: '#/components/parameters/IdempotencyKey' });
  });

  it('has its sections in the order in which a reader needs them', () => {
    const { tags, paths } = openApiDocument('1.2.3') as unknown as {
      tags: readonly { name: string }[];
      paths: Record<string, Record<string, { tags: readonly string[] }>>;
    };
    const names = tags.map(({ name }) => name);
    expect(names.slice(0, 4)).toEqual(['Organizations', 'Organization domains', 'User management', 'Authorization']);
    expect(names.slice(-4)).toEqual(['Events', 'Webhook endpoints', 'Api keys', 'Administration']);
    // What is named nowhere stands in between.
    expect(names).toContain('Shelves');
    for (const [path, methods] of Object.entries(paths))
      for (const { tags: own } of Object.values(methods)) expect(own.includes('Administration')).toBe(path.startsWith('/admin/'));
  });

  it('says which lists hold nothing twice, and which events there are to subscribe to', () => {
    const bodyOf = (path: string, method: string) =>
      (
        (openApiDocument('1').paths[path]![method]! as unknown as Record<string, unknown>)['requestBody'] as {
          content: { 'application/json': { schema: Schema } };
        }
      ).content['application/json'].schema.properties;
    interface Schema {
      readonly properties: Readonly<Record<string, { readonly uniqueItems?: boolean; readonly items?: { readonly enum?: readonly string[] } }>>;
    }
    expect(bodyOf('/admin/roles/priority', 'put')['role_slugs']).toMatchObject({ uniqueItems: true });
    for (const [path, method] of [
      ['/webhook_endpoints', 'post'],
      ['/webhook_endpoints/{id}', 'patch'],
    ] as const)
      expect(bodyOf(path, method)['events']?.items?.enum).toEqual(WEBHOOK_EVENT_NAMES);
  });

  it('says of request ids what is done: any is taken, and the answer names one of our form', () => {
    const { components } = openApiDocument('1') as unknown as {
      components: { parameters: Record<string, { schema: object }>; headers: Record<string, { schema: object }> };
    };
    expect(components.parameters['RequestId']!.schema).toEqual({ type: 'string' });
    expect(components.headers['RequestId']!.schema).toEqual({ type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' });
  });

  it('says of an operation that takes a longer body how long it may be', () => {
    expect(openApiDocument('1').paths['/organizations']!['post']!['description']).toContain('Its body has at most 256 KiB.');
  });

  it('shows what webhooks receive', () => {
    expect(document.webhooks['organization.created']).toMatchObject({
      post: {
        requestBody: {
          content: {
            'application/json': { schema: { $ref: '#/components/schemas/Event', properties: { data: { $ref: '#/components/schemas/EventOrganization' } } } },
          },
        },
      },
    });
  });

  function responseAt(responses: OpenApiOperation['responses'], status: number): unknown {
    const response = responses[String(status)];
    return typeof response?.['$ref'] === 'string' ? resolve(response['$ref']) : response;
  }
});
