import { Const, Integer, Json, ListOf, Nested, Optional, Text, Time } from '../fields.ts';

/** What one value of metadata may be. */
export interface MetadataProperty {
  readonly type: 'string' | 'number' | 'integer' | 'boolean';
  /** Nothing else than one of these. */
  readonly enum?: readonly (string | number | boolean | null)[];
  /** Metadata that is null counts as not given. */
  readonly nullable?: boolean;
}

/** What metadata may hold: a small part of JSON Schema. */
export interface MetadataSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, MetadataProperty>>;
  readonly required?: readonly string[];
  /** False: no other names than those of `properties`. */
  readonly additionalProperties?: boolean;
}

/** Empty where anything goes. */
type ShownSchema = MetadataSchema | Readonly<Record<string, never>>;

const METADATA = {
  doc: 'What its metadata may hold: `type` (`object`), `properties` (at most 50, each with `type`: `string`, `number`, `integer` or `boolean`, and `enum`, `nullable`), `required`, `additionalProperties` (true or false). `{}`: anything.',
  example: { type: 'object', properties: { role: { type: 'string', enum: ['owner', 'member'] } }, required: ['role'] },
} as const;

export const ACTION_NAME = { min: 1, max: 255, example: 'document.shared' } as const;
export const MAX_TARGET_TYPES = 100;

class ActorSchema {
  @Json(METADATA) metadata!: ShownSchema;
}

class TargetSchema {
  @Text({ doc: 'The `type` of targets that it is about.', min: 1, max: 255, example: 'document' }) type!: string;
  @Json(METADATA) metadata!: ShownSchema;
}

/** What events of an action have to be like. */
export class AuditLogSchema {
  @Const('audit_log_schema') object!: 'audit_log_schema';
  @Integer({ doc: 'Counts from 1 for each action; events may name it.', minimum: 1, example: 1 }) version!: number;
  @Nested(() => ActorSchema, { doc: 'Who does it.' }) actor!: ActorSchema;
  @ListOf(() => TargetSchema, { doc: 'What it is done to: no other types of targets.' }) targets!: readonly TargetSchema[];
  @Json(METADATA) metadata!: ShownSchema;
  @Time({ doc: 'When it was created.' }) created_at!: string;
}

/** An action with the schema that holds for its events. */
export class AuditLogAction {
  @Const('audit_log_action') object!: 'audit_log_action';
  @Text({ doc: 'Names what is done.', ...ACTION_NAME }) name!: string;
  @Nested(() => AuditLogSchema, { doc: 'The newest one.' }) schema!: AuditLogSchema;
  @Time({ doc: 'When its first schema was created.' }) created_at!: string;
  @Time({ doc: 'When its newest schema was created.' }) updated_at!: string;
}

/** As it is given: read by the decision, which says what is wrong with it. */
export class NewActorSchema {
  @Json(METADATA) metadata!: unknown;
}

export class NewTargetSchema {
  @Text({ doc: 'The `type` of targets that it is about.', min: 1, max: 255, example: 'document' }) type!: string;
  @Optional() @Json(METADATA) metadata?: unknown;
}

export const NEW_METADATA = METADATA;
