import { objectSchema, type Nest, type Purpose, type Schema } from './json-schema.ts';
import type { Class } from './operation.ts';

/** One schema per class, under the class's name, for a document that refers to them. */
export class Components {
  private readonly types = new Map<string, { readonly type: Class; readonly schema: Schema }>();

  readonly nest: Nest = (type: Class, purpose: Purpose) => {
    const known = this.types.get(type.name);
    if (known === undefined) {
      // Reserved before it is derived: a class may contain itself.
      this.types.set(type.name, { type, schema: {} });
      this.types.set(type.name, { type, schema: objectSchema(type, purpose, this.nest) });
    } else if (known.type !== type) {
      throw new Error(`Two contract classes are called ${type.name}.`);
    }
    return { $ref: `#/components/schemas/${type.name}` };
  };

  /** Those that were named so far, and others that have no class. */
  schemas(others: Readonly<Record<string, Schema>> = {}): Readonly<Record<string, Schema>> {
    const named = [...this.types].map(([name, { schema }]): [string, Schema] => [name, schema]);
    return Object.fromEntries([...named, ...Object.entries(others)].sort(([one], [other]) => compare(one, other)));
  }
}

/** By code units: the same order on every machine. */
export function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
