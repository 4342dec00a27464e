import { fieldsOf, type Field, type ListItems } from './field.ts';
import { prefixOf, ULID_EXAMPLE } from './json-schema.ts';
import type { Class } from './operation.ts';

/** An object of a class as the docs show it: what must be there, and what says what it looks like; everything where that leaves nothing. */
export function exampleOf(type: Class): Readonly<Record<string, unknown>> {
  return exampleOfFields(fieldsOf(type));
}

export function exampleOfFields(fields: readonly Field[]): Readonly<Record<string, unknown>> {
  const telling = fields.filter((field) => !field.optional || field.example !== undefined);
  return Object.fromEntries((telling.length > 0 ? telling : fields).map((field) => [field.name, exampleOfField(field)]));
}

/** The example that its decorator gives, or one that its kind and its limits allow. */
export function exampleOfField(field: Field): unknown {
  if (field.example !== undefined) return field.example;
  switch (field.kind) {
    case 'const':
      return field.value;
    case 'id':
      return `${field.prefix}_${ULID_EXAMPLE}`;
    case 'ref': {
      const prefix = prefixOf(field.of());
      return prefix === null ? ULID_EXAMPLE : `${prefix}_${ULID_EXAMPLE}`;
    }
    case 'text':
      return field.nullable === true ? null : textExample(field);
    case 'time':
      return textExample({ format: 'date-time' });
    case 'oneOf':
      return field.values[0];
    case 'flag':
      return field.default ?? false;
    case 'integer':
      return field.default ?? field.values?.[0] ?? field.minimum ?? 1;
    case 'map':
      return { plan: 'gold' };
    case 'values':
      return { plan: 'gold', seats: 25 };
    case 'json':
      return {};
    case 'nested':
      return field.nullable === true ? null : exampleOf(field.of());
    case 'list':
      return [itemExample(field.items)];
  }
}

function itemExample(items: ListItems): unknown {
  if (items.kind === 'nested') return exampleOf(items.of());
  return items.kind === 'oneOf' ? items.values[0] : textExample(items);
}

const FORMAT_EXAMPLES = {
  'date-time': '2026-01-15T12:00:00.000Z',
  'date-or-time': '2026-01-15',
  uri: 'https://acme.test/webhooks',
  hostname: 'acme.test',
  email: 'ada@acme.test',
} as const;

function textExample({ format, min = 0, max = Infinity }: Omit<Extract<ListItems, { kind: 'text' }>, 'kind'>): string {
  if (format !== undefined) return FORMAT_EXAMPLES[format];
  return 'example'.padEnd(min, '.').slice(0, max);
}
