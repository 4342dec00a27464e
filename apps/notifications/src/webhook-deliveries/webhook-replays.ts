import { isPublicEventName, type PublicEventName } from '#libs/contracts/src/events';
import type { WebhookReplay } from '#libs/contracts/src/webhook-endpoints/webhook-endpoint';
import type { Clock } from '#libs/platform/src/clock';
import type { ReadModels, Table, TableDefinition } from '#libs/read-models/src/read-models';
import type { Feed } from '../feed/feed.ts';
import type { EndpointDirectory } from '../webhook-endpoints/endpoint-directory.ts';
import type { DeliveryLog } from './delivery-log.ts';
import { deliveryId, queuedAgain, queuedDelivery, type StoredDelivery } from './delivery.ts';
import type { WebhookQueues } from './webhook-queues.ts';

/** Events that are queued in one go. */
const SLICE = 100;
const LOOK_AGAIN = 5_000;

/** A replay and how far it came; gone once it is through. */
interface StoredReplay {
  readonly replay: WebhookReplay;
  readonly after: string | null;
  readonly slices: number;
}

const REPLAYS: TableDefinition<StoredReplay> = { name: 'webhook_replays', indexes: [], rebuildable: false };

interface Needs {
  readonly readModels: ReadModels;
  readonly feed: Feed;
  readonly directory: EndpointDirectory;
  readonly deliveries: DeliveryLog;
  readonly queues: WebhookQueues;
  readonly clock: Clock;
}

/** Puts events of the past into an endpoint's queue: a job that goes on where it was after a restart. */
export class WebhookReplays {
  private readonly rows: Table<StoredReplay>;
  private wake: () => void = () => {};

  constructor(private readonly needs: Needs) {
    this.rows = needs.readModels.table(REPLAYS);
  }

  async add(environment: string, replay: WebhookReplay): Promise<void> {
    await this.save(environment, { replay, after: null, slices: 0 });
    this.wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.wake();
    signal.addEventListener('abort', stop);
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => (this.wake = resolve));
      for (const environment of new Set(this.needs.directory.all().map((target) => target.environment))) await this.runAll(environment, signal);
      const timer = setTimeout(() => this.wake(), LOOK_AGAIN);
      await woken;
      clearTimeout(timer);
    }
    signal.removeEventListener('abort', stop);
  }

  private async runAll(environment: string, signal: AbortSignal): Promise<void> {
    const { rows } = await this.rows.page(environment, { order: 'asc', limit: 100 });
    for (const { text } of rows) {
      let next: StoredReplay | null = JSON.parse(text) as StoredReplay;
      const { id } = next.replay;
      while (next !== null && !signal.aborted) {
        next = await this.step(environment, next);
        if (next === null) await this.rows.purge(environment, [id]);
        else await this.save(environment, next);
      }
    }
  }

  /** Queues the next events; null when it is through, or its endpoint wants nothing any more. */
  private async step(environment: string, { replay, after, slices }: StoredReplay): Promise<StoredReplay | null> {
    const { feed, directory, queues } = this.needs;
    if ((await directory.latest(environment, replay.webhook_endpoint_id))?.isEnabled !== true) return null;
    const slice = await feed.since(environment, {
      since: Date.parse(replay.since),
      until: Date.parse(replay.created_at),
      names: replay.events,
      limit: SLICE,
      ...(after !== null && { after }),
    });
    await queues.add(environment, await this.deliveriesOf(environment, replay.webhook_endpoint_id, slice.events));
    return slice.hasMore ? { replay, after: slice.events.at(-1)!.id, slices: slices + 1 } : null;
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
