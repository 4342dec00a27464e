import type { AuditLogAction, AuditLogSchema, MetadataSchema } from '#libs/contracts/src/audit-log-schemas/audit-log-schema';
import type { CreateAuditLogSchema } from '#libs/contracts/src/audit-log-schemas/operations';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError } from '#libs/platform/src/domain-error';
import { faultsOfMetadata, readMetadataSchema, type Fault, type Metadata, type SchemaFault } from './metadata-schema.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type AuditActionEvent = Fact<'audit_log_action.schema_created', StoredSchema & { readonly id: string; readonly name: string }>;

/** One version of what events of an action have to be like; null: anything. */
export interface StoredSchema {
  /** By this, a repeated command finds what it made. */
  readonly schema_id: string;
  readonly version: number;
  readonly actor: MetadataSchema | null;
  readonly targets: readonly { readonly type: string; readonly metadata: MetadataSchema | null }[];
  readonly metadata: MetadataSchema | null;
}

/** A schema as it is kept: it never changes. */
export interface KnownSchema extends StoredSchema {
  readonly action_id: string;
  readonly created_at: string;
}

/** Its earlier schemas are rows of their own. */
export interface StoredAction {
  readonly id: string;
  readonly name: string;
  readonly schema: KnownSchema;
  readonly created_at: string;
  readonly updated_at: string;
}

/** What of an event a schema is about. */
export interface DescribedEvent {
  readonly action: string;
  readonly actor: { readonly metadata: Metadata };
  readonly targets: readonly { readonly type: string; readonly metadata: Metadata }[];
  readonly metadata: Metadata;
  /** Null: the newest. */
  readonly version: number | null;
}

const MAX_BYTES = 32 * 1_024;

/** Under a hash of the action's name. */
export const auditActionDecider: Decider<StoredAction | null, AuditActionEvent> = {
  category: 'audit_action',
  foldVersion: 1,
  initial: null,
  sealed: { 'audit_log_action.schema_created': null },
  evolve: (state, { data, at }) => ({
    id: data.id,
    name: data.name,
    schema: knownSchema(data, at),
    created_at: state?.created_at ?? at,
    updated_at: at,
  }),
  toPublicEvent: () => null,
};

/** `at`: ISO 8601 with milliseconds. */
export function knownSchema({ id, name: _, ...schema }: AuditActionEvent['data'], at: string): KnownSchema {
  return { ...schema, action_id: id, created_at: at };
}

type NewSchema = Omit<StoredSchema, 'schema_id' | 'version'>;

/** Each one is the next version, also where it equals the one before. */
export function createSchema(name: string, schema: NewSchema): Decision<StoredAction | null, AuditActionEvent> {
  return (state, context) => {
    const schema_id = context.id('audit_schema');
    if (state?.schema.schema_id === schema_id) return [];
    const id = state?.id ?? context.id('ala');
    return [{ type: 'audit_log_action.schema_created', data: { id, name, schema_id, version: (state?.schema.version ?? 0) + 1, ...schema } }];
  };
}

/** @throws DomainError `invalid_audit_log_schema`, which names each fault */
export function readSchema({ targets, actor, metadata }: Pick<CreateAuditLogSchema, 'targets' | 'actor' | 'metadata'>): NewSchema {
  const given = Buffer.byteLength(JSON.stringify({ targets, actor, metadata }));
  if (given > MAX_BYTES) throw refused([{ code: 'too_long', field: 'targets', message: `A schema has at most 32 KiB; this one has ${given} bytes.` }]);
  const faults: Fault[] = [];
  const types = new Set<string>();
  const read = {
    actor: readMetadataSchema(actor?.metadata, 'actor.metadata', faults),
    targets: targets.map((target, index) => {
      if (types.has(target.type)) faults.push({ code: 'not_unique', field: `targets.${index}.type`, message: `targets.${index}.type is there twice.` });
      types.add(target.type);
      return { type: target.type, metadata: readMetadataSchema(target.metadata, `targets.${index}.metadata`, faults) };
    }),
    metadata: readMetadataSchema(metadata, 'metadata', faults),
  };
  if (faults.length > 0) throw refused(faults);
  return read;
}

/** @throws DomainError `invalid_audit_log_event` where the event is not what the schema asks for */
export function requireConforming({ actor, targets, metadata }: DescribedEvent, schema: Pick<StoredSchema, 'actor' | 'targets' | 'metadata'>): void {
  const faults = [
    ...(schema.actor === null ? [] : faultsOfMetadata(schema.actor, actor.metadata, '/actor/metadata')),
    ...targets.flatMap((target, index): readonly SchemaFault[] => {
      const declared = schema.targets.find(({ type }) => type === target.type);
      if (declared === undefined) return [{ code: 'type', instancePath: `/targets/${index}`, message: 'must have one of the declared types' }];
      return declared.metadata === null ? [] : faultsOfMetadata(declared.metadata, target.metadata, `/targets/${index}/metadata`);
    }),
    ...(schema.metadata === null ? [] : faultsOfMetadata(schema.metadata, metadata, '/metadata')),
  ];
  if (faults.length > 0) throw notConforming(faults);
}

/** An event names a version of a schema that is not there. */
export function unknownVersion(): DomainError {
  return notConforming([{ code: 'unknown_version', instancePath: '/version', message: 'must be a version of a schema of the action' }]);
}

/** As answers show it: `{}` where anything goes. */
export function shownSchema({ version, actor, targets, metadata, created_at }: KnownSchema): AuditLogSchema {
  return {
    object: 'audit_log_schema',
    version,
    actor: { metadata: actor ?? {} },
    targets: targets.map((target) => ({ type: target.type, metadata: target.metadata ?? {} })),
    metadata: metadata ?? {},
    created_at,
  };
}

export function shownAction({ name, schema, created_at, updated_at }: StoredAction): AuditLogAction {
  return { object: 'audit_log_action', name, schema: shownSchema(schema), created_at, updated_at };
}

function refused(errors: readonly Fault[]): DomainError {
  return new DomainError('invalid', 'invalid_audit_log_schema', errors[0]!.message, { errors });
}

function notConforming(faults: readonly SchemaFault[]): DomainError {
  const errors = faults.map(({ code, instancePath, message }) => ({ code, field: `event${instancePath.replaceAll('/', '.')}`, instancePath, message }));
  const [{ instancePath, message }] = faults as readonly [SchemaFault];
  return new DomainError('invalid', 'invalid_audit_log_event', `The event does not conform to the schema of its action: ${instancePath} ${message}.`, {
    errors,
  });
}
