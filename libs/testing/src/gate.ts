import { ReadModels, type Table, type TableDefinition } from '#libs/read-models/src/read-models';

/** Whether a call of a port is the one that is meant: by its name and what it is given. */
type IsMeant = (method: string, given: readonly unknown[]) => boolean;

/** Where a process is stopped, as by SIGSTOP: whatever it was about to do, it does when it goes on. */
export class Gate {
  private opened: (() => void) | null = null;
  private passable: Promise<void> = Promise.resolve();
  private armed: { readonly isMeant: IsMeant; readonly onClosed: () => void } | null = null;

  close(): void {
    this.passable = new Promise((resolve) => (this.opened = resolve));
  }

  /** Closes before the first call that is meant; resolves then. */
  closeBefore(isMeant: IsMeant): Promise<void> {
    return new Promise((onClosed) => (this.armed = { isMeant, onClosed }));
  }

  open(): void {
    this.armed = null;
    this.opened?.();
  }

  pass(method: string, given: readonly unknown[]): Promise<void> {
    if (this.armed?.isMeant(method, given) === true) {
      this.close();
      this.armed.onClosed();
      this.armed = null;
    }
    return this.passable;
  }
}

/** A port behind the gate: every method waits until it may pass. */
export function gated<Port extends object>(port: Port, gate: Gate, names: readonly (keyof Port)[]): Port {
  return new Proxy(port, {
    get: (target, name) => {
      const found = Reflect.get(target, name) as unknown;
      if (typeof found !== 'function') return found;
      const method = found.bind(target) as (...given: readonly unknown[]) => unknown;
      return names.includes(name as keyof Port) ? async (...given: readonly unknown[]) => (await gate.pass(String(name), given), method(...given)) : method;
    },
  });
}

/** Tables behind the gate. */
export class GatedReadModels extends ReadModels {
  constructor(
    private readonly readModels: ReadModels,
    private readonly gate: Gate,
    private readonly names: readonly (keyof Table<unknown>)[] = ['write', 'get', 'getMany', 'checkpoint'],
  ) {
    super();
  }

  table<Row>(definition: TableDefinition<Row>): Table<Row> {
    return gated(this.readModels.table(definition), this.gate, this.names);
  }

  drop(table: string, fence?: number): Promise<void> {
    return this.readModels.drop(table, fence);
  }
}
