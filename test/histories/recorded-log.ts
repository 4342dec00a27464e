import type { Position, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { GivenSuite } from '#libs/testing/src/suite';

/** What is recorded from a position on, read once for everybody who asks. */
export class RecordedLog {
  private readonly byEnvironment = new Map<string, RecordedEvent[]>();
  private readonly ending = new AbortController();
  private failure: Error | null = null;
  private wake: () => void = () => {};
  private next = this.awaitingNext();

  constructor(
    private readonly suite: GivenSuite,
    private reached: Position,
  ) {
    void this.follow();
  }

  /** Everything of an environment that was recorded before the call, oldest first. */
  async of(environment: string): Promise<readonly RecordedEvent[]> {
    const head = await this.suite.head();
    while (this.reached < head) {
      if (this.failure !== null) throw this.failure;
      await this.next;
    }
    return this.byEnvironment.get(environment) ?? [];
  }

  close(): void {
    this.ending.abort();
  }

  private async follow(): Promise<void> {
    try {
      for await (const batch of this.suite.follow(this.reached, this.ending.signal)) this.take(batch);
    } catch (error) {
      this.failure = error as Error;
      this.wake();
    }
  }

  private take(batch: readonly RecordedEvent[]): void {
    for (const record of batch) {
      const { environment } = record.meta;
      const known = this.byEnvironment.get(environment);
      if (known === undefined) this.byEnvironment.set(environment, [record]);
      else known.push(record);
    }
    this.reached = batch.at(-1)!.position;
    this.wake();
    this.next = this.awaitingNext();
  }

  private awaitingNext(): Promise<void> {
    return new Promise((resolve) => (this.wake = resolve));
  }
}
