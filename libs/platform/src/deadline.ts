/** Resolves once the signal has aborted. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}

/** What `work` answers, or `late` where it takes longer: then it goes on, and what comes of it is dropped. */
export async function within<Answer>(work: Promise<Answer>, milliseconds: number, late: () => Error): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    // What is waited for keeps the process running; the wait itself does not.
    timer = setTimeout(() => reject(late()), Math.max(0, milliseconds)).unref();
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
