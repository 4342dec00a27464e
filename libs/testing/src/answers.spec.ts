import '#libs/contracts/src/all';
import { exampleOf } from '#libs/contracts/src/examples';
import { openApiDocument } from '#libs/contracts/src/openapi';
import { Organization } from '#libs/contracts/src/organizations/organization';
import { answerMatches, type AnswerHeaders } from './answers.ts';

const document = openApiDocument('1.0.0');
const organization = exampleOf(Organization);
const json = { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'r1' };
const notFound = { message: 'Organization not found.', code: 'entity_not_found', entity_id: 'org_1' };

describe('an answer', () => {
  it.each<[string, string, number, AnswerHeaders, unknown]>([
    ['GET', '/organizations/org_1', 200, json, organization],
    ['GET', '/organizations/org_1?x=1', 200, json, JSON.stringify(organization)],
    ['GET', '/organizations/org_1', 404, json, notFound],
    ['POST', '/organizations', 201, { ...json, 'gatehouse-position': '0001', 'idempotent-replayed': 'true' }, organization],
    [
      'POST',
      '/organizations',
      422,
      json,
      { message: 'Validation failed.', code: 'invalid_request_parameters', errors: [{ code: 'required', field: 'name', message: 'name is required.' }] },
    ],
    ['POST', '/organizations', 400, json, { message: 'No.', code: 'invalid_metadata' }],
    ['POST', '/organizations', 429, { ...json, 'retry-after': '3' }, { message: 'Slowly.', code: 'rate_limit_exceeded' }],
    ['POST', '/organizations', 429, json, { message: 'Much later.', code: 'rate_limit_exceeded' }],
    ['PATCH', '/organizations', 405, { ...json, allow: 'POST' }, { message: 'No.', code: 'method_not_allowed' }],
    ['GET', '/nowhere/at/all', 404, json, { message: 'No.', code: 'route_not_found' }],
    ['GET', '/nowhere/at/all', 401, json, { message: 'No.', code: 'unauthorized' }],
  ])('as documented is taken: %s %s %d', (method, path, status, headers, body) => {
    expect(() => answerMatches(document, method, path, status, headers, body)).not.toThrow();
  });

  it.each<[string, string, string, number, AnswerHeaders, unknown]>([
    ['an undeclared field', 'GET', '/organizations/org_1', 200, json, { ...organization, secret: 'x' }],
    [
      'an undeclared field deep inside',
      'GET',
      '/organizations/org_1',
      200,
      json,
      { ...organization, domains: [{ ...(organization['domains'] as object[])[0], secret: 'x' }] },
    ],
    ['a missing field', 'GET', '/organizations/org_1', 200, json, { ...organization, name: undefined }],
    ['a wrong type', 'GET', '/organizations/org_1', 200, json, { ...organization, name: 1 }],
    ['an id of another kind', 'GET', '/organizations/org_1', 200, json, { ...organization, id: 'user_01J0000000000000000000000A' }],
    ['an undeclared status', 'GET', '/organizations/org_1', 201, json, organization],
    ['an undeclared code', 'GET', '/organizations/org_1', 404, json, { ...notFound, code: 'organization_gone' }],
    ['a refusal of another status', 'POST', '/organizations', 409, json, { message: 'No.', code: 'invalid_metadata' }],
    ['no list of errors', 'POST', '/organizations', 422, json, { message: 'No.', code: 'invalid_request_parameters' }],
    ['no body', 'GET', '/organizations/org_1', 200, json, ''],
    ['no request id', 'GET', '/organizations/org_1', 200, { 'content-type': 'application/json' }, organization],
    ['no time to wait', 'POST', '/organizations', 503, json, { message: 'Later.', code: 'service_unavailable' }],
    ['no allowed methods', 'PATCH', '/organizations', 405, json, { message: 'No.', code: 'method_not_allowed' }],
    ['another content type', 'GET', '/organizations/org_1', 200, { ...json, 'content-type': 'text/html' }, organization],
    ['no JSON', 'GET', '/organizations/org_1', 500, json, '<html>'],
  ])('with %s is refused', (_, method, path, status, headers, body) => {
    expect(() => answerMatches(document, method, path, status, headers, body)).toThrow();
  });

  it('is refused with what is wrong', () => {
    expect(() => answerMatches(document, 'GET', '/organizations/org_1', 200, json, { ...organization, secret: 'x' })).toThrow(
      'must NOT have additional properties {"additionalProperty":"secret"}',
    );
  });
});
