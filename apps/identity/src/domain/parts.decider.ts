import { isObject } from '#libs/event-sourcing/src/deciding/changes.decider';

/** Any part of an object, at any depth; lists are one value. */
export type PartOf<T> = {
  readonly [Name in keyof T]?: T[Name] extends readonly unknown[] | null ? T[Name] : T[Name] extends object ? PartOf<T[Name]> : T[Name];
};

/** Objects are merged at any depth; everything else is replaced. */
export function merged<T extends object>(base: T, change: object): T {
  const result = { ...base } as Record<string, unknown>;
  for (const [name, value] of Object.entries(change)) {
    const before = result[name];
    result[name] = isObject(value) ? merged(isObject(before) ? before : {}, value) : value;
  }
  return result as T;
}

/** What of a change differs from what is there; null where nothing does. */
export function difference<T extends object>(base: object, change: object): PartOf<T> | null {
  const before = base as Readonly<Record<string, unknown>>;
  const different = Object.entries(change).flatMap(([name, value]) => {
    if (value === undefined) return [];
    if (isObject(value)) {
      const inner = difference(isObject(before[name]) ? before[name] : {}, value);
      return inner === null ? [] : [[name, inner]];
    }
    return JSON.stringify(before[name]) === JSON.stringify(value) ? [] : [[name, value]];
  });
  return different.length === 0 ? null : (Object.fromEntries(different) as PartOf<T>);
}
