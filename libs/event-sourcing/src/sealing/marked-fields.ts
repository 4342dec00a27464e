import { eventDataOf, isPublicEventName } from '#libs/contracts/src/events';
import { fieldsOf, type Field } from '#libs/contracts/src/field';
import type { Class } from '#libs/contracts/src/operation';
import type { Path } from './sealed-paths.ts';

/** What contract classes mark, as paths within a resource; `*` for every item of a list. */
export interface MarkedFields {
  readonly personal: readonly Path[];
  readonly secret: readonly Path[];
}

/** What is marked in the events of a type. */
export type MarkedFieldsOf = (type: string) => MarkedFields;

const NONE: MarkedFields = { personal: [], secret: [] };

/**
 * Reads it off the contracts. `resources` are classes by the resource that event types begin with (`webhook_endpoint`), for events whose facts are fields of it; what
 * is public of an event has its class among the public events.
 */
export function markedFieldsOf(resources: Readonly<Record<string, Class>>): MarkedFieldsOf {
  const known = new Map<string, MarkedFields>();
  return (type) => {
    let marked = known.get(type);
    if (marked === undefined) {
      const classes = [resources[type.slice(0, type.lastIndexOf('.'))], isPublicEventName(type) ? eventDataOf(type) : null];
      marked = merged(classes.map((each) => (each ? markedIn(each) : NONE)));
      known.set(type, marked);
    }
    return marked;
  };
}

export function markedIn(type: Class): MarkedFields {
  return within(type, '', []);
}

function within(type: Class, above: string, classes: readonly Class[]): MarkedFields {
  // A class that holds itself adds nothing at the second look.
  if (classes.includes(type)) return NONE;
  return merged(
    fieldsOf(type).map((field) => {
      const path = above + field.name;
      if (field.secret) return { ...NONE, secret: [path] };
      if (field.personal) return { ...NONE, personal: [path] };
      if (field.kind === 'nested') return within(field.of(), `${path}.`, [...classes, type]);
      return isListOfNested(field) ? within(field.items.of(), `${path}.*.`, [...classes, type]) : NONE;
    }),
  );
}

function isListOfNested(field: Field): field is Field & { readonly kind: 'list'; readonly items: { readonly kind: 'nested' } } {
  return field.kind === 'list' && field.items.kind === 'nested';
}

function merged(all: readonly MarkedFields[]): MarkedFields {
  const of = (kind: keyof MarkedFields): readonly Path[] => [...new Set(all.flatMap((marked) => marked[kind]))];
  return { personal: of('personal'), secret: of('secret') };
}
