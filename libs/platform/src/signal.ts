/** Those who wait until something has arrived. */
export class Signal {
  private readonly waiting = new Set<() => void>();

  /** Resolves when it is told next, or once the signal has aborted. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const done = (): void => {
        signal.removeEventListener('abort', done);
        this.waiting.delete(done);
        resolve();
      };
      this.waiting.add(done);
      signal.addEventListener('abort', done);
    });
  }

  /** Whoever waits goes on. */
  notify(): void {
    for (const done of this.waiting) done();
  }
}
