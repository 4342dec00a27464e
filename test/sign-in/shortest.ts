/** As few of the items, in their order, as still fail; all of them do. Half of them are left out at a time, then a quarter, until it is one; asks at most so often. */
export async function shortest<T>(items: readonly T[], fails: (some: readonly T[]) => Promise<boolean>, most: number): Promise<readonly T[]> {
  let [left, asked] = [items, 0];
  for (let size = Math.ceil(items.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = left.length - size; from > -size && asked < most; from -= size, asked++) {
      const some = [...left.slice(0, Math.max(0, from)), ...left.slice(from + size)];
      if (some.length > 0 && (await fails(some))) left = some;
    }
  return left;
}
