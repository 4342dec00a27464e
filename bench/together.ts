/** Does the work for each of these, so many at a time; answers in their order. */
export async function together<Item, Result>(items: readonly Item[], atOnce: number, work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  let at = 0;
  const next = async (): Promise<void> => {
    for (let index = at++; index < items.length; index = at++) results[index] = await work(items[index]!);
  };
  await Promise.all(Array.from({ length: atOnce }, next));
  return results;
}
