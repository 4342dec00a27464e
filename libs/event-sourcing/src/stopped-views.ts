import { unavailable } from '#libs/platform/src/domain-error';
import { ReadModels, Table, type PageRequest, type RowPage, type StoredRow, type TableDefinition, type Write } from '#libs/read-models/src/read-models';
import type { Standing } from './follower-states.ts';

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

/** Read models whose reads are refused while their view stands still. */
export class GuardedReadModels extends ReadModels {
  constructor(
    private readonly readModels: ReadModels,
    private readonly stopped: StoppedViews,
  ) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    return new GuardedTable(this.readModels.table(definition), this.stopped);
  }

  dropOthers(prefix: string, keep: readonly string[]): Promise<void> {
    return this.readModels.dropOthers(prefix, keep);
  }
}

class GuardedTable<Row> extends Table<Row> {
  readonly definition: TableDefinition<Row>;

  constructor(
    private readonly table: Table<Row>,
    private readonly stopped: StoppedViews,
  ) {
    super();
    this.definition = table.definition;
  }

  get(environment: string, id: string): Promise<StoredRow | null> {
    return this.unlessStopped(() => this.table.get(environment, id));
  }

  getMany(environment: string, ids: readonly string[]): Promise<readonly (StoredRow | null)[]> {
    return this.unlessStopped(() => this.table.getMany(environment, ids));
  }

  page(environment: string, request: PageRequest): Promise<RowPage> {
    return this.unlessStopped(() => this.table.page(environment, request));
  }

  write(writes: readonly Write[], checkpoint?: string, fence?: number): Promise<void> {
    return this.table.write(writes, checkpoint, fence);
  }

  checkpoint(): Promise<string> {
    return this.table.checkpoint();
  }

  clear(): Promise<void> {
    return this.table.clear();
  }

  purge(environment: string, ids: readonly string[]): Promise<void> {
    return this.table.purge(environment, ids);
  }

  dump(): ReturnType<Table<Row>['dump']> {
    return this.table.dump();
  }

  private unlessStopped<Answer>(read: () => Promise<Answer>): Promise<Answer> {
    const fresh = this.stopped.fresh();
    return fresh === null ? this.orRefused(read) : fresh.then(() => this.orRefused(read));
  }

  private orRefused<Answer>(read: () => Promise<Answer>): Promise<Answer> {
    if (!this.stopped.has(this.definition.name)) return read();
    return Promise.reject(unavailable('What this answer is read from stands still; an operator has to look.', 30));
  }
}
