/** Hands on what one makes to another who takes it, piece by piece, so that neither is ahead of the other. */
export class Handover implements AsyncIterable<Uint8Array> {
  private piece: Uint8Array | null = null;
  private isOver = false;
  private failure: { readonly error: unknown } | null = null;
  private waiting: (() => void)[] = [];

  /** Resolves when the next may be given. @throws what `fail` was told */
  async give(piece: Uint8Array): Promise<void> {
    while (this.piece !== null && this.failure === null) await this.change();
    if (this.failure !== null) throw this.failure.error;
    this.piece = piece;
    this.changed();
  }

  /** Nothing follows. */
  end(): void {
    this.isOver = true;
    this.changed();
  }

  /** Whoever gives or takes from now on is told why. */
  fail(error: unknown): void {
    this.failure ??= { error };
    this.changed();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      while (this.piece === null && !this.isOver && this.failure === null) await this.change();
      if (this.failure !== null) throw this.failure.error;
      const { piece } = this;
      if (piece === null) return;
      this.piece = null;
      this.changed();
      yield piece;
    }
  }

  private change(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  private changed(): void {
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}
