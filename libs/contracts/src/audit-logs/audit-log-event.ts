import { Const, Flag, Id, Integer, ListOf, MapOfValues, Nested, Optional, Picked, Text, Time } from '../fields.ts';

export type AuditLogValues = Readonly<Record<string, string | number | boolean>>;

/** Whose trail it is. */
const TRAIL_OWNER = /^(?:org|environment)_[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

const VALUES =
  'Your own data: at most 50 names of up to 40 letters, digits, hyphens and underscores, with texts of up to 500 characters, numbers, or true and false.';

/** Who did something. */
export class AuditLogActor {
  @Text({ doc: 'Your identifier of the actor.', min: 1, max: 255, example: 'user_42' }) id!: string;
  @Text({ doc: 'What kind of actor it is.', min: 1, max: 255, example: 'user' }) type!: string;
  @Text({ doc: 'Shown to people.', max: 500, nullable: true, example: 'Ada Lovelace' }) name!: string | null;
  @MapOfValues({ doc: VALUES, example: { role: 'owner' } }) metadata!: AuditLogValues;
}

/** What it was done to. */
export class AuditLogTarget {
  @Text({ doc: 'Your identifier of the target.', min: 1, max: 255, example: 'document_7' }) id!: string;
  @Text({ doc: 'What kind of target it is.', min: 1, max: 255, example: 'document' }) type!: string;
  @Text({ doc: 'Shown to people.', max: 500, nullable: true, example: 'Annual plan' }) name!: string | null;
  @MapOfValues({ doc: VALUES, example: { pages: 12 } }) metadata!: AuditLogValues;
}

/** From where it was done. */
export class AuditLogContext {
  @Text({ doc: 'A network address, or another place.', max: 500, example: '192.0.2.1' }) location!: string;
  @Text({ doc: 'The program that was used.', max: 2_048, nullable: true, example: 'Mozilla/5.0' }) user_agent!: string | null;
}

class NewActor {
  @Picked(AuditLogActor) id!: string;
  @Picked(AuditLogActor) type!: string;
  @Optional() @Picked(AuditLogActor) name?: string | null;
  @Optional() @Picked(AuditLogActor) metadata?: AuditLogValues;
}

class NewTarget {
  @Picked(AuditLogTarget) id!: string;
  @Picked(AuditLogTarget) type!: string;
  @Optional() @Picked(AuditLogTarget) name?: string | null;
  @Optional() @Picked(AuditLogTarget) metadata?: AuditLogValues;
}

class NewContext {
  @Picked(AuditLogContext) location!: string;
  @Optional() @Picked(AuditLogContext) user_agent?: string | null;
}

const MAX_TARGETS = 100;

/** What happened, as the application tells it. */
export class NewAuditLogEvent {
  @Text({ doc: 'What was done.', min: 1, max: 255, example: 'document.shared' }) action!: string;
  @Time({ doc: 'When it was done: at most 366 days ago, and 5 minutes ahead.', example: '2026-01-15T12:00:00.000Z' }) occurred_at!: string;
  @Nested(() => NewActor, { doc: 'Who did it.' }) actor!: NewActor;
  @ListOf(() => NewTarget, { doc: 'What it was done to.', maxItems: MAX_TARGETS }) targets!: readonly NewTarget[];
  @Nested(() => NewContext, { doc: 'From where it was done.' }) context!: NewContext;
  @Optional() @MapOfValues({ doc: VALUES, example: { plan: 'gold', seats: 25 } }) metadata?: AuditLogValues;
  @Optional() @Integer({ doc: "Which version of the action's schema it was made for; absent: the newest." }) version?: number;
}

/** An event of an audit trail. */
export class AuditLogEvent {
  @Const('audit_log_event') object!: 'audit_log_event';
  @Id('audit_event', { doc: 'Identifies the event.' }) id!: string;
  @Text({
    doc: 'The organization in which it happened; of what was done to the environment itself, the id of the environment.',
    pattern: TRAIL_OWNER,
    example: 'org_01JG8K3M0Q5R7T9V1X3Z5B7D9F',
  })
  organization_id!: string;
  @Time({ doc: 'When it was received.' }) received_at!: string;
  @Integer({ doc: 'Its place in the trail of the organization, by arrival; counts from 0.', minimum: 0, example: 0 }) leaf_index!: number;
  @Picked(NewAuditLogEvent) action!: string;
  @Nested(() => AuditLogActor, { doc: 'Who did it.' }) actor!: AuditLogActor;
  @Nested(() => AuditLogContext, { doc: 'From where it was done.' }) context!: AuditLogContext;
  @MapOfValues({ doc: VALUES, example: { plan: 'gold', seats: 25 } }) metadata!: AuditLogValues;
  @Picked(NewAuditLogEvent) occurred_at!: string;
  @ListOf(() => AuditLogTarget, { doc: 'What it was done to.' }) targets!: readonly AuditLogTarget[];
  @Integer({ doc: "Which version of the action's schema it was made for; null where it named none.", nullable: true, example: 1 }) version!: number | null;
}

/** What the commitment of an event is made of, and what its export holds. */
export type AuditLogContent = Pick<AuditLogEvent, 'action' | 'actor' | 'context' | 'metadata' | 'occurred_at' | 'targets' | 'version'>;

export class AuditLogEventAccepted {
  @Flag({ doc: 'The event is in the trail.', example: true }) success!: true;
}
