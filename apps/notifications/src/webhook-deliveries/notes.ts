import type { Clock } from '#libs/platform/src/clock';
import { newUlid } from '#libs/platform/src/ids';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { contentOf, type ReadModels, type Table } from '#libs/read-models/src/read-models';

/** Notes that are taken in one go. */
const SLICE = 500;
/** Notes may come so much later than others whose ids are greater, since clocks differ. */
const LATE = 10_000;
/** What comes later still is found this often. */
const FROM_FRONT_EVERY = 60_000;

/**
 * Tells the one process that does a work what others have put there for it: one question for all environments, where looking for itself would take one
 * for each. A note can be lost with the process that has taken it, so whoever takes notes also looks for itself, now and then.
 */
export class Notes<Note> {
  private readonly rows: Table<Note>;
  private readFrontAt = -Infinity;
  /** The first note that was taken in the window before the present one: what is before it was taken. */
  private begin: string | undefined;
  private first: string | undefined;
  private windowAt = -Infinity;

  constructor(
    name: string,
    readModels: ReadModels,
    private readonly clock: Clock,
  ) {
    this.rows = readModels.table({ name, indexes: [], guard: 'none', rebuildable: false, isMadeAnew: true });
  }

  /** After what they tell of is stored. */
  async leave(notes: readonly Note[]): Promise<void> {
    const now = this.clock.now();
    await this.rows.write(
      notes.map((note) => ({ environment: SYSTEM_ENVIRONMENT, id: newUlid(now), position: '', revision: 0, text: JSON.stringify(note), row: note })),
    );
  }

  /** Some of the notes that were left, the oldest first; `hasMore`: there are others. */
  async take(): Promise<{ readonly notes: readonly Note[]; readonly hasMore: boolean }> {
    const { rows, hasAfter } = await this.rows.page(SYSTEM_ENVIRONMENT, { order: 'asc', limit: SLICE, from: this.from() });
    const first = rows[0]?.id;
    if (first !== undefined && (this.first === undefined || first < this.first)) this.first = first;
    if (rows.length > 0)
      await this.rows.purge(
        SYSTEM_ENVIRONMENT,
        rows.map(({ id }) => id),
      );
    return { notes: rows.map(contentOf), hasMore: hasAfter };
  }

  /** Not from the front each time, where what was taken lies for minutes: MongoDB would go through it twice a second. */
  private from(): string | undefined {
    const now = this.clock.now();
    // A clock that was set back begins anew.
    if (Math.abs(now - this.windowAt) >= LATE) {
      this.begin = this.first ?? this.begin;
      this.first = undefined;
      this.windowAt = now;
    }
    if (Math.abs(now - this.readFrontAt) < FROM_FRONT_EVERY) return this.begin;
    this.readFrontAt = now;
    return undefined;
  }
}
