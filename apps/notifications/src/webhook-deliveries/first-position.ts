import { setTimeout as pause } from 'node:timers/promises';
import { checkpointsOf } from '#libs/event-sourcing/src/following/forwarder';
import { type EventStore, type Position, START } from '#libs/event-sourcing/src/log/event-store';
import type { Clock } from '#libs/platform/src/clock';
import { unavailable } from '#libs/platform/src/domain-error';
import type { ReadModels } from '#libs/read-models/src/read-models';
import type { FeedReader } from '../readers/feed-reader.ts';
import type { EndpointDirectory } from '../targets/endpoint-directory.ts';

/** Whose forwarders webhooks were made from, before the intake followed the log itself. */
const FORWARDED = ['identity', 'authorization'] as const;
/** What a forwarder had announced lay in the bus for a while before it became webhooks. */
const MARGIN = 60 * 60_000;
/** How long the endpoints and the feed may be behind the log; then it is asked again. */
const FOLLOWERS_TIMEOUT_MS = 5_000;
const POLL = 100;

interface Needs {
  readonly events: EventStore;
  readonly readModels: ReadModels;
  readonly feed: FeedReader;
  readonly directory: EndpointDirectory;
  readonly clock: Clock;
  /** How long deliveries are kept. */
  readonly retention: number;
}

/**
 * Where the intake begins that never ran: an hour before what the slowest forwarder had announced. What was delivered of that is known by its id. Never from
 * the start of the log, nor where deliveries are forgotten or will be soon: they would be made again.
 */
export class FirstPosition {
  constructor(private readonly needs: Needs) {}

  /** @throws DomainError `service_unavailable` while it cannot be told */
  async position(): Promise<Position> {
    const { events, feed, directory, clock, retention } = this.needs;
    const head = await events.head();
    const announced = (await this.announced()) ?? head;
    const deadline = clock.now() + FOLLOWERS_TIMEOUT_MS;
    // An endpoint that is there hears of all that was recorded after it.
    await directory.reached(head, deadline);
    for (; !(await feed.hasReached(announced)); await pause(POLL)) if (clock.now() > deadline) throw unavailable('The feed has not read the log so far yet.');
    return feed.positionBefore(directory.environments(), announced, MARGIN, clock.now() - retention / 2);
  }

  /** Null: nothing was ever announced. */
  private async announced(): Promise<Position | null> {
    const checkpoints = await Promise.all(FORWARDED.map((service) => this.needs.readModels.table(checkpointsOf(service)).checkpoint()));
    const [lowest] = checkpoints.filter((checkpoint) => checkpoint !== START).sort();
    return lowest ?? null;
  }
}
