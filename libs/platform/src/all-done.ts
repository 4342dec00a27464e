/** What became of all of them; the first that failed in this order fails all, once none goes on any more. */
export async function allDone<Done>(work: readonly Promise<Done>[]): Promise<readonly Done[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}
