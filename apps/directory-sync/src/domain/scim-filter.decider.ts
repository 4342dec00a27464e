import { foldedText } from '#libs/platform/src/folded-text.decider';
import { attributeNamed, subAttributeNamed, type ResourceKind } from './scim-schema.decider.ts';
import { CUSTOM_ATTRIBUTES, ENTERPRISE_SCHEMA, foldedValue, isObject, OWN_SCHEMA, stepsOf, truthOf, valuesAt } from './scim-values.decider.ts';

/** A filter as it was read. Paths are as they were written. */
export type ScimFilter =
  | { readonly op: 'and' | 'or'; readonly filters: readonly ScimFilter[] }
  | { readonly op: 'not'; readonly filter: ScimFilter }
  | { readonly op: 'pr'; readonly path: string }
  | { readonly op: '[]'; readonly path: string; readonly filter: ScimFilter }
  | Comparison;

export interface Comparison {
  readonly op: 'eq' | 'ne' | 'co' | 'sw' | 'ew' | 'gt' | 'lt' | 'ge' | 'le';
  readonly path: string;
  readonly value: string | number | boolean | null;
}

/** What all has to hold. */
export function conjunctsOf(filter: ScimFilter): readonly ScimFilter[] {
  return filter.op === 'and' ? filter.filters.flatMap(conjunctsOf) : [filter];
}

/** What a filter says of one kind of resource beside that it is of this kind: null where that was all, `none` where it asks for another kind. */
export function filterOf(kind: ResourceKind, filter: ScimFilter): ScimFilter | null | 'none' {
  const parts = conjunctsOf(filter);
  const kinds = parts.filter((part): part is Comparison => part.op === 'eq' && part.path.toLowerCase() === 'meta.resourcetype');
  if (kinds.some(({ value }) => String(value).toLowerCase() !== kind.toLowerCase())) return 'none';
  if (kinds.length === 0) return filter;
  const rest = parts.filter((part) => !kinds.includes(part as Comparison));
  return rest.length === 0 ? null : { op: 'and', filters: rest };
}

/** Whether each attribute that a filter names is one of some of these kinds. Of schemas that are not ours nothing is known. */
export function isKnown(filter: ScimFilter, kinds: readonly ResourceKind[]): boolean {
  return pathsOf(filter).every((path) => kinds.some((kind) => isAttribute(kind, stepsOf(path))));
}

const TIMES: ReadonlySet<string> = new Set(['meta.lastmodified', 'meta.created']);
const OF_TIMES: ReadonlySet<string> = new Set(['eq', 'ne', 'gt', 'ge', 'lt', 'le']);

/** Whether what a filter compares times with are times: nothing is before or after anything else. */
export function comparesTimes(filter: ScimFilter): boolean {
  switch (filter.op) {
    case 'and':
    case 'or':
      return filter.filters.every(comparesTimes);
    case 'not':
    case '[]':
      return comparesTimes(filter.filter);
    case 'pr':
      return true;
    default:
      return (
        !TIMES.has(stepsOf(filter.path).join('.').toLowerCase()) ||
        !OF_TIMES.has(filter.op) ||
        (typeof filter.value === 'string' && !Number.isNaN(Date.parse(filter.value)))
      );
  }
}

/** What an answer has and nobody keeps with the resource: it is not looked at where filters are. */
const MADE_FOR_ANSWERS: Readonly<Record<ResourceKind, readonly (readonly string[])[]>> = {
  User: [['groups'], [OWN_SCHEMA.toLowerCase(), CUSTOM_ATTRIBUTES.toLowerCase()], ['meta', 'location']],
  Group: [['members'], ['meta', 'location']],
};

/** Whether a filter names something of this kind of resource that no look at the resource tells. */
export function asksForMore(kind: ResourceKind, filter: ScimFilter): boolean {
  return pathsOf(filter).some((path) => {
    const steps = stepsOf(path).map((step) => step.toLowerCase());
    return MADE_FOR_ANSWERS[kind].some((names) => names.every((name, place) => steps[place] === name));
  });
}

function pathsOf(filter: ScimFilter): readonly string[] {
  switch (filter.op) {
    case 'and':
    case 'or':
      return filter.filters.flatMap(pathsOf);
    case 'not':
      return pathsOf(filter.filter);
    case '[]':
      return pathsOf(filter.filter).map((path) => `${filter.path}.${path}`);
    default:
      return [filter.path];
  }
}

function isAttribute(kind: ResourceKind, [first = '', ...others]: readonly string[]): boolean {
  const isOfSchema = first.toLowerCase().startsWith('urn:');
  if (isOfSchema && ![ENTERPRISE_SCHEMA, OWN_SCHEMA].some((schema) => schema.toLowerCase() === first.toLowerCase())) return true;
  const [name, ...below] = isOfSchema ? others : [first, ...others];
  if (name === undefined) return true;
  const attribute = isOfSchema ? attributeNamed(kind, name, first) : attributeNamed(kind, name);
  const [sub, ...more] = below;
  if (attribute === null || more.length > 0) return false;
  if (sub === undefined) return true;
  return attribute.type === 'complex' && (attribute.subAttributes === undefined || subAttributeNamed(attribute, sub) !== null);
}

/** How much there is in a filter to look at. */
export function termsOf(filter: ScimFilter): number {
  switch (filter.op) {
    case 'and':
    case 'or':
      return filter.filters.reduce((sum, each) => sum + termsOf(each), 0);
    case 'not':
    case '[]':
      return 1 + termsOf(filter.filter);
    default:
      return 1;
  }
}

/** Attributes whose case counts (RFC 7643); of all others it does not. */
const EXACT: ReadonlySet<string> = new Set(['id', 'externalid', '$ref', 'meta.location', 'meta.version', 'members.value', 'members', 'manager.value']);

/** Whether something fits a filter. */
export function fits(value: unknown, filter: ScimFilter, above = ''): boolean {
  switch (filter.op) {
    case 'and':
      return filter.filters.every((each) => fits(value, each, above));
    case 'or':
      return filter.filters.some((each) => fits(value, each, above));
    case 'not':
      return !fits(value, filter.filter, above);
    case 'pr':
      return valuesAt(value, stepsOf(filter.path)).some((found) => found !== '' && !(isObject(found) && Object.keys(found).length === 0));
    case '[]':
      return valuesAt(value, stepsOf(filter.path)).some((item) => fits(item, filter.filter, `${filter.path}.`));
    default:
      return compares(value, filter, above);
  }
}

function compares(value: unknown, { op, path, value: wanted }: Comparison, above: string): boolean {
  const found = valuesAt(value, stepsOf(path)).map((each) => (isObject(each) && 'value' in each ? each['value'] : each));
  // As indexes and claims have it: who is looked for by a name that nobody else can have is found.
  const fold = EXACT.has(`${above}${path}`.toLowerCase())
    ? (text: string): string => text
    : op === 'eq' || op === 'ne' || op === 'sw'
      ? foldedValue
      : foldedText;
  if (wanted === null) return op === 'eq' ? found.length === 0 : op === 'ne' && found.length > 0;
  if (op === 'ne') return !found.some((each) => isEqual(each, wanted, fold));
  return found.some((each) => {
    if (op === 'eq') return isEqual(each, wanted, fold);
    if (typeof each === 'number' && typeof wanted === 'number') return ordered(op, each - wanted);
    if (typeof each !== 'string' || typeof wanted !== 'string') return false;
    const [one, other] = [fold(each), fold(wanted)];
    switch (op) {
      case 'co':
        return one.includes(other);
      case 'sw':
        return one.startsWith(other);
      case 'ew':
        return one.endsWith(other);
      default:
        return ordered(op, orderOf(one, other));
    }
  });
}

function isEqual(one: unknown, wanted: string | number | boolean, fold: (text: string) => string): boolean {
  // Entra writes truth values as text, of either side.
  if (typeof one === 'boolean' || typeof wanted === 'boolean') return truthOf(one) !== null && truthOf(one) === truthOf(wanted);
  if (typeof one === 'string' && typeof wanted === 'string') return fold(one) === fold(wanted);
  return one === wanted;
}

/** Times sort as times, whatever the number of digits; other texts by their characters. */
function orderOf(one: string, other: string): number {
  const [first, second] = [Date.parse(one), Date.parse(other)];
  if (!Number.isNaN(first) && !Number.isNaN(second)) return first - second;
  return one < other ? -1 : one === other ? 0 : 1;
}

function ordered(op: Comparison['op'], difference: number): boolean {
  switch (op) {
    case 'gt':
      return difference > 0;
    case 'ge':
      return difference >= 0;
    case 'lt':
      return difference < 0;
    default:
      return op === 'le' && difference <= 0;
  }
}
