import type { EventStore } from '#libs/event-sourcing/src/log/event-store';
import type { Clock } from '#libs/platform/src/clock';
import type { EndpointDirectory } from '../targets/endpoint-directory.ts';
import type { DeliveryLog } from './delivery-log.ts';
import { queuedDelivery } from './delivery.ts';
import type { RecordSetAside, SetAside } from './set-aside.ts';
import { wantedDeliveries } from './wanted-deliveries.ts';
import type { WebhookQueues } from './webhook-queues.ts';

/** How long the endpoints may take to be known. */
const DIRECTORY_TIMEOUT_MS = 30_000;

interface Needs {
  readonly events: EventStore;
  readonly aside: SetAside;
  /** Of its own, since those of the running process may not be running. */
  readonly endpoints: () => EndpointDirectory;
  readonly deliveries: DeliveryLog;
  readonly queues: WebhookQueues;
  readonly clock: Clock;
}

/** What became of a record that was to be repeated. */
export interface Repeated {
  readonly record: RecordSetAside;
  /** How many deliveries were queued, or why none could be. */
  readonly outcome: number | Error;
}

/** Makes the deliveries of records that were set aside. They go through the queues, wherever these are worked on. */
export class WebhookRepeats {
  constructor(private readonly needs: Needs) {}

  /** All of them, or those at one position of the log. What fails again stays where it is. */
  async repeat(position: string | null): Promise<readonly Repeated[]> {
    const { aside, events, endpoints, clock } = this.needs;
    const records = (await aside.list()).filter((record) => position === null || record.position === position);
    const directory = endpoints();
    await directory.start();
    try {
      await directory.reached(await events.head(), clock.now() + DIRECTORY_TIMEOUT_MS);
      const repeated: Repeated[] = [];
      for (const record of records) repeated.push({ record, outcome: await this.queue(record, directory).catch((error: Error) => error) });
      return repeated;
    } finally {
      await directory.stop();
    }
  }

  private async queue(record: RecordSetAside, directory: EndpointDirectory): Promise<number> {
    const { aside, events, deliveries, queues, clock } = this.needs;
    const { environment, stream, version } = record;
    const now = clock.now();
    const [found] = await events.readBackwards(stream, 1, version);
    if (found === undefined || found.id !== record.id) throw new Error('The log does not hold it any more.');
    const wanted = wantedDeliveries(found, directory.enabled(environment), -Infinity);
    const known = await deliveries.known(
      environment,
      wanted.map(({ id }) => id),
    );
    const missing = wanted
      .filter(({ id }) => !known.has(id))
      .map(({ target, eventId, event }) => queuedDelivery({ endpointId: target.id, eventId, event, now }));
    await queues.add(environment, missing);
    await aside.remove(record);
    return missing.length;
  }
}
