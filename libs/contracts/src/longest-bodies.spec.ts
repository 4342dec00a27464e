import './all.ts';
import { CreateAuditLogExport } from './audit-log-exports/operations.ts';
import { CreateAuditLogSchema } from './audit-log-schemas/operations.ts';
import { CreateAuditLogEvent } from './audit-logs/operations.ts';
import { fieldsOf, type Field, type ListItems } from './field.ts';
import { placesOf } from './json-schema.ts';
import { MAX_BODY, operations } from './operation.ts';

/** Bytes of the longest JSON, and how many keys it has. */
interface Extent {
  readonly bytes: number;
  readonly keys: number;
}

/** What a list holds where its field does not say; of domains an organization has so many. */
const MAX_ITEMS = 1_000;
const MAX_DOMAINS = 100;
/** 50 pairs, of 40 and 600 characters. */
const METADATA: Extent = { bytes: 2 + 50 * (40 + 600 + 6), keys: 50 };
/** What the gateway lets through in a body of more than 4 KiB. */
const MAX_KEYS = 2_000;

function extentOf(fields: readonly Field[]): Extent {
  const extents = fields.map((field) => [field.name, valueOf(field)] as const);
  return {
    bytes: 2 + extents.reduce((sum, [name, { bytes }]) => sum + name.length + 4 + bytes, 0),
    keys: extents.reduce((sum, [, { keys }]) => sum + 1 + keys, 0),
  };
}

function valueOf(field: Field): Extent {
  switch (field.kind) {
    case 'map':
      return METADATA;
    case 'nested':
      return extentOf(fieldsOf(field.of()));
    case 'list': {
      const { bytes, keys } = itemOf(field.items);
      const most = field.name.startsWith('domain') ? MAX_DOMAINS : MAX_ITEMS;
      const count = Math.min(field.maxItems ?? most, countOf(field.items));
      return { bytes: 2 + count * (bytes + 1), keys: count * keys };
    }
    case 'text':
      return textOf(field);
    case 'oneOf':
      return { bytes: Math.max(...field.values.map((value) => value.length)) + 2, keys: 0 };
    // Audit events are limited as a whole: see below.
    case 'values':
    case 'json':
      throw new Error(`${field.name}: nobody knows how long it may be.`);
    default:
      return { bytes: 130, keys: 0 };
  }
}

function itemOf(items: ListItems): Extent {
  if (items.kind === 'nested') return extentOf(fieldsOf(items.of()));
  return items.kind === 'text' ? textOf(items) : { bytes: Math.max(...items.values.map((value) => value.length)) + 2, keys: 0 };
}

/** As often as a list is known to have something to name. */
function countOf(items: ListItems): number {
  if (items.kind === 'oneOf') return items.values.length;
  return items.kind === 'text' ? (items.known?.length ?? Infinity) : Infinity;
}

/** Ids, slugs and times are ASCII, also where their fields take any text. */
function textOf({ max = 128, ascii, pattern }: { readonly max?: number; readonly ascii?: true; readonly pattern?: RegExp }): Extent {
  return { bytes: 2 + max * (ascii === true || pattern !== undefined || max <= 128 ? 1 : 4), keys: 0 };
}

/** Of these the whole has a limit that is less than its parts come to. */
const LIMITED: readonly string[] = [CreateAuditLogEvent.name, CreateAuditLogExport.name, CreateAuditLogSchema.name];
const taken = operations().filter(
  ({ name, ...operation }) => operation.route !== null && placesOf({ name, ...operation }).body.length > 0 && !LIMITED.includes(name),
);

it.each(taken.map((operation) => [operation.name, operation] as const))('%s takes the longest body that its fields allow', (_, operation) => {
  const { bytes, keys } = extentOf(placesOf(operation).body);
  expect(bytes).toBeLessThanOrEqual(operation.options.maxBody ?? MAX_BODY);
  expect(keys).toBeLessThanOrEqual(MAX_KEYS);
});
