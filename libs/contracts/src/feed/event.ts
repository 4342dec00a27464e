import { PUBLIC_EVENT_NAMES, type PublicEventName } from '../events.ts';
import { Const, Id, Json, Nested, OneOf, Optional, Text, Time } from '../fields.ts';

/** Who caused an event. */
export class EventActor {
  @Text({ doc: 'Identifies the actor: an API key, a person, or `system`.', example: 'system' }) id!: string;
  @OneOf(['api', 'dashboard', 'admin_portal', 'system'], { doc: 'Where the actor acted.' }) source!: 'api' | 'dashboard' | 'admin_portal' | 'system';
  @Text({ doc: 'The name of the actor, where it has one.', nullable: true }) name!: string | null;
}

/** What is known around an event. */
export class EventContext {
  @Optional() @Text({ doc: 'The application through which it happened.' }) client_id?: string;
  @Optional() @Nested(() => EventActor, { doc: 'Who caused it.' }) actor?: EventActor;
  @Optional() @Json({ doc: 'The changed attributes as they were before; null for one that was not there.' }) previous_attributes?: Readonly<
    Record<string, unknown>
  >;
}

/** Something that happened: an entry of the feed, and the body of a webhook. */
export class Event {
  @Const('event') object!: 'event';
  @Id('event', { doc: 'Identifies the event: the same in feed and webhook.' }) id!: string;
  @OneOf(PUBLIC_EVENT_NAMES, { doc: 'What happened.', example: 'organization.created' }) event!: PublicEventName;
  @Json({ doc: 'The resource as of the event; before it for a deletion.' }) data!: unknown;
  @Time({ doc: 'When it happened.' }) created_at!: string;
  @Optional() @Nested(() => EventContext, { doc: 'What is known around it.' }) context?: EventContext;
}
