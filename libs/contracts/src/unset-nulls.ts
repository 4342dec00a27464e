import { fieldsOf, mayBeAbsent, type Field } from './field.ts';

type Values = Record<string, unknown>;

/**
 * Takes from what a request gave the nulls that mean "not given", at every depth: clients of typed languages write what was never set as null. Null stays where
 * a field may be null, and where a field is required, which refuses it. `[]` becomes `{}` where an object is expected: PHP writes an empty one so.
 */
export function unsetNulls(fields: readonly Field[]): (values: Values) => void {
  const steps = fields.flatMap((field) => stepsOf(field));
  return (values) => {
    for (const step of steps) step(values);
  };
}

function stepsOf(field: Field): readonly ((values: Values) => void)[] {
  const { name } = field;
  const inner = innerOf(field);
  return [
    ...(mayBeAbsent(field) && field.nullable !== true && field.kind !== 'json'
      ? [
          (values: Values): void => {
            if (values[name] === null) delete values[name];
          },
        ]
      : []),
    ...(inner === null
      ? []
      : [
          (values: Values): void => {
            if (values[name] !== undefined) values[name] = inner(values[name]);
          },
        ]),
  ];
}

/** What becomes of the value of a field that holds objects; null for other fields. */
function innerOf(field: Field): ((value: unknown) => unknown) | null {
  if (field.kind === 'map') return objectOf;
  if (field.kind === 'values') return givenValuesOf;
  if (field.kind === 'nested') return objectReader(field.of);
  if (field.kind !== 'list' || field.items.kind !== 'nested') return null;
  const read = objectReader(field.items.of);
  return (value) => (Array.isArray(value) ? value.map(read) : value);
}

function objectReader(of: Extract<Field, { kind: 'nested' }>['of']): (value: unknown) => unknown {
  let unset: ((values: Values) => void) | undefined;
  return (given) => {
    const value = objectOf(given);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    unset ??= unsetNulls(fieldsOf(of()));
    unset(value as Values);
    return value;
  };
}

function givenValuesOf(given: unknown): unknown {
  const value = objectOf(given);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  for (const name of Object.keys(value)) if ((value as Values)[name] === null) delete (value as Values)[name];
  return value;
}

function objectOf(value: unknown): unknown {
  return Array.isArray(value) && value.length === 0 ? {} : value;
}
