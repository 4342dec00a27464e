import { Ajv } from 'ajv';
import { schemas as specifications } from '@asyncapi/specs';
import { DocumentSchemas } from '#libs/testing/src/document-schemas';
import './all.ts';
import { asyncApiDocument } from './asyncapi.ts';
import { eventDataOf, PUBLIC_EVENT_NAMES } from './events.ts';
import type { Schema } from './json-schema.ts';

const document = asyncApiDocument('1.2.3');
const schemas = new DocumentSchemas(document, 'closed');

function resolve(reference: string): unknown {
  return reference
    .slice(2)
    .split('/')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
}

function* references(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key === '$ref') yield inner as string;
    else yield* references(inner);
  }
}

describe('the document of announcements', () => {
  it('is valid AsyncAPI 3', () => {
    // The specification brings the dialect that it is written in, and formats that are not ours.
    const ajv = new Ajv({ strict: false, validateFormats: false, validateSchema: false });
    const specification = structuredClone(specifications['3.0.0']) as Schema & { definitions: Record<string, unknown> };
    delete specification.definitions['http://json-schema.org/draft-07/schema'];
    const validate = ajv.compile(specification);
    const isValid = validate(document);
    expect(validate.errors ?? []).toEqual([]);
    expect(isValid).toBe(true);
    expect(validate({ ...document, channels: { wrong: { address: 1 } } })).toBe(false);
  });

  it('has a channel per service and kind of event, with installation and environment in its address', () => {
    expect(Object.entries(document.channels).map(([name, { address }]) => [name, address])).toEqual([
      ['authorization', '{installation}.{environment}.authorization'],
      ['authorization-domain', '{installation}.{environment}.authorization.domain'],
      ['directory-sync', '{installation}.{environment}.directory-sync'],
      ['directory-sync-domain', '{installation}.{environment}.directory-sync.domain'],
      ['identity', '{installation}.{environment}.identity'],
      ['identity-domain', '{installation}.{environment}.identity.domain'],
    ]);
  });

  it('has every event that is announced, once', () => {
    const shown = Object.values(document.channels).flatMap(({ messages }) => Object.keys(messages));
    const announced = PUBLIC_EVENT_NAMES.filter((name) => eventDataOf(name) !== null);
    expect(shown.filter((name) => name !== 'domain_event').toSorted()).toEqual(announced.toSorted());
    expect(document.channels['identity']!.messages).toHaveProperty(['organization_membership.updated']);
    expect(document.channels['authorization']!.messages).toHaveProperty(['organization_role.deleted']);
  });

  it('refers to nothing that is not in it', () => {
    const found = [...references(document)];
    expect(found.length).toBeGreaterThan(30);
    for (const reference of found) expect([reference, typeof resolve(reference)]).toEqual([reference, 'object']);
  });

  it('has examples that its schemas take', () => {
    let count = 0;
    for (const [name, { payload, headers, examples = [] }] of Object.entries(document.components.messages))
      for (const example of examples as readonly { payload: unknown; headers: unknown }[]) {
        expect([name, schemas.problemsOf(payload, example.payload), schemas.problemsOf(headers, example.headers)]).toEqual([name, [], []]);
        count++;
      }
    expect(count).toBe(PUBLIC_EVENT_NAMES.filter((name) => eventDataOf(name) !== null).length);
  });

  it('refuses what does not belong', () => {
    const { payload, headers, examples } = document.components.messages['organization.created']!;
    const [example] = examples as [{ payload: { data: object }; headers: object }];
    const problems = (data: object): readonly string[] => schemas.problemsOf(payload, { ...example.payload, data: { ...example.payload.data, ...data } });
    expect(problems({ secret: 'x' })).not.toEqual([]);
    expect(problems({ id: 'x' })).not.toEqual([]);
    expect(schemas.problemsOf(payload, { ...example.payload, event: 'organization.updated' })).not.toEqual([]);
    expect(schemas.problemsOf(headers, { ...example.headers, ce_type: 'organization.updated' })).not.toEqual([]);
  });

  it('is the same whenever it is made', () => {
    expect(JSON.stringify(asyncApiDocument('1.2.3'))).toBe(JSON.stringify(document));
  });
});
