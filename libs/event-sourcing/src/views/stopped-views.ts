import type { Standing } from '../following/follower-states.ts';

/** What this process knows of the others is never older than this when it answers. */
export const KNOWN_WITHIN = 1_000;

/** The tables of views that could not go on. Only the queries that need them are refused: a gap would be silent. */
export class StoppedViews {
  private readonly tables = new Map<string, Standing['reason']>();
  private look: (() => Promise<void>) | null = null;
  private lookedAt = 0;
  private looking: Promise<void> | null = null;

  stop(table: string, reason: Standing['reason']): void {
    this.tables.set(table, reason);
  }

  resume(table: string): void {
    this.tables.delete(table);
  }

  has(table: string): boolean {
    return this.tables.has(table);
  }

  /** Whether its rows say what the log says, as far as they go: not where the log was restored to an earlier state, or the rows are to go. */
  isTrue(table: string): boolean {
    const reason = this.tables.get(table);
    return reason === undefined || reason === 'unfoldable';
  }

  /** `look` asks what the others know. Whoever reads after a pause, before anybody has asked again, waits for it. */
  keepFresh(look: (() => Promise<void>) | null): void {
    this.look = look;
    this.lookedAt = performance.now();
  }

  /** Null where nothing has to be asked first. */
  fresh(): Promise<void> | null {
    return this.look === null || performance.now() - this.lookedAt < KNOWN_WITHIN ? null : this.freshen();
  }

  freshen(): Promise<void> {
    return (this.looking ??= this.lookNow().finally(() => (this.looking = null)));
  }

  private async lookNow(): Promise<void> {
    const began = performance.now();
    await this.look?.();
    this.lookedAt = began;
  }
}
