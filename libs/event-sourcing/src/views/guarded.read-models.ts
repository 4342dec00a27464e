import {
  ReadModels,
  Table,
  type IdPage,
  type IdPageRequest,
  type PageRequest,
  type RowPage,
  type Seeker,
  type StoredRow,
  type TableDefinition,
} from '#libs/read-models/src/read-models';
import type { ReadYourWrites } from './read-your-writes.ts';
import type { StoppedViews } from './stopped-views.ts';

/**
 * Read models as services get them: reads are refused while their view is halted, and nothing is said not to be there before it was looked for at the end of
 * the log, since a row may come later than the answer to the command that made it.
 */
export class GuardedReadModels extends ReadModels {
  constructor(
    private readonly readModels: ReadModels,
    private readonly stopped: StoppedViews,
    private readonly views: Pick<ReadYourWrites, 'waitForHead'>,
  ) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    return new GuardedTable(this.readModels.table(definition), this.stopped, this.views);
  }

  drop(table: string, fence?: number): Promise<void> {
    return this.readModels.drop(table, fence);
  }
}

class GuardedTable<Row> extends Table<Row> {
  readonly definition: TableDefinition<Row>;

  constructor(
    private readonly table: Table<Row>,
    private readonly stopped: StoppedViews,
    private readonly views: Pick<ReadYourWrites, 'waitForHead'>,
  ) {
    super();
    this.definition = table.definition;
  }

  get(environment: string, id: string): Promise<StoredRow<Row> | null> {
    return this.unlessStopped(() => this.table.get(environment, id));
  }

  getMany(environment: string, ids: readonly string[]): Promise<readonly (StoredRow<Row> | null)[]> {
    return this.unlessStopped(() => this.table.getMany(environment, ids));
  }

  page(environment: string, request: PageRequest): Promise<RowPage<Row>> {
    return this.unlessStopped(() => this.table.page(environment, request));
  }

  override presentAmong(environment: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    return this.unlessStopped(() => this.table.presentAmong(environment, ids));
  }

  override idPage(environment: string, request: IdPageRequest): Promise<IdPage> {
    return this.unlessStopped(() => this.table.idPage(environment, request));
  }

  override find(seeker: Seeker, id: string): Promise<StoredRow<Row> | null> {
    return this.get(seeker.environment, id).then((row) => row ?? this.again(seeker, () => super.find(seeker, id)));
  }

  override async findBy(seeker: Seeker, where: NonNullable<PageRequest['where']>): Promise<StoredRow<Row> | null> {
    return (await super.findBy(seeker, where)) ?? this.again(seeker, () => super.findBy(seeker, where));
  }

  write(...given: Parameters<Table<Row>['write']>): Promise<void> {
    return this.table.write(...given);
  }

  replace(environment: string, seen: StoredRow, text: string, position: string): Promise<boolean> {
    return this.table.replace(environment, seen, text, position);
  }

  checkpoint(): Promise<string> {
    return this.table.checkpoint();
  }

  override recordAt(position: string): Promise<string | null> {
    return this.table.recordAt(position);
  }

  override prepare(): Promise<void> {
    return this.table.prepare();
  }

  clear(fence?: number): Promise<void> {
    return this.table.clear(fence);
  }

  purge(environment: string, ids: readonly string[]): Promise<void> {
    return this.table.purge(environment, ids);
  }

  dump(): ReturnType<Table<Row>['dump']> {
    return this.table.dump();
  }

  private async again<Found>({ deadline }: Seeker, look: () => Promise<Found>): Promise<Found> {
    await this.views.waitForHead(deadline, this.definition.name);
    return look();
  }

  private unlessStopped<Answer>(read: () => Promise<Answer>): Promise<Answer> {
    const fresh = this.stopped.fresh();
    return fresh === null ? this.orRefused(read) : fresh.then(() => this.orRefused(read));
  }

  private orRefused<Answer>(read: () => Promise<Answer>): Promise<Answer> {
    const refusal = this.stopped.refusal(this.definition.name);
    return refusal === null ? read() : Promise.reject(refusal);
  }
}
