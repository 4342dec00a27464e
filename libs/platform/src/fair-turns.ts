interface Line {
  /** Begun in this turn of the event loop. */
  begun: number;
  readonly waiting: (() => void)[];
}

/**
 * Lets each key begin so much work in one turn of the event loop; what is more waits for the turns that follow, in its order. So whoever asks for much at once has others wait no
 * longer than for that little of it, and waits for nobody where they are alone: then a turn is short.
 */
export class FairTurns {
  private readonly lines = new Map<string, Line>();
  private isNextDue = false;

  constructor(private readonly perTurn: number) {}

  /** Null where the work may begin at once. */
  take(key: string): Promise<void> | null {
    const line = this.lines.get(key);
    if (line === undefined) {
      this.lines.set(key, { begun: 1, waiting: [] });
      this.endTurn();
      return null;
    }
    if (line.begun < this.perTurn) {
      line.begun += 1;
      return null;
    }
    return new Promise((resolve) => line.waiting.push(resolve));
  }

  private endTurn(): void {
    if (this.isNextDue) return;
    this.isNextDue = true;
    setImmediate(() => this.begin());
  }

  private begin(): void {
    this.isNextDue = false;
    for (const [key, line] of this.lines) {
      if (line.waiting.length === 0) {
        this.lines.delete(key);
        continue;
      }
      const next = line.waiting.splice(0, this.perTurn);
      line.begun = next.length;
      for (const resolve of next) resolve();
    }
    if (this.lines.size > 0) this.endTurn();
  }
}
