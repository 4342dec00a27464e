import { DomainError } from '#libs/platform/src/domain-error';
import { specOf } from '#libs/testing/src/decider-spec';
import { auditActionDecider, createSchema, readSchema, requireConforming, type AuditActionEvent, type DescribedEvent } from './audit-action.decider.ts';

const { given, id } = specOf(auditActionDecider);
const nothing = { actor: null, targets: [{ type: 'document', metadata: null }], metadata: null };
const created = (version: number, schema_id = id('audit_schema')): AuditActionEvent => ({
  type: 'audit_log_action.schema_created',
  data: { id: id('ala'), name: 'document.shared', schema_id, version, ...nothing },
});

const object = (properties: object, rest: object = {}): object => ({ type: 'object', properties, ...rest });
const inTarget = (metadata: unknown): Parameters<typeof readSchema>[0] => ({ targets: [{ type: 'document', metadata }] });

/** Where and why it is refused, or nothing. */
function refused(act: () => unknown, at: 'field' | 'instancePath'): readonly string[] {
  try {
    act();
    return [];
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return error.details.errors!.map((fault) => `${fault[at]} ${fault.code}`);
  }
}

describe('a schema of an action', () => {
  it('is the next version, also where it equals the one before', () => {
    given().when(createSchema('document.shared', nothing)).then(created(1));
    given(created(1, 'audit_schema_of_before')).when(createSchema('document.shared', nothing)).then(created(2));
  });

  it.each([
    ['nothing', {}, null],
    ['null', null, null],
    ['properties', object({ role: { type: 'string' } }), object({ role: { type: 'string' } })],
    ['no properties', { type: 'object' }, object({})],
    [
      'every keyword',
      object({ a: { type: 'number', enum: [1, null], nullable: true } }, { required: ['a'], additionalProperties: false }),
      object({ a: { type: 'number', nullable: true, enum: [1, null] } }, { required: ['a'], additionalProperties: false }),
    ],
    ['a required name beside properties', object({}, { required: ['a'] }), object({}, { required: ['a'] })],
    [
      'what typed clients and PHP write of what was not set',
      object({ a: { type: 'string', enum: null, nullable: null } }, { required: null, additionalProperties: null }),
      object({ a: { type: 'string' } }),
    ],
    ['an empty list for an empty object', [], null],
    ['properties that are an empty list', object([]), object({})],
    [
      'a value as long as metadata may have, in characters of four bytes',
      object({ a: { type: 'string', enum: ['😀'.repeat(500)] } }),
      object({ a: { type: 'string', enum: ['😀'.repeat(500)] } }),
    ],
    ['a name of every object', object({ constructor: { type: 'string' } }), object({ constructor: { type: 'string' } })],
  ])('may ask of metadata: %s', (_, given, read) => {
    expect(readSchema(inTarget(given)).targets[0]!.metadata).toEqual(read);
  });

  it.each([
    ['a text', 'role', ['targets.0.metadata object']],
    ['another type', { type: 'array', properties: {} }, ['targets.0.metadata.type type']],
    ['a keyword that runs code or fetches', object({}, { $ref: 'https://acme.test/' }), ['targets.0.metadata unknown_keyword']],
    ['a pattern', object({ a: { type: 'string', pattern: '(a+)+$' } }), ['targets.0.metadata.properties.a unknown_keyword']],
    ['a property of objects', object({ a: { type: 'object' } }), ['targets.0.metadata.properties.a.type type']],
    ['a list', [{ type: 'object' }], ['targets.0.metadata object']],
    ['a list of properties', object([{ type: 'string' }]), ['targets.0.metadata.properties object']],
    ['a name that metadata cannot have', object({ 'a b': { type: 'string' } }), ['targets.0.metadata.properties name']],
    [
      '51 properties',
      object(Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`p${index}`, { type: 'string' }]))),
      ['targets.0.metadata.properties too_many'],
    ],
    ['an enum of another type', object({ a: { type: 'string', enum: [1] } }), ['targets.0.metadata.properties.a.enum contradiction']],
    ['an enum with null that may not be', object({ a: { type: 'string', enum: ['a', null] } }), ['targets.0.metadata.properties.a.enum contradiction']],
    ['an enum of nothing', object({ a: { type: 'string', enum: [] } }), ['targets.0.metadata.properties.a.enum enum']],
    ['an enum twice', object({ a: { type: 'string', enum: ['a', 'a'] } }), ['targets.0.metadata.properties.a.enum enum']],
    ['half a character', object({ a: { type: 'string', enum: ['a', 'x\ud800'] } }), ['targets.0.metadata.properties.a.enum contradiction']],
    ['a NUL', object({ a: { type: 'string', enum: ['\0'] } }), ['targets.0.metadata.properties.a.enum contradiction']],
    ['a value longer than any', object({ a: { type: 'string', enum: ['x'.repeat(501)] } }), ['targets.0.metadata.properties.a.enum contradiction']],
    [
      'a value longer than any, of four bytes each',
      object({ a: { type: 'string', enum: ['😀'.repeat(501)] } }),
      ['targets.0.metadata.properties.a.enum contradiction'],
    ],
    ['nullable that is no flag', object({ a: { type: 'string', nullable: 'yes' } }), ['targets.0.metadata.properties.a.nullable boolean']],
    ['required that is no list', object({}, { required: 'a' }), ['targets.0.metadata.required required']],
    ['required twice', object({ a: { type: 'string' } }, { required: ['a', 'a'] }), ['targets.0.metadata.required required']],
    ['required that nothing may have', object({}, { required: ['a'], additionalProperties: false }), ['targets.0.metadata.required contradiction']],
    ['a schema for other properties', object({}, { additionalProperties: { type: 'string' } }), ['targets.0.metadata.additionalProperties boolean']],
  ])('may not ask of metadata: %s', (_, metadata, faults) => {
    expect(refused(() => readSchema(inTarget(metadata)), 'field')).toEqual(faults);
  });

  it('names a type of targets once, and has at most 32 KiB', () => {
    expect(refused(() => readSchema({ targets: [{ type: 'a' }, { type: 'a' }] }), 'field')).toEqual(['targets.1.type not_unique']);
    const long = object({ a: { type: 'string', enum: Array.from({ length: 100 }, (_, index) => `${index}${'x'.repeat(400)}`) } });
    expect(refused(() => readSchema(inTarget(long)), 'field')).toEqual(['targets too_long']);
  });
});

describe('an event', () => {
  const schema = readSchema({
    actor: { metadata: object({ role: { type: 'string', enum: ['owner'] } }, { required: ['role'] }) },
    targets: [
      {
        type: 'document',
        metadata: object({ pages: { type: 'integer' }, ratio: { type: 'number' }, draft: { type: 'boolean' } }, { additionalProperties: false }),
      },
      { type: 'folder' },
    ],
    metadata: object({ plan: { type: 'string' }, seats: { type: 'integer', nullable: true } }, { required: ['seats'] }),
  });
  const good: DescribedEvent = {
    action: 'document.shared',
    actor: { metadata: { role: 'owner' } },
    targets: [{ type: 'document', metadata: { pages: 12, ratio: 0.5, draft: true } }],
    metadata: { plan: 'gold', seats: 25, other: 1 },
    version: null,
  };
  const document = (metadata: DescribedEvent['metadata']): DescribedEvent => ({
    ...good,
    targets: [
      { type: 'folder', metadata: {} },
      { type: 'document', metadata },
    ],
  });

  it.each([
    ['as the schema has it', good, []],
    ['of a type of targets where anything goes', { ...good, targets: [{ type: 'folder', metadata: { any: 'thing' } }] }, []],
    ['without what is required and may be null, which counts as not given', { ...good, metadata: {} }, []],
    ['without targets', { ...good, targets: [] }, []],
    ['of an undeclared type of targets', { ...good, targets: [{ type: 'user', metadata: {} }] }, ['/targets/0 type']],
    ['without what is required', { ...good, actor: { metadata: {} } }, ['/actor/metadata required']],
    ['with another value', { ...good, actor: { metadata: { role: 'guest' } } }, ['/actor/metadata/role enum']],
    ['with a text for a whole number', document({ pages: '12' }), ['/targets/1/metadata/pages type']],
    ['with a fraction for a whole number', document({ pages: 1.5 }), ['/targets/1/metadata/pages type']],
    ['with a number for a flag', document({ draft: 1 }), ['/targets/1/metadata/draft type']],
    ['with a name beside those declared', document({ title: 'Plan' }), ['/targets/1/metadata additionalProperties']],
    ['with several faults', { ...good, actor: { metadata: {} }, metadata: { plan: 7 } }, ['/actor/metadata required', '/metadata/plan type']],
  ])('%s', (_, event, faults) => {
    expect(refused(() => requireConforming(event, schema), 'instancePath')).toEqual(faults);
  });
});
