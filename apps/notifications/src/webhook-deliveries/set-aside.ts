import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { openedReason, sealedReason } from '#libs/event-sourcing/src/sealing/reasons';
import type { Vault } from '#libs/event-sourcing/src/sealing/vault';
import type { Clock } from '#libs/platform/src/clock';
import type { Log } from '#libs/platform/src/log';
import type { Metrics } from '#libs/platform/src/metrics';
import type { ReadModels, Table } from '#libs/read-models/src/read-models';

/** A record whose deliveries could not be made, and where it is found again. */
interface StoredRecord {
  readonly type: string;
  readonly stream: string;
  readonly version: number;
  readonly at: string;
  /** Sealed: see `reasons.ts`. */
  readonly error: string;
}

/** As an operator is shown it. */
export interface RecordSetAside extends StoredRecord {
  readonly id: string;
  readonly environment: string;
  readonly position: string;
}

interface Needs {
  readonly readModels: ReadModels;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Records that the intake of webhooks failed at for good: it went on without them, and they wait here until somebody has them repeated. */
export class SetAside {
  private readonly rows: Table<StoredRecord>;
  private readonly counted;

  constructor(private readonly needs: Needs) {
    this.rows = needs.readModels.table<StoredRecord>({ name: 'webhook_set_aside', indexes: [], sortKey: ({ at }) => at, rebuildable: false });
    this.counted = needs.metrics.counter({
      name: 'webhook_intake_set_aside_total',
      help: 'Events that could not become webhooks and were set aside, until they are repeated.',
    });
    // A rise from nothing at all would not be seen as one.
    this.counted.inc(0);
  }

  async add(record: RecordedEvent, error: unknown): Promise<void> {
    const { id, type, stream, version, position, meta } = record;
    const { environment } = meta;
    const { vault, clock, log } = this.needs;
    const row: StoredRecord = {
      type,
      stream,
      version,
      at: new Date(clock.now()).toISOString(),
      error: await sealedReason(vault, record, error),
    };
    await this.rows.write([{ environment, id, position, revision: 0, text: JSON.stringify(row), row }]);
    this.counted.inc();
    log.error('An event cannot become webhooks and is set aside; those after it go on.', { environment, event: id, type, stream, position, error });
  }

  /** Of all environments, with what was said of each. */
  async list(): Promise<readonly RecordSetAside[]> {
    const found: RecordSetAside[] = [];
    for await (const { environment, id, position, text } of this.rows.dump()) {
      if (text === null) continue;
      const row = JSON.parse(text) as StoredRecord;
      const error = await openedReason(this.needs.vault, row.error, row);
      found.push({ ...row, id, environment, position, error });
    }
    return found.sort((one, other) => (one.position < other.position ? -1 : 1));
  }

  /** It was repeated. */
  async remove({ environment, id }: Pick<RecordSetAside, 'environment' | 'id'>): Promise<void> {
    await this.rows.purge(environment, [id]);
  }

  /** Removes what was set aside before `before`; answers how many rows went. */
  async sweep(environment: string, before: number, limit: number): Promise<number> {
    const { rows } = await this.rows.page(environment, { order: 'asc', limit, to: new Date(before).toISOString() });
    await this.rows.purge(
      environment,
      rows.map(({ id }) => id),
    );
    return rows.length;
  }
}
