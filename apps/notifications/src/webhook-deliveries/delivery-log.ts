import { Injectable } from '@nestjs/common';
import { contentOf, ReadModels, type StoredRow, type Table, type TableDefinition, type Write } from '#libs/read-models/src/read-models';
import type { StoredDelivery } from './delivery.ts';

/** When a delivery is to be tried next. A new time is a new entry, since entries are found in the order of their times. */
interface QueueEntry {
  readonly endpoint: string;
  readonly delivery: string;
  readonly due: string;
  /** Of the delivery that is due. */
  readonly revision: number;
}

/** An entry that is due, and what it is about. */
export interface DueEntry {
  readonly entryId: string;
  /** `overtaken`: the delivery has changed since. `early`: it is being recorded, or was not, since its process ended. */
  readonly delivery: StoredDelivery | 'overtaken' | 'early';
  readonly due: number;
}

const DELIVERIES: TableDefinition<StoredDelivery> = {
  name: 'webhook_deliveries',
  indexes: [
    { name: 'endpoint', keys: ({ webhook_endpoint_id }) => [webhook_endpoint_id] },
    { name: 'endpoint_status', keys: ({ webhook_endpoint_id, status }) => [`${webhook_endpoint_id} ${status}`] },
    { name: 'endpoint_event', keys: ({ webhook_endpoint_id, event }) => [`${webhook_endpoint_id} ${event}`] },
    { name: 'endpoint_status_event', keys: ({ webhook_endpoint_id, status, event }) => [`${webhook_endpoint_id} ${status} ${event}`] },
  ],
  sortKey: ({ created_at }) => created_at,
  rebuildable: false,
};

const QUEUE: TableDefinition<QueueEntry> = {
  name: 'webhook_queue',
  indexes: [{ name: 'endpoint', keys: ({ endpoint }) => [endpoint] }],
  sortKey: ({ due }) => due,
  // What is due when never changes: an entry of another time is another entry.
  guard: 'none',
  rebuildable: false,
  // Of the deliveries that wait: see `queueWaiting`.
  isMadeAnew: true,
};

const REVISION_DIGITS = 10;
/** Entries that are written at once. */
const BULK = 500;

/** What became of every event at every endpoint, and what is still to be tried. Kept by nothing else: a rebuild cannot give it back. */
@Injectable()
export class DeliveryLog {
  readonly deliveries: Table<StoredDelivery>;
  private readonly queue: Table<QueueEntry>;
  private entriesKnown = 0;

  constructor(readModels: ReadModels) {
    this.deliveries = readModels.table(DELIVERIES);
    this.queue = readModels.table(QUEUE);
  }

  /** How many entries wait in all queues, as far as this process has heard since it counted: a number for the metrics. */
  get depth(): number {
    return Math.max(0, this.entriesKnown);
  }

  /** Another process has queued so many. */
  heardOf(entries: number): void {
    this.entriesKnown += entries;
  }

  async count(): Promise<void> {
    let entries = 0;
    for await (const { text } of this.queue.dump()) if (text !== null) entries++;
    this.entriesKnown = entries;
  }

  /** Which of these are on record already. */
  async known(environment: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    return this.deliveries.presentAmong(environment, ids);
  }

  async get(environment: string, id: string): Promise<StoredDelivery | null> {
    const row = await this.deliveries.get(environment, id);
    return row === null ? null : contentOf(row);
  }

  /** The queue's entry first: an entry without its delivery is passed over, a delivery without its entry would wait for ever. */
  async save(environment: string, deliveries: readonly StoredDelivery[]): Promise<void> {
    const entries = deliveries.filter(({ next_attempt_at }) => next_attempt_at !== null).map((delivery) => entryWrite(environment, delivery));
    this.entriesKnown += entries.length;
    if (entries.length > 0) await this.queue.write(entries);
    await this.deliveries.write(deliveries.map((delivery) => deliveryWrite(environment, delivery)));
  }

  /**
   * What is on record instead of these deliveries: the outcome of another process that changed the same one at the same time, and was faster. Asked after
   * they were saved; empty when all of them are on record.
   */
  async savedInstead(environment: string, deliveries: readonly StoredDelivery[]): Promise<readonly StoredDelivery[]> {
    const ids = deliveries.map(({ id }) => id);
    const rows = await this.deliveries.getMany(environment, ids);
    return rows.flatMap((row, index) => {
      const { revision } = deliveries[index]!;
      const isOther = row !== null && row.revision === revision && row.text !== JSON.stringify(deliveries[index]);
      return isOther ? [contentOf(row)] : [];
    });
  }

  /** Puts every delivery that waits into the queue, where they are all there is: deliveries that were put back from a backup come without it. */
  async queueWaiting(): Promise<void> {
    const entries: Write[] = [];
    for await (const { environment, text } of this.deliveries.dump()) {
      const delivery = text === null ? null : (JSON.parse(text) as StoredDelivery);
      if (delivery !== null && delivery.next_attempt_at !== null) entries.push(entryWrite(environment, delivery));
      if (entries.length === BULK) await this.queue.write(entries.splice(0));
    }
    if (entries.length > 0) await this.queue.write(entries);
  }

  /** Takes entries off the queue, once what became of them is saved. */
  async done(environment: string, entryIds: readonly string[]): Promise<void> {
    this.entriesKnown -= entryIds.length;
    if (entryIds.length > 0) await this.queue.purge(environment, entryIds);
  }

  /**
   * What an endpoint is to be sent by `until` (milliseconds since the epoch), the longest waiting first. Whoever knows that nothing is due before `from` says
   * so: what was taken off a queue lies at its beginning for minutes, and MongoDB goes through it again at each look.
   */
  async due(environment: string, endpointId: string, until: number, limit: number, from = 0): Promise<readonly DueEntry[]> {
    const { rows } = await this.entries(environment, endpointId, { from, until, limit });
    const entries = rows.map(contentOf);
    const deliveries = await this.deliveries.getMany(
      environment,
      entries.map(({ delivery }) => delivery),
    );
    return rows.map(({ id }, index) => ({ entryId: id, delivery: current(entries[index]!, deliveries[index]!), due: Date.parse(entries[index]!.due) }));
  }

  /** When the endpoint's next delivery from `from` on is due, in milliseconds since the epoch; null when nothing waits. */
  async nextDue(environment: string, endpointId: string, from = 0): Promise<number | null> {
    const { rows } = await this.entries(environment, endpointId, { from, limit: 1 });
    return rows[0] === undefined ? null : Date.parse(contentOf(rows[0]).due);
  }

  /** What is due first in an environment, whatever endpoint it waits for; times in milliseconds since the epoch. */
  async first(
    environment: string,
    limit: number,
  ): Promise<{ readonly entries: readonly { readonly endpoint: string; readonly due: number }[]; readonly hasMore: boolean }> {
    const { rows, hasAfter } = await this.queue.page(environment, { order: 'asc', limit });
    const entries = rows.map(contentOf);
    return { entries: entries.map(({ endpoint, due }) => ({ endpoint, due: Date.parse(due) })), hasMore: hasAfter };
  }

  /** Removes what was queued before `before`, in whatever state; answers how many rows went. */
  async sweep(environment: string, before: number, limit: number): Promise<number> {
    const to = new Date(before).toISOString();
    const [deliveries, entries] = await Promise.all([
      this.deliveries.page(environment, { order: 'asc', limit, to }),
      this.queue.page(environment, { order: 'asc', limit, to }),
    ]);
    await this.deliveries.purge(
      environment,
      deliveries.rows.map(({ id }) => id),
    );
    await this.done(
      environment,
      entries.rows.map(({ id }) => id),
    );
    return deliveries.rows.length + entries.rows.length;
  }

  private entries(environment: string, endpointId: string, { from, until, limit }: { readonly from: number; readonly until?: number; readonly limit: number }) {
    const where = { index: 'endpoint', values: [endpointId] };
    const to = until === undefined ? undefined : new Date(until).toISOString();
    return this.queue.page(environment, { where, order: 'asc', limit, from: new Date(from).toISOString(), to });
  }
}

/** The queue's entry of a delivery that waits. */
export function entryIdOf({ id, revision }: StoredDelivery): string {
  return `${id}.${revision}`;
}

function entryWrite(environment: string, delivery: StoredDelivery): Write {
  const row: QueueEntry = { endpoint: delivery.webhook_endpoint_id, delivery: delivery.id, due: delivery.next_attempt_at!, revision: delivery.revision };
  return { environment, id: entryIdOf(delivery), position: '', revision: 0, text: JSON.stringify(row), row };
}

function deliveryWrite(environment: string, delivery: StoredDelivery): Write {
  const position = String(delivery.revision).padStart(REVISION_DIGITS, '0');
  return { environment, id: delivery.id, position, revision: delivery.revision, text: JSON.stringify(delivery), row: delivery };
}

function current({ revision }: QueueEntry, row: StoredRow<StoredDelivery> | null): DueEntry['delivery'] {
  if (row === null || row.revision < revision) return 'early';
  if (row.revision > revision) return 'overtaken';
  const delivery = contentOf(row);
  // Two processes had an outcome of the same attempt, and the one that was faster needs no other.
  return delivery.next_attempt_at === null ? 'overtaken' : delivery;
}
