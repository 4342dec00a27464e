import { validateSync } from 'class-validator';
import { Const, Flag, Id, Integer, Json, ListOf, MapOfText, Nested, OneOf, Optional, Ref, Text, Time } from './fields.ts';
import { Command, empty, Operation, operationOf, type Class } from './operation.ts';
import { Organization } from './organizations/organization.ts';
import { validatorOf } from './validation.ts';

class Part {
  @Text({ doc: 'A name.', max: 3 }) name!: string;
}

const doc = 'The value.';
const MISSING = undefined;
const NOT_TEXT = [1, true, {}, [], null, MISSING];

/** Each decorator with values that it takes and values that it refuses. */
const TABLE: readonly {
  readonly of: string;
  readonly decorators: readonly PropertyDecorator[];
  readonly good: readonly unknown[];
  readonly bad: readonly unknown[];
}[] = [
  { of: 'Const', decorators: [Const('car')], good: ['car'], bad: ['bus', ...NOT_TEXT] },
  { of: 'Id', decorators: [Id('org', { doc })], good: ['org_01J0000000000000000000000A', 'anything', ''], bad: ['x'.repeat(129), ...NOT_TEXT] },
  { of: 'Ref', decorators: [Ref(() => Organization, { doc })], good: ['org_01J0000000000000000000000A', 'no such thing'], bad: ['x'.repeat(129), ...NOT_TEXT] },
  { of: 'Text', decorators: [Text({ doc })], good: ['', 'ü😀', '\u2028', '\n', 'x'.repeat(10_000)], bad: ['\0', '\ud800', 'a\udc00', ...NOT_TEXT] },
  { of: 'Text with limits', decorators: [Text({ doc, min: 2, max: 3 })], good: ['ab', '😀😀😀'], bad: ['a', '😀', 'abcd'] },
  { of: 'Text of a pattern', decorators: [Text({ doc, pattern: /^[a-z]+$/ })], good: ['ab'], bad: ['', 'A', 'a1', 'ab\n'] },
  { of: 'Text in ASCII', decorators: [Text({ doc, ascii: true })], good: ['', '~ \n'], bad: ['ü', '\0', '\u0080'] },
  { of: 'Text that is a date-time', decorators: [Text({ doc, format: 'date-time' })], good: ['2026-01-15T12:00:00.000Z'], bad: ['2026-01-15', ''] },
  {
    of: 'Text that is a date or a time',
    decorators: [Text({ doc, format: 'date-or-time' })],
    good: ['2026-01-15', '2026-01-15T12:00:00.1234567+01:00', '2026-01-15T12:00:00+00:00'],
    bad: ['2026-02-30', '2026-01', '2026-01-15T', '15.1.2026', ''],
  },
  {
    of: 'Text that is a URI',
    decorators: [Text({ doc, format: 'uri' })],
    good: ['https://acme.test/a?b#c', 'http://127.0.0.1:1/', 'https://[::1]/'],
    bad: ['', '/a', 'acme.test', 'https://', 'https://a b/', 'mailto:a@b.test'],
  },
  {
    of: 'Text that is visible',
    decorators: [Text({ doc, visible: true })],
    good: ['', 'ü 😀', ' a\n'],
    bad: ['a\nb', 'a\u200bb', '\u202ea', '\ufeffa', 'a\u00ad', 'a\u2060', 'a\ufe0f', '\u0000', 'a\ud800'],
  },
  {
    of: 'Text that is a host name',
    decorators: [Text({ doc, format: 'hostname' })],
    good: ['acme.test', 'a', 'xn--mnchen-3ya.test', 'A-1.test'],
    bad: ['', '-a.test', 'a..b', 'a_b', `${'x'.repeat(64)}.test`, 'münchen.test'],
  },
  {
    of: 'Text that is an email',
    decorators: [Text({ doc, format: 'email' })],
    good: ['ada@acme.test', "o'neil+x@a-b.test", 'ü@acme.test', ' ADA@acme.test\n'],
    bad: ['', 'ada', '@acme.test', 'ada@', 'a b@acme.test', 'a@b@acme.test', 'ada@-.test'],
  },
  { of: 'nullable Text', decorators: [Text({ doc, nullable: true, max: 3 })], good: ['abc', null], bad: ['abcd', 1, MISSING] },
  { of: 'Optional Text', decorators: [Optional(), Text({ doc, max: 3 })], good: ['abc', null, MISSING], bad: ['abcd', 1] },
  { of: 'OneOf', decorators: [OneOf(['red', 'blue'], { doc })], good: ['red', 'blue'], bad: ['green', '', 'RED', ...NOT_TEXT] },
  { of: 'nullable OneOf', decorators: [OneOf(['red'], { doc, nullable: true })], good: ['red', null], bad: ['null', MISSING] },
  { of: 'Flag', decorators: [Flag({ doc })], good: [true, false], bad: ['true', 0, 1, null, MISSING] },
  {
    of: 'Integer',
    decorators: [Integer({ doc })],
    good: [0, -1, 1.0, Number.MAX_SAFE_INTEGER],
    bad: [1.5, '1', Number.NaN, Infinity, 2 ** 53, true, null, MISSING],
  },
  { of: 'Integer with a default', decorators: [Integer({ doc, default: 3 })], good: [0, null, MISSING], bad: ['1'] },
  { of: 'Flag with a default', decorators: [Flag({ doc, default: false })], good: [true, null, MISSING], bad: ['true'] },
  { of: 'Integer within bounds', decorators: [Integer({ doc, minimum: 1, maximum: 3 })], good: [1, 3], bad: [0, 4] },
  {
    of: 'Time',
    decorators: [Time({ doc })],
    good: ['2026-01-15T12:00:00.000Z', '2024-02-29T23:59:59+05:30', '2026-01-15T12:00:00Z'],
    bad: ['2026-02-29T12:00:00Z', '2026-13-01T00:00:00Z', '2026-01-15T24:00:00Z', '2026-01-15 12:00:00Z', '2026-01-15T12:00:00', 'now', 0, null, MISSING],
  },
  { of: 'MapOfText', decorators: [MapOfText({ doc })], good: [{}, [], { a: 'b', c: null, d: 1 }], bad: [['a'], 'a', 1, null, MISSING] },
  { of: 'Json', decorators: [Json({ doc })], good: [{}, [], 'a', 0, false, null], bad: [MISSING] },
  {
    of: 'Nested',
    decorators: [Nested(() => Part, { doc })],
    good: [{ name: 'abc' }, { name: '', other: 1 }],
    bad: [{}, { name: 'abcd' }, { name: null }, [], 'a', null, MISSING],
  },
  {
    of: 'ListOf classes',
    decorators: [ListOf(() => Part, { doc, maxItems: 2 })],
    good: [[], [{ name: 'a' }]],
    bad: [[{}], [{ name: 'a' }, { name: 1 }], [null], [1, 2, 3], {}, 'a', null, MISSING],
  },
  {
    of: 'ListOf texts',
    decorators: [ListOf({ text: { max: 2 } }, { doc, minItems: 1 })],
    good: [['a'], ['a', 'bc']],
    bad: [[], ['abc'], [1], ['\0'], 'a', null],
  },
  { of: 'ListOf values', decorators: [ListOf({ oneOf: ['a'] }, { doc })], good: [[], ['a', 'a']], bad: [['b'], [null], 'a'] },
];

let counter = 0;
/** An operation with one field `value` that is decorated so. */
function operationWith(decorators: readonly PropertyDecorator[]): Class<{ value: unknown }> {
  const type = { [`Example${++counter}`]: class extends Command<void> {} }[`Example${counter}`]!;
  for (const decorate of [...decorators].reverse()) decorate(type.prototype, 'value');
  Operation({ post: `/examples/${counter}`, owner: 'identity', summary: 'An example', answers: empty(204) })(type);
  return type as unknown as Class<{ value: unknown }>;
}

const shown = (value: unknown): string => (value === MISSING ? 'nothing' : typeof value === 'number' ? String(value) : JSON.stringify(value).slice(0, 40));

describe.each(TABLE)('$of', ({ decorators, good, bad }) => {
  const type = operationWith(decorators);
  const validate = validatorOf(operationOf(type));
  const request = (value: unknown): void => void validate({}, {}, structuredClone(value === MISSING ? {} : { value }));
  const classValidator = (value: unknown): number => validateSync(Object.assign(new type(), structuredClone(value === MISSING ? {} : { value }))).length;

  it.each(good.map((value) => [shown(value), value]))('takes %s, in a request and by class-validator', (_, value) => {
    expect(() => request(value)).not.toThrow();
    expect(classValidator(value)).toBe(0);
  });

  it.each(bad.map((value) => [shown(value), value]))('refuses %s, in a request and by class-validator', (_, value) => {
    expect(() => request(value)).toThrow('Validation failed.');
    expect(classValidator(value)).toBe(1);
  });
});

describe('a class-validator rule', () => {
  it('says what is wrong', () => {
    class Setting {
      @Integer({ doc, minimum: 1, maximum: 65535 }) port!: number;
    }
    expect(validateSync(Object.assign(new Setting(), { port: 0 })).map((error) => error.constraints)).toEqual([{ field: 'port must be at least 1.' }]);
  });

  it('holds for the classes below the one that declares it', () => {
    class Below extends Part {
      @Flag({ doc }) flag!: boolean;
    }
    expect(validateSync(Object.assign(new Below(), { name: 'abcd', flag: 1 })).map((error) => error.property)).toEqual(['flag', 'name']);
  });
});
