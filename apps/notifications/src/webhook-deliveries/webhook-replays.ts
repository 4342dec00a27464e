import { isPublicEventName, type PublicEventName } from '#libs/contracts/src/events';
import type { WebhookReplay } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import type { Clock } from '#libs/platform/src/clock';
import { contentOf, type ReadModels, type Table, type TableDefinition } from '#libs/read-models/src/read-models';
import type { FeedReader } from '../readers/feed-reader.ts';
import type { EndpointDirectory } from '../targets/endpoint-directory.ts';
import type { DeliveryLog } from './delivery-log.ts';
import { deliveryId, queuedAgain, queuedDelivery, type StoredDelivery } from './delivery.ts';
import { Notes } from './notes.ts';
import type { WebhookQueues } from './webhook-queues.ts';

/** Events that are queued in one go. */
const SLICE = 100;
/** How often is asked what others want replayed, */
const NOTES_EVERY = 1_000;
/** and how often every environment is looked through, since a note can be lost. */
const LOOK_AGAIN = 60_000;

/** A replay and how far it came; gone once it is through. */
interface StoredReplay {
  readonly replay: WebhookReplay;
  readonly after: string | null;
  readonly slices: number;
}

const REPLAYS: TableDefinition<StoredReplay> = { name: 'webhook_replays', indexes: [], rebuildable: false };

interface Needs {
  readonly readModels: ReadModels;
  readonly feed: FeedReader;
  readonly directory: EndpointDirectory;
  readonly deliveries: DeliveryLog;
  readonly queues: WebhookQueues;
  readonly clock: Clock;
  /** Whether this process is the one that does this work, as far as can be told without asking. */
  readonly isHolder: () => boolean;
}

/** Puts events of the past into an endpoint's queue: a job that goes on where it was after a restart. */
export class WebhookReplays {
  private readonly rows: Table<StoredReplay>;
  private readonly notes: Notes<{ readonly environment: string }>;
  private wake: () => void = () => {};

  constructor(private readonly needs: Needs) {
    const { readModels, clock } = needs;
    this.rows = readModels.table(REPLAYS);
    this.notes = new Notes('webhook_replay_notes', readModels, clock);
  }

  async add(environment: string, replay: WebhookReplay): Promise<void> {
    await this.save(environment, { replay, after: null, slices: 0 });
    await this.notes.leave([{ environment }]);
    this.wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.wake();
    signal.addEventListener('abort', stop);
    try {
      for (let lookAgain = 0; !signal.aborted;) {
        const woken = new Promise<void>((resolve) => (this.wake = resolve));
        const { notes } = await this.notes.take();
        const now = this.needs.clock.now();
        const environments = now >= lookAgain ? this.needs.directory.environments() : notes.map(({ environment }) => environment);
        if (now >= lookAgain) lookAgain = now + LOOK_AGAIN;
        for (const environment of new Set(environments)) await this.runAll(environment, signal);
        const timer = setTimeout(() => this.wake(), NOTES_EVERY);
        await woken;
        clearTimeout(timer);
      }
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  private async runAll(environment: string, signal: AbortSignal): Promise<void> {
    const { rows } = await this.rows.page(environment, { order: 'asc', limit: 100 });
    for (const row of rows) {
      let next: StoredReplay | null = contentOf(row);
      const { id } = next.replay;
      while (next !== null && !signal.aborted) {
        next = await this.step(environment, next);
        // Another does this work since, and knows better how far it is.
        if (!this.needs.isHolder()) return;
        if (next === null) await this.rows.purge(environment, [id]);
        else await this.save(environment, next);
      }
    }
  }

  /** Queues the next events; null when it is through, or its endpoint wants nothing any more. */
  private async step(environment: string, { replay, after, slices }: StoredReplay): Promise<StoredReplay | null> {
    const { feed, directory } = this.needs;
    if ((await directory.latest(environment, replay.webhook_endpoint_id))?.isEnabled !== true) return null;
    const slice = await feed.since(environment, {
      since: Date.parse(replay.since),
      until: Date.parse(replay.created_at),
      names: replay.events,
      limit: SLICE,
      ...(after !== null && { after }),
    });
    await this.queue(environment, await this.deliveriesOf(environment, replay.webhook_endpoint_id, slice.events));
    return slice.hasMore ? { replay, after: slice.events.at(-1)!.id, slices: slices + 1 } : null;
  }

  /** What got another outcome at the same time is queued once more. */
  private async queue(environment: string, deliveries: readonly StoredDelivery[]): Promise<void> {
    const { queues, deliveries: log, clock } = this.needs;
    for (let missing = deliveries; missing.length > 0;) {
      await queues.add(environment, missing);
      missing = (await log.savedInstead(environment, missing)).map((delivery) => queuedAgain(delivery, clock.now()));
    }
  }

  private async deliveriesOf(
    environment: string,
    endpointId: string,
    events: readonly { readonly id: string; readonly text: string }[],
  ): Promise<readonly StoredDelivery[]> {
    const now = this.needs.clock.now();
    return Promise.all(
      events.map(async ({ id: eventId, text }) => {
        const known = await this.needs.deliveries.get(environment, deliveryId(endpointId, eventId));
        return known === null ? queuedDelivery({ endpointId, eventId, event: nameOf(text), now }) : queuedAgain(known, now);
      }),
    );
  }

  private async save(environment: string, row: StoredReplay): Promise<void> {
    const position = String(row.slices + 1).padStart(10, '0');
    await this.rows.write([{ environment, id: row.replay.id, position, revision: 0, text: JSON.stringify(row), row }]);
  }
}

function nameOf(text: string): PublicEventName {
  const { event } = JSON.parse(text) as { readonly event: string };
  if (!isPublicEventName(event)) throw new Error(`The feed holds an event of the unknown name ${event}.`);
  return event;
}
