import { Integer, Json, Nested, Optional, Text, Time } from '../fields.ts';
import { EventActor } from './event.ts';

/** What a service recorded and has no public name: other services hear of it. */
export class DomainEvent {
  @Text({ doc: 'Identifies the event.' }) id!: string;
  @Text({ doc: 'What happened, in the words of the service that recorded it.', example: 'organization_domain.verification_restarted' }) type!: string;
  @Integer({ doc: 'Which shape `data` has; it grows when a release records other fields.', minimum: 1 }) shape!: number;
  @Text({ doc: 'Where it was recorded.', example: 'organization-environment_01J0000000000000000000000A-org_01J0000000000000000000000A' }) stream!: string;
  @Integer({ doc: 'Its place in the stream, from 1.', minimum: 1 }) version!: number;
  @Text({ doc: 'The environment that it belongs to.', example: 'environment_01J0000000000000000000000A' }) environment!: string;
  @Optional() @Text({ doc: 'The organization that it belongs to.', example: 'org_01J0000000000000000000000A' }) organization?: string;
  @Nested(() => EventActor, { doc: 'Who caused it.' }) actor!: EventActor;
  @Json({ doc: 'What was recorded; secrets in it are sealed.' }) data!: unknown;
  @Time({ doc: 'When it happened.' }) created_at!: string;
}
