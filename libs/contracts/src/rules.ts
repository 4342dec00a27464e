import { registerDecorator } from 'class-validator/cjs/register-decorator.js';
import { checkerOf, type Checker } from './checker.ts';
import { fieldsOf, mayBeAbsent, type Field } from './field.ts';
import { fieldSchema } from './json-schema.ts';
import type { Class } from './operation.ts';
import { unsetNulls } from './unset-nulls.ts';

/**
 * Gives a field its class-validator rule, for controllers behind Nest's `ValidationPipe`. The rule runs the field's own
 * schema, so it cannot disagree with what requests are held to.
 */
export function addRule(prototype: object, name: string): void {
  registerDecorator({
    name: 'field',
    target: prototype.constructor,
    propertyName: name,
    validator: {
      validate: (value, validation) => problemOf(validation!.object, name, value) === null,
      defaultMessage: (validation) => problemOf(validation!.object, name, validation!.value) ?? '',
    },
  });
}

const checkers = new WeakMap<Field, Checker>();

function problemOf(object: object, name: string, value: unknown): string | null {
  // Asked only now: whether a field is optional is decorated after it.
  const field = fieldsOf(object.constructor as Class).find((candidate) => candidate.name === name);
  if (field === undefined) return null;
  let check = checkers.get(field);
  if (check === undefined) {
    check = checkerOf({ type: 'object', properties: { [name]: fieldSchema(field, 'check') }, required: mayBeAbsent(field) ? [] : [name] });
    checkers.set(field, check);
  }
  const values = { [name]: value };
  unsetNulls([field])(values);
  return (
    check(values)
      ?.map((error) => error.message)
      .join(' ') ?? null
  );
}
