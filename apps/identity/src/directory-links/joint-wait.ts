/**
 * A wait that many have in common. Each is over only once a wait has ended that began after they came: of those who come while one goes on, the next serves all.
 */
export class JointWait {
  private running: Promise<unknown> = Promise.resolve();
  private next: Promise<void> | null = null;

  constructor(private readonly wait: () => Promise<void>) {}

  /** @throws as the wait that served it */
  over(): Promise<void> {
    return (this.next ??= this.begun());
  }

  private async begun(): Promise<void> {
    await this.running;
    this.next = null;
    const waiting = this.wait();
    // How one ends is for those to know whom it served.
    this.running = waiting.catch(() => {});
    await waiting;
  }
}
