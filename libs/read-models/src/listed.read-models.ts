import { ReadModels, type Table, type TableDefinition, type TableWrite } from './read-models.ts';

/** Remembers which tables its process has opened, whoever did. */
export class ListedReadModels extends ReadModels {
  private readonly opened = new Map<string, Table<never>>();

  constructor(private readonly readModels: ReadModels) {
    super();
  }

  /** In the order in which they were opened first. */
  get tables(): readonly Table<never>[] {
    return [...this.opened.values()];
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    const table = this.readModels.table(definition);
    this.opened.set(definition.name, table);
    return table;
  }

  override writeAll(given: readonly TableWrite[]): Promise<readonly PromiseSettledResult<void>[]> {
    return this.readModels.writeAll(given);
  }

  drop(table: string, fence?: number): Promise<void> {
    return this.readModels.drop(table, fence);
  }
}
