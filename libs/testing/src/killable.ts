import { ReadModels, type Table, type TableDefinition } from '#libs/read-models/src/read-models';

/** Ports as a process has them that is killed at some moment: what it would ask from then on is never asked, so nothing is given back or stored. */
export class Killable {
  isKilled = false;
  /** It can ask for no lease, and everything else. */
  isCutOff = false;

  of<Port extends object>(port: Port): Port {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...given: unknown[]): unknown =>
          this.isKilled || (this.isCutOff && name === 'lease') ? new Promise(() => {}) : Reflect.apply(member, target, given);
      },
    });
  }

  rows(readModels: ReadModels): ReadModels {
    return new KillableRows(readModels, this);
  }
}

class KillableRows extends ReadModels {
  constructor(
    private readonly rows: ReadModels,
    private readonly killable: Killable,
  ) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    return this.killable.of(this.rows.table(definition));
  }

  drop(table: string, fence?: number): Promise<void> {
    return this.rows.drop(table, fence);
  }
}
