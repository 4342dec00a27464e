import { ReadModels, type Table, type TableDefinition } from '#libs/read-models/src/read-models';

/** Rows that can be read, and, as long as a spec lets them, written. */
export class FaultyRows extends ReadModels {
  isWritable = true;

  constructor(private readonly rows: ReadModels) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    const table = this.rows.table(definition);
    const write: Table<Row>['write'] = async (...given) => {
      if (!this.isWritable) throw new Error('no room');
      await table.write(...given);
    };
    return new Proxy(table, { get: (target, name) => (name === 'write' ? write : Reflect.get(target, name)) });
  }

  async drop(): Promise<void> {}
}
