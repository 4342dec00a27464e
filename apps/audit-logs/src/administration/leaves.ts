import { isObject } from '#libs/event-sourcing/src/deciding/changes.decider';
import { isQuotingSealed } from '#libs/event-sourcing/src/sealing/vault';

/** What an object says, by the names on the way to each value, secrets as they lie sealed; a list is one value. */
export type Leaves = ReadonlyMap<string, unknown>;

/** Stands for every secret: that there is one is told, and that it changed. */
const SECRET = '(secret)';
const BETWEEN = '-';

export function leavesOf(value: object): Leaves {
  const leaves = new Map<string, unknown>();
  const add = (part: object, above: string): void => {
    for (const [name, each] of Object.entries(part))
      if (isObject(each)) add(each, `${above}${name}${BETWEEN}`);
      else if (each !== undefined) leaves.set(above + name, each);
  };
  add(value, '');
  return leaves;
}

/** As it may be told. */
export function tellable(leaves: Leaves): Leaves {
  return new Map([...leaves].map(([path, value]) => [path, withoutSecrets(value)]));
}

/** The first names alone, with everything below as one value. */
export function gathered(leaves: Leaves): Leaves {
  const parts = new Map<string, Record<string, unknown>>();
  for (const [path, value] of leaves) {
    const [first = '', ...below] = path.split(BETWEEN);
    parts.set(first, { ...parts.get(first), [below.join(BETWEEN)]: value });
  }
  return new Map([...parts].map(([first, part]) => [first, Object.keys(part).join('') === '' ? part[''] : part]));
}

function withoutSecrets(value: unknown): unknown {
  if (isQuotingSealed(value)) return SECRET;
  if (Array.isArray(value)) return value.map(withoutSecrets);
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutSecrets(each)])) : value;
}
