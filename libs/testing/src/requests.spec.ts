import { parse } from 'node:querystring';
import fc from 'fast-check';
import '#libs/contracts/src/all';
import { operations, type RegisteredOperation } from '#libs/contracts/src/operation';
import { validatorOf } from '#libs/contracts/src/validation';
import { DomainError } from '#libs/platform/src/domain-error';
import { brokenRequest, referencesOf, requestNaming, validRequest, type GeneratedRequest } from './requests.ts';
import { seedOf } from './seed.ts';

/** Reads a request as the gateway does, and asks the operation's validator. */
function errorsOf(operation: RegisteredOperation, { path, body, type }: GeneratedRequest): readonly { readonly field: string; readonly code: string }[] {
  const [pathname, search = ''] = path.split('?') as [string, string?];
  const names = operation.route!.parameters;
  const values = new RegExp(`^${operation.route!.path.replaceAll(/\{\w+\}/g, '([^/]+)')}$`).exec(pathname)!.slice(1);
  const parameters = Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(values[index]!)]));
  try {
    validatorOf(operation)(parameters, parse(search), body === undefined || type !== undefined ? undefined : JSON.parse(JSON.stringify(body)));
    return [];
  } catch (error) {
    if (error instanceof DomainError) return error.details.errors!;
    throw error;
  }
}

const seed = seedOf('requests');

const published = operations().filter((operation) => operation.route !== null);

describe.each(published.map((operation): [string, RegisteredOperation] => [operation.name, operation]))('requests to %s', (_, operation) => {
  it('are taken when they are made to be valid', () => {
    fc.assert(
      fc.property(validRequest(operation), (request) => expect(errorsOf(operation, request)).toEqual([])),
      { numRuns: 50, seed },
    );
  });

  const broken = brokenRequest(operation);
  if (broken !== null)
    it('are refused for the one place in which they are broken', () => {
      fc.assert(
        fc.property(broken, ({ request, broken: { field, code } }) => {
          const errors = errorsOf(operation, request);
          expect(errors).toContainEqual(expect.objectContaining({ field, code }));
          expect(new Set(errors.map((error) => error.field))).toEqual(new Set([field]));
        }),
        { numRuns: 50, seed },
      );
    });
});

it('ids of existing objects are used where they are known', () => {
  const operation = published.find(({ name }) => name === 'GetOrganization')!;
  const paths = fc.sample(
    validRequest(operation, () => ['org_known']).map((request) => request.path),
    { numRuns: 50, seed },
  );
  expect(paths).toContain('/organizations/org_known');
});

describe('references', () => {
  const places = published.flatMap((operation) => referencesOf(operation).map((reference) => ({ operation, reference })));

  it('are found in paths, queries and bodies', () => {
    expect(new Set(places.map(({ reference }) => reference.place))).toEqual(new Set(['path', 'query', 'body']));
    expect(places.map(({ operation, reference }) => `${operation.name} ${reference.place} ${reference.field} ${reference.of.name}`)).toContain(
      'GetOrganization path id Organization',
    );
  });

  it('are found in the objects of a list', () => {
    const within = places.filter(({ reference }) => reference.within !== null);
    expect(within.map(({ operation, reference }) => `${operation.name} ${reference.within}.${reference.field}`)).toContain(
      'CheckAccessBatch checks.resource_id',
    );
  });

  it('take the id of an object that belongs to somebody else', () => {
    for (const { operation, reference } of places)
      for (const request of fc.sample(requestNaming(operation, reference, 'org_foreign'), { numRuns: 5, seed })) {
        expect(errorsOf(operation, request)).toEqual([]);
        expect(`${request.path} ${JSON.stringify(request.body)}`).toContain('org_foreign');
      }
  });
});
