/** What of the named fields is given and differs, as it is from now on. What is absent in the state is null. */
export function changes<State extends object, Given extends object, Field extends keyof State & keyof Given>(
  state: State,
  given: Given,
  fields: readonly Field[],
): { readonly [Name in Field]?: Exclude<Given[Name], undefined> } {
  const changed = fields.filter((field) => given[field] !== undefined && !isSame(given[field], state[field] ?? null));
  return Object.fromEntries(changed.map((field) => [field, given[field]])) as { [Name in Field]?: Exclude<Given[Name], undefined> };
}

/** The names of the fields of a record, in the type that it has. */
export function namesOf<Fields extends object>(fields: Fields): readonly (keyof Fields & string)[] {
  return Object.keys(fields) as (keyof Fields & string)[];
}

/** Maps of texts are the same whatever the order of their keys. */
function isSame(one: unknown, other: unknown): boolean {
  if (!isObject(one) || !isObject(other)) return one === other;
  const entries = Object.entries(one);
  return entries.length === Object.keys(other).length && entries.every(([key, value]) => Object.hasOwn(other, key) && other[key] === value);
}

/** Of what JSON can say. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
