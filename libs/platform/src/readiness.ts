/** Whether this process may be sent requests. Once it was ready, an engine that is away never makes it unready: another replica would be no better off. */
export class Readiness {
  private started = false;
  private draining = false;
  private readonly views = new Map<string, number>();
  private readonly awaited = new Set<string>();

  /** A view is being filled: `portion` from 0 to 1; 1 when it has caught up. */
  viewFilled(view: string, portion: number): void {
    if (portion >= 1) this.views.delete(view);
    else this.views.set(view, portion);
  }

  /** Without this, no request can be answered; it is awaited once, at the start. */
  awaits(what: string): void {
    this.awaited.add(what);
  }

  found(what: string): void {
    this.awaited.delete(what);
  }

  start(): void {
    this.started = true;
  }

  drain(): void {
    this.draining = true;
  }

  /** From the end of the start on: also while draining, for requests that are on their way. */
  get isServing(): boolean {
    return this.started;
  }

  get isDraining(): boolean {
    return this.draining;
  }

  /** Null when ready; else why not, in words for whoever waits. */
  obstacle(): string | null {
    if (this.draining) return 'draining';
    const filling = [...this.views].map(([view, portion]) => `filling ${view}: ${Math.floor(portion * 100)} %`);
    if (filling.length > 0) return filling.join(', ');
    if (this.awaited.size > 0) return `waiting for ${[...this.awaited].join(', ')}`;
    return this.started ? null : 'starting';
  }
}
