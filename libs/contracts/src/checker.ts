import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { FieldError } from '#libs/platform/src/domain-error';
import { isPlainText } from '#libs/platform/src/plain-text.decider';
import type { Schema } from './json-schema.ts';
import { FORMAT_NAMES, isVisibleText, TEXT_FORMATS, type TextFormat } from './text-formats.ts';

/** A body can be wrong in as many places as it has bytes. */
const MAX_ERRORS = 100;

const ajv = new Ajv({ allErrors: true, removeAdditional: true, useDefaults: true, allowUnionTypes: true });
for (const [name, validate] of Object.entries(TEXT_FORMATS)) ajv.addFormat(name, { type: 'string', validate });
// oxlint-disable-next-line no-control-regex -- NUL is what must not occur
const ASCII = /^[\x01-\x7f]*$/;
const CHARACTERS = { ascii: (text: string) => ASCII.test(text), visible: isVisibleText, text: isPlainText } as const;
ajv.addKeyword({
  keyword: 'characters',
  type: 'string',
  schemaType: 'string',
  compile: (characters: keyof typeof CHARACTERS) => CHARACTERS[characters],
  errors: false,
});

/** Finds what is wrong with a value; null when nothing is. Removes from nested objects what their class does not declare, and sets defaults. */
export type Checker = (value: unknown) => readonly FieldError[] | null;

/** Compiled at the first use: doing it for every operation would be a good part of the time to the start. */
export function checkerOf(schema: Schema): Checker {
  let check: ValidateFunction | undefined;
  return (value) => {
    check ??= ajv.compile(schema);
    return check(value) ? null : fieldErrors(check.errors!);
  };
}

function fieldErrors(errors: readonly ErrorObject[]): readonly FieldError[] {
  return (
    errors
      // Of a name that breaks its form, `propertyNames` tells.
      .filter((error) => error.keyword !== 'if' && error.propertyName === undefined)
      .slice(0, MAX_ERRORS)
      .map((error) => {
        const path = error.instancePath.slice(1).replaceAll('/', '.');
        const parameters = error.params as Record<string, unknown>;
        if (error.keyword === 'required') {
          const missing = String(parameters['missingProperty']);
          const field = path === '' ? missing : `${path}.${missing}`;
          return { code: 'required', field, message: `${field} is required.` };
        }
        const { code, message } = PROBLEMS[error.keyword] ?? { code: 'invalid', message: () => 'is invalid' };
        return { code, field: path, message: `${path} ${message(parameters)}.` };
      })
  );
}

type Problem = { readonly code: string; readonly message: (parameters: Record<string, unknown>) => string };

/** What each keyword of a schema is called when it fails. The codes are public: they may grow, and never change. */
const PROBLEMS: Readonly<Record<string, Problem>> = {
  type: { code: 'invalid_type', message: ({ type }) => `must be of type ${[type].flat().join(' or ')}` },
  enum: { code: 'not_allowed', message: ({ allowedValues }) => `must be one of ${shown(allowedValues as readonly unknown[])}` },
  const: { code: 'not_allowed', message: ({ allowedValue }) => `must be ${String(allowedValue)}` },
  minLength: { code: 'too_short', message: ({ limit }) => `must have at least ${String(limit)} characters` },
  maxLength: { code: 'too_long', message: ({ limit }) => `must have at most ${String(limit)} characters` },
  pattern: { code: 'invalid_format', message: () => 'has the wrong form' },
  format: { code: 'invalid_format', message: ({ format }) => `must be ${FORMAT_NAMES[format as TextFormat]}` },
  characters: { code: 'invalid_characters', message: () => 'has characters that are not allowed' },
  minItems: { code: 'too_few', message: ({ limit }) => `must have at least ${String(limit)} items` },
  maxProperties: { code: 'too_many', message: ({ limit }) => `must have at most ${String(limit)} names` },
  propertyNames: {
    code: 'invalid_name',
    message: () => 'has a name that is longer than 40 characters, or has others than letters, digits, hyphens and underscores',
  },
  maxItems: { code: 'too_many', message: ({ limit }) => `must have at most ${String(limit)} items` },
  minimum: { code: 'out_of_range', message: ({ limit }) => `must be at least ${String(limit)}` },
  maximum: { code: 'out_of_range', message: ({ limit }) => `must be at most ${String(limit)}` },
};

/** The values of an enumeration for a message; a list of a hundred event names is left to the docs. */
function shown(values: readonly unknown[]): string {
  return values.length <= 10
    ? values
        .filter((value) => value !== null)
        .map(String)
        .join(', ')
    : 'the documented values';
}
