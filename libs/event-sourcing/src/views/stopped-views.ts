import { type DomainError, type NeedsLaterRelease, unavailable } from '#libs/platform/src/domain-error';
import type { Halt } from '../following/follower-states.ts';

/** What this process knows of the others is never older than this when it answers. */
export const KNOWN_WITHIN = 1_000;

/** Why a table is not read. */
interface Reasons {
  /** Its view is halted for all processes. */
  readonly halt: Halt['reason'] | null;
  /** It has come to an event that only a later release can fold. */
  readonly left: NeedsLaterRelease | null;
}

/** The tables of views that could not go on. Only the queries that need them are refused: a gap would be silent. */
export class StoppedViews {
  private readonly tables = new Map<string, Reasons>();
  private look: (() => Promise<void>) | null = null;
  private lookedAt = 0;
  private looking: Promise<void> | null = null;

  /** Null and null: it goes on. */
  set(table: string, reasons: Reasons): void {
    if (reasons.halt === null && reasons.left === null) this.tables.delete(table);
    else this.tables.set(table, reasons);
  }

  /** What a query that needs the table is told; null where it may read. */
  refusal(table: string): DomainError | null {
    const reasons = this.tables.get(table);
    if (reasons === undefined) return null;
    if (reasons.left !== null) return reasons.left;
    const sentence =
      reasons.halt === 'rebuilding' ? 'What this answer is read from is being filled.' : 'What this answer is read from is halted; an operator has to look.';
    return unavailable(sentence, 30);
  }

  /** Whether its rows say what the log says, as far as they go: not where the log was restored to an earlier state, or the rows are to go. */
  isTrue(table: string): boolean {
    const halt = this.tables.get(table)?.halt ?? null;
    return halt === null || halt === 'unfoldable';
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
