import type { PublicEventName } from '#libs/contracts/src/events';
import { personalIn, publicEventsOf } from '#libs/event-sourcing/src/following/public-events';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { Target } from '../targets/endpoint-directory.ts';
import { deliveryId, type SentEvent } from './delivery.ts';

/** A delivery that follows from a record, whether it was made already or not. */
export interface WantedDelivery {
  readonly id: string;
  readonly target: Target;
  readonly eventId: string;
  readonly event: PublicEventName;
  readonly sent: SentEvent;
}

/** Which endpoints want what a record announces, and that they were there before it. A record that nobody wants is not read; nor one from before `oldest` (milliseconds since the epoch). */
export function wantedDeliveries(record: RecordedEvent, targets: readonly Target[], oldest: number): readonly WantedDelivery[] {
  if (record.meta.at < oldest) return [];
  const wanting = targets.filter(({ events, since }) => since < record.position && record.public.some(({ name }) => events.has(name)));
  if (wanting.length === 0) return [];
  const holders = personalIn(record).map(({ of }) => of);
  return publicEventsOf(record).flatMap(({ id: eventId, name: event, text: body }) =>
    wanting
      .filter(({ events }) => events.has(event))
      .map((target) => ({ id: deliveryId(target.id, eventId), target, eventId, event, sent: { id: eventId, body, holders } })),
  );
}
