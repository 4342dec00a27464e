import type { LogPlace, ReadModels, Table, Write } from '#libs/read-models/src/read-models';

/** Whoever takes longer for what it is about to write than this (milliseconds) holds up nobody. */
const COMPANY_MS = 2;

interface Waiting {
  readonly table: Table<never>;
  readonly writes: readonly Write[];
  readonly checkpoint: string | LogPlace | undefined;
  readonly fence: number | undefined;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** What all that follow the log in this process store at about the same time goes to the store at once. Each learns what became of its own. */
export class JointWrites {
  private waiting: Waiting[] = [];
  private reserved = 0;
  private timer: NodeJS.Timeout | null = null;
  private isTurnWaited = false;

  constructor(private readonly readModels: ReadModels) {}

  /** Says that something is about to be written: others wait for it a little. `release` is to be called where it does not come. */
  reserve(): { readonly write: JointWrites['write']; readonly release: () => void } {
    this.reserved += 1;
    let isThere = false;
    const release = (): void => {
      if (isThere) return;
      isThere = true;
      this.reserved -= 1;
      if (this.reserved === 0) this.send();
    };
    const write: JointWrites['write'] = (...given) => {
      const written = this.write(...given);
      release();
      return written;
    };
    return { write, release };
  }

  /** As `Table.write`. @throws what that throws */
  write(table: Table<never>, writes: readonly Write[], checkpoint?: string | LogPlace, fence?: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ table, writes, checkpoint, fence, resolve, reject });
      if (this.reserved > 0) this.timer ??= setTimeout(() => this.send(), COMPANY_MS);
      else this.sendAfterTurn();
    });
  }

  private sendAfterTurn(): void {
    if (this.isTurnWaited) return;
    this.isTurnWaited = true;
    setImmediate(() => {
      this.isTurnWaited = false;
      this.send();
    });
  }

  private send(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    const sent = this.waiting;
    if (sent.length === 0) return;
    this.waiting = [];
    void this.readModels.writeAll(sent).then(
      (outcomes) => {
        for (const [index, outcome] of outcomes.entries()) {
          if (outcome.status === 'fulfilled') sent[index]!.resolve();
          else sent[index]!.reject(outcome.reason);
        }
      },
      (error: unknown) => {
        for (const { reject } of sent) reject(error);
      },
    );
  }
}
