/** Does the work for each of these, so many at a time; answers in their order. Once something of it fails nothing more is begun, and all that was has ended when this rejects. */
export async function inTurns<Item, Result>(items: readonly Item[], atOnce: number, work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  const rest = items.entries();
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    try {
      for (const [place, item] of rest) {
        results[place] = await work(item);
        if (hasFailed) return;
      }
    } catch (error) {
      hasFailed = true;
      throw error;
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  const failed = ended.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
  return results;
}
