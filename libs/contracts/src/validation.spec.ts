import { DomainError, type FieldError } from '#libs/platform/src/domain-error';
import { Flag, Integer, Json, ListOf, MapOfText, Nested, OneOf, Optional, Ref, Text, Time } from './fields.ts';
import { Command, empty, listOf, Operation, operationOf, ok, type Class, type Operation as AnyOperation } from './operation.ts';
import { Organization } from './organizations/organization.ts';
import { CreateOrganization, GetOrganization } from './organizations/operations.ts';
import { PageQuery } from './pages.ts';
import { messageValidatorOf, validatorOf } from './validation.ts';

class Wheel {
  @Text({ doc: 'Its maker.', min: 1, max: 5 }) maker!: string;
  @Optional() @Integer({ doc: 'Its size.', minimum: 1, maximum: 30 }) size?: number;
}

@Operation({ post: '/cars', owner: 'identity', summary: 'Build a car', answers: ok(Organization) })
class BuildCar extends Command<Organization> {
  @Text({ doc: 'Its name.', min: 1, max: 10 }) name!: string;
  @OneOf(['red', 'blue'], { doc: 'Its colour.', nullable: true }) colour!: 'red' | 'blue' | null;
  @Ref(() => Organization, { doc: 'Its owner.' }) organization_id!: string;
  @Optional() @ListOf(() => Wheel, { doc: 'Its wheels.', minItems: 1, maxItems: 4 }) wheels?: readonly Wheel[];
  @Optional() @ListOf({ text: { max: 3 } }, { doc: 'Its tags.' }) tags?: readonly string[];
  @Optional() @Nested(() => Wheel, { doc: 'A spare.', nullable: true }) spare?: Wheel | null;
  @Optional() @Text({ doc: 'Its number.', ascii: true, pattern: /^[A-Z]+$/ }) number?: string;
  @Optional() @Flag({ doc: 'Fast.' }) fast?: boolean;
  @Optional() @Time({ doc: 'When.' }) built_at?: string;
  @Optional() @MapOfText({ doc: 'Data.', nullable: true }) metadata?: Readonly<Record<string, string | null>> | null;
  @Optional() @Json({ doc: 'Anything.' }) anything?: unknown;
}

@Operation({ get: '/garages/{garage}/cars', owner: 'identity', summary: 'List cars', answers: listOf(Organization) })
class ListCars extends PageQuery<Organization> {
  @Ref(() => Organization, { doc: 'The garage.' }) garage!: string;
  @Optional() @ListOf({ text: { max: 10 } }, { doc: 'Any of these names.' }) names?: readonly string[];
  @Optional() @ListOf({ oneOf: ['red', 'blue'] }, { doc: 'Any of these colours.' }) colours?: readonly string[];
  @Optional() @Flag({ doc: 'Only fast ones.' }) fast?: boolean;
}

@Operation({ delete: '/cars/{id}', owner: 'identity', summary: 'Scrap a car', answers: empty(204), body: true })
class ScrapCar extends Command<void> {
  @Ref(() => Organization, { doc: 'The car.' }) id!: string;
  @Optional() @Text({ doc: 'Why.' }) reason?: string;
  @Integer({ doc: 'How much is left.', default: 0 }) rest!: number;
}

@Operation({ delete: '/cars/{id}/recall', owner: 'identity', summary: 'Recall a car', answers: empty(204), body: true })
class RecallCar extends Command<void> {
  @Ref(() => Organization, { doc: 'The car.' }) id!: string;
  @Text({ doc: 'Its maker.' }) maker!: string;
}

@Operation({ post: '/cars/{id}/polish', owner: 'identity', summary: 'Polish a car', answers: empty(204) })
class PolishCar extends Command<void> {
  @Ref(() => Organization, { doc: 'The car.' }) id!: string;
}

function validate(
  type: Class<AnyOperation>,
  given: { parameters?: Record<string, string>; query?: Record<string, unknown>; body?: unknown },
): Record<string, unknown> {
  return { ...(validatorOf(operationOf(type))(given.parameters ?? {}, given.query ?? {}, given.body) as unknown as Record<string, unknown>) };
}

function errorsOf(type: Class<AnyOperation>, given: Parameters<typeof validate>[1]): readonly string[] {
  return details(type, given).map(({ code, field }) => `${field}: ${code}`);
}

function details(type: Class<AnyOperation>, given: Parameters<typeof validate>[1]): readonly FieldError[] {
  try {
    validate(type, given);
  } catch (error) {
    expect(error).toBeInstanceOf(DomainError);
    expect(error).toMatchObject({ kind: 'invalid', code: 'invalid_request_parameters', message: 'Validation failed.' });
    return (error as DomainError).details.errors!;
  }
  return [];
}

const car = { name: 'Beetle', colour: 'red', organization_id: 'org_1' };

describe('a request body', () => {
  it('becomes an instance of the operation with the fields given and no others', () => {
    const operation = validatorOf<BuildCar>(operationOf(BuildCar))({}, {}, { ...car, unknown: 1 });
    expect(operation).toBeInstanceOf(BuildCar);
    expect({ ...operation }).toEqual(car);
  });

  it('loses what nested classes do not declare', () => {
    expect(validate(BuildCar, { body: { ...car, wheels: [{ maker: 'A', other: true }], spare: { maker: 'B', other: 1 } } })).toEqual({
      ...car,
      wheels: [{ maker: 'A' }],
      spare: { maker: 'B' },
    });
  });

  it('may leave out what is optional and null what is nullable', () => {
    expect(validate(BuildCar, { body: { ...car, colour: null, spare: null, metadata: null } })).toMatchObject({ colour: null, spare: null, metadata: null });
  });

  it('means by null that an optional field is left out, at every depth, unless null means something there', () => {
    const unset = { tags: null, number: null, fast: null, built_at: null, wheels: [{ maker: 'A', size: null }], spare: { maker: 'B', size: null } };
    expect(validate(BuildCar, { body: { ...car, ...unset } })).toEqual({ ...car, wheels: [{ maker: 'A' }], spare: { maker: 'B' } });
    expect(validate(BuildCar, { body: { ...car, wheels: null, anything: { deep: null } } })).toEqual({ ...car, anything: { deep: null } });
    expect(validate(BuildCar, { body: { ...car, metadata: { key: null } } })).toEqual({ ...car, metadata: { key: null } });
    expect(validate(ScrapCar, { parameters: { id: 'car_1' }, body: { rest: null } })).toEqual({ id: 'car_1', rest: 0 });
    expect(errorsOf(BuildCar, { body: { ...car, name: null, wheels: [null], spare: { maker: null } } })).toEqual([
      'name: invalid_type',
      'wheels.0: invalid_type',
      'spare.maker: invalid_type',
    ]);
  });

  it('may have an empty array where an object is expected', () => {
    expect(validate(BuildCar, { body: { ...car, metadata: [] } })).toEqual({ ...car, metadata: {} });
    expect(errorsOf(BuildCar, { body: { ...car, spare: [], wheels: [[]] } })).toEqual(['wheels.0.maker: required', 'spare.maker: required']);
    expect(errorsOf(BuildCar, { body: [] })).toEqual(['name: required', 'colour: required', 'organization_id: required']);
    expect(validate(ScrapCar, { parameters: { id: 'car_1' }, body: [] })).toEqual({ id: 'car_1', rest: 0 });
  });

  it.each([
    [{}, ['name: required', 'colour: required', 'organization_id: required']],
    [{ ...car, name: 1 }, ['name: invalid_type']],
    [{ ...car, name: '' }, ['name: too_short']],
    [{ ...car, name: '01234567890' }, ['name: too_long']],
    [{ ...car, name: 'a\0' }, ['name: invalid_characters']],
    [{ ...car, name: 'a\ud800' }, ['name: invalid_characters']],
    [{ ...car, colour: 'green' }, ['colour: not_allowed']],
    [{ ...car, organization_id: 'x'.repeat(129) }, ['organization_id: too_long']],
    [{ ...car, wheels: [] }, ['wheels: too_few']],
    [{ ...car, wheels: [1, 2, 3, 4, 5] }, ['wheels: too_many']],
    [{ ...car, wheels: {} }, ['wheels: invalid_type']],
    [{ ...car, wheels: [{ maker: 'A' }, {}] }, ['wheels.1.maker: required']],
    [{ ...car, wheels: [{ maker: 'A', size: 31 }] }, ['wheels.0.size: out_of_range']],
    [{ ...car, wheels: [{ maker: 'A', size: 1.5 }] }, ['wheels.0.size: invalid_type']],
    [{ ...car, tags: ['abcd'] }, ['tags.0: too_long']],
    [{ ...car, tags: Array.from({ length: 1001 }, () => 1) }, ['tags: too_many']],
    [{ ...car, spare: { maker: 'A', size: '2' } }, ['spare.size: invalid_type']],
    [{ ...car, number: 'ä' }, ['number: invalid_format', 'number: invalid_characters']],
    [{ ...car, fast: 'true' }, ['fast: invalid_type']],
    [{ ...car, built_at: '2026-02-30T12:00:00Z' }, ['built_at: invalid_format']],
    [{ ...car, metadata: 'x' }, ['metadata: invalid_type']],
    [{ ...car, metadata: ['a'] }, ['metadata: invalid_type']],
    [{ name: 1, colour: 2, organization_id: 3 }, ['name: invalid_type', 'colour: invalid_type', 'colour: not_allowed', 'organization_id: invalid_type']],
  ])('is refused with each wrong field named: %#', (body, errors) => {
    expect([...errorsOf(BuildCar, { body })].sort()).toEqual([...errors].sort());
  });

  it('says what is wrong in a sentence', () => {
    expect(details(BuildCar, { body: { ...car, name: '', colour: 'green', built_at: 'today' } }).map((error) => error.message)).toEqual([
      'name must have at least 1 characters.',
      'colour must be one of red, blue.',
      'built_at must be a date and time with a time zone, such as 2026-01-15T12:00:00Z.',
    ]);
  });

  it('counts characters, not code units', () => {
    expect(errorsOf(BuildCar, { body: { ...car, name: '😀'.repeat(10) } })).toEqual([]);
    expect(errorsOf(BuildCar, { body: { ...car, name: '😀'.repeat(11) } })).toEqual(['name: too_long']);
  });

  it('leaves the limits of metadata to the decision, and no key reaches a prototype', () => {
    const body: unknown = JSON.parse(
      `{"name":"Beetle","colour":"red","organization_id":"o","metadata":{"__proto__":{"polluted":"yes"},"constructor":"a","n":1},"__proto__":{"fast":true}}`,
    );
    const operation = validate(BuildCar, { body });
    expect(Object.keys(operation['metadata'] as object)).toEqual(['__proto__', 'constructor', 'n']);
    expect(operation['fast']).toBeUndefined();
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it.each([[undefined], [null]])('must be there where a field is required, and is empty elsewhere: %p', (body) => {
    expect(errorsOf(BuildCar, { body })).toEqual([': invalid_type']);
    expect(validate(ScrapCar, { parameters: { id: 'car_1' }, body })).toEqual({ id: 'car_1', rest: 0 });
  });

  it.each([['text'], [[{ reason: 'rust' }]], [1], [false]])('must be an object wherever the operation has fields in it: %p', (body) => {
    expect(errorsOf(BuildCar, { body })).toEqual([': invalid_type']);
    expect(errorsOf(ScrapCar, { parameters: { id: 'car_1' }, body })).toEqual([': invalid_type']);
    expect(validate(PolishCar, { parameters: { id: 'car_1' }, body })).toEqual({ id: 'car_1' });
  });

  it('of a DELETE is read where the operation says so, and its fields may stand in the query as well', () => {
    const scrap = (query: Record<string, unknown>, body?: unknown) => validate(ScrapCar, { parameters: { id: 'car_1' }, query, body });
    expect(scrap({}, { reason: 'rust', id: 'other' })).toEqual({ id: 'car_1', reason: 'rust', rest: 0 });
    expect(scrap({ reason: 'rust', rest: '7', id: 'other' })).toEqual({ id: 'car_1', reason: 'rust', rest: 7 });
    expect(scrap({ rest: '7' }, { reason: 'rust', rest: null })).toEqual({ id: 'car_1', reason: 'rust', rest: 7 });
    expect(scrap({ reason: 'rust', rest: '7' }, { reason: 'rust', rest: 7 })).toEqual({ id: 'car_1', reason: 'rust', rest: 7 });
    expect(errorsOf(ScrapCar, { parameters: { id: 'car_1' }, query: { reason: 'age' }, body: { reason: 'rust' } })).toEqual(['reason: given_twice']);
    expect(errorsOf(ScrapCar, { parameters: { id: 'car_1' }, query: { rest: 'x' } })).toEqual(['rest: invalid_type']);
    expect(errorsOf(RecallCar, { parameters: { id: 'car_1' }, query: { maker: 'A' } })).toEqual([]);
    expect(errorsOf(RecallCar, { parameters: { id: 'car_1' } })).toEqual(['maker: required']);
  });

  it('names at most 100 wrong places', () => {
    expect(errorsOf(BuildCar, { body: { ...car, tags: Array.from({ length: 1000 }, () => 1) } })).toHaveLength(100);
  });

  it('accepts what an organization is made of', () => {
    const body = { name: 'Acme', domain_data: [{ domain: 'acme.test', state: 'pending' }], external_id: null, metadata: { a: 'b' } };
    expect(validate(CreateOrganization, { body })).toEqual(body);
  });
});

describe('a path', () => {
  it.each([['org_1'], ['anything at all / ü'], ['x'.repeat(128)], ['\0']])('takes any text up to 128 characters: %j', (id) => {
    expect(validate(GetOrganization, { parameters: { id } })).toEqual({ id });
  });

  it('takes no longer text', () => {
    expect(errorsOf(GetOrganization, { parameters: { id: 'x'.repeat(129) } })).toEqual(['id: too_long']);
  });
});

describe('a query', () => {
  const list = (query: Record<string, unknown>) => validate(ListCars, { parameters: { garage: 'g' }, query });
  const errors = (query: Record<string, unknown>) => errorsOf(ListCars, { parameters: { garage: 'g' }, query });

  it('gets its defaults', () => {
    expect(list({})).toEqual({ garage: 'g', limit: 10 });
  });

  it('is read as integers and booleans, strictly', () => {
    expect(list({ limit: '12', fast: 'false' })).toEqual({ garage: 'g', limit: 12, fast: false });
    for (const limit of ['abc', '', '1.5', '1e1', ' 1', ['1', '2']]) expect(errors({ limit })).toEqual(['limit: invalid_type']);
    // Of 16 digits and more a number keeps only the first.
    for (const limit of ['0', '101', '-1', '9007199254740993', '10000000000000000000000']) expect(errors({ limit })).toEqual(['limit: out_of_range']);
    expect([list({ fast: 'true' }), list({ fast: '1' }), list({ fast: '0' })].map(({ fast }) => fast)).toEqual([true, true, false]);
    for (const fast of ['2', 'TRUE', '']) expect(errors({ fast })).toEqual(['fast: invalid_type']);
  });

  it.each([
    [{ names: 'a,b,c' }],
    [{ names: ['a', 'b,c'] }],
    [{ 'names[]': ['a', 'b', 'c'] }],
    [{ names: 'a', 'names[]': 'b,c' }],
    [{ 'names[0]': 'a', 'names[1]': 'b', 'names[2]': 'c' }],
    [{ 'names[0][name]': 'A', 'names[0][value]': 'a', 'names[1][name]': 'B', 'names[1][value]': 'b', 'names[2]': 'c' }],
  ])('takes lists comma joined, as repeated keys and with brackets: %j', (query) => {
    expect(list(query)).toEqual({ garage: 'g', limit: 10, names: ['a', 'b', 'c'] });
  });

  it('takes an empty list as not given', () => {
    expect(list({ names: '' })).toEqual({ garage: 'g', limit: 10 });
  });

  it('takes at most 100 values in a list', () => {
    expect(errors({ names: Array.from({ length: 100 }, () => 'a').join(',') })).toEqual([]);
    expect(errors({ names: Array.from({ length: 101 }, () => 'a').join(',') })).toEqual(['names: too_many']);
    expect(errors({ colours: 'red,green' })).toEqual(['colours.1: not_allowed']);
  });

  it.each(['other[]', 'other[0]', 'limit[]', 'names[a]', 'names[0][other]', 'names[][value]', 'names[0]]', 'names[', '[0]', 'names[0][value][0]'])(
    'is refused where no list is called %s, rather than losing a filter',
    (name) => {
      expect(errors({ [name]: 'a', names: 'b' })).toEqual([`${name}: unknown_parameter`]);
      expect(errorsOf(ScrapCar, { parameters: { id: 'car_1' }, query: { [name]: 'a' } })).toEqual([`${name}: unknown_parameter`]);
      expect(errorsOf(PolishCar, { parameters: { id: 'car_1' }, query: { [name]: 'a' } })).toEqual([]);
    },
  );

  it('ignores what it does not know', () => {
    expect(list({ other: 'x', garage: 'h' })).toEqual({ garage: 'g', limit: 10 });
  });
});

describe('a message between services', () => {
  const received = (type: Class<AnyOperation>, fields: unknown): unknown => messageValidatorOf(operationOf(type))(JSON.parse(JSON.stringify(fields)));
  const errors = (type: Class<AnyOperation>, fields: unknown): readonly string[] => {
    try {
      received(type, fields);
      return [];
    } catch (error) {
      return (error as DomainError).details.errors!.map(({ field, code }) => `${field}: ${code}`);
    }
  };

  it('lets in what the gateway let in, as it was', () => {
    const car = { name: 'a', colour: null, organization_id: 'org_1', wheels: [{ maker: 'x' }], metadata: { a: null }, anything: [1, { b: null }], fast: false };
    const cars = { parameters: { garage: 'g' }, query: { limit: '7', names: 'a,b', fast: 'true' } };
    for (const [type, given] of [
      [BuildCar, { body: car }],
      [ListCars, cars],
      [ScrapCar, { parameters: { id: 'car_1' }, body: {} }],
    ] as const) {
      const accepted = validate(type, given);
      expect({ ...(received(type, accepted) as object) }).toEqual(accepted);
      expect(received(type, accepted)).toBeInstanceOf(type);
    }
  });

  it('is read strictly, whatever is text elsewhere', () => {
    expect(errors(ListCars, { garage: 'g', limit: '7', names: 'a,b', fast: 'true' })).toEqual([
      'limit: invalid_type',
      'names: invalid_type',
      'fast: invalid_type',
    ]);
    expect(errors(ScrapCar, { rest: 1 })).toEqual(['id: required']);
    for (const fields of [null, [], 'text', 7]) expect(errors(ScrapCar, fields)).toEqual([': invalid_type']);
  });

  it('loses what the operation does not declare, and inherits nothing', () => {
    const message = JSON.parse('{"id":"car_1","rest":1,"reason":"old","context":{},"more":1,"__proto__":{"polluted":true},"constructor":1}') as unknown;
    const scrap = messageValidatorOf(operationOf(ScrapCar))(message);
    expect({ ...scrap }).toEqual({ id: 'car_1', rest: 1, reason: 'old' });
    expect(Object.getPrototypeOf(scrap)).toBe(ScrapCar.prototype);
    expect({}).not.toHaveProperty('polluted');
  });
});
