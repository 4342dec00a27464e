import { Injectable } from '@nestjs/common';
import { AuditLogAction, AuditLogSchema } from '#libs/contracts/src/audit-log-schemas/audit-log-schema';
import { CreateAuditLogSchema, ListAuditLogActions, ListAuditLogSchemas } from '#libs/contracts/src/audit-log-schemas/operations';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { factsOf } from '#libs/event-sourcing/src/deciding/records';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { invalidField, notFound } from '#libs/platform/src/domain-error';
import { isPlainText } from '#libs/platform/src/plain-text.decider';
import { pageOf } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import {
  auditActionDecider,
  createSchema,
  knownSchema,
  readSchema,
  shownAction,
  shownSchema,
  type KnownSchema,
  type StoredAction,
} from '../domain/audit-action.decider.ts';
import { ActionSchemas } from '../readers/action-schemas.ts';
import { auditActionsView, auditSchemasView } from '../views/audit-actions.view.ts';

const actionText = serialiserOf(AuditLogAction);
const schemaText = serialiserOf(AuditLogSchema);

/** What applications declare of their audit events. */
@Injectable()
export class AuditSchemas {
  private readonly actions: Table<StoredAction>;
  private readonly schemas: Table<KnownSchema>;

  constructor(
    private readonly repository: Repository,
    private readonly events: EventStore,
    private readonly known: ActionSchemas,
    readModels: ReadModels,
  ) {
    this.actions = readModels.table(tableOf(auditActionsView));
    this.schemas = readModels.table(tableOf(auditSchemasView));
  }

  @Handles(CreateAuditLogSchema)
  async create({ context, action_name, targets, actor, metadata }: CreateAuditLogSchema): Promise<AuditLogSchema> {
    // A path may hold any text, for what cannot be there is not found; this one is kept, and no event could have such an action.
    if (!isPlainText(action_name)) throw invalidField('invalid_characters', 'action_name', 'action_name has characters that are not allowed.');
    const schema = readSchema({ targets, actor, metadata });
    const key = this.known.keyOf(action_name);
    const { state, isRepeat } = await this.repository.transact(auditActionDecider, context, key, createSchema(action_name, schema));
    if (!isRepeat) return shownSchema(state!.schema);
    // There may be later ones by now.
    const made = (await factsOf(this.events, auditActionDecider, context.environment, key)).find(({ meta }) => meta.commandId === context.commandId)!;
    return shownSchema(knownSchema(made.data, new Date(made.meta.at).toISOString()));
  }

  @Handles(ListAuditLogActions)
  async list(query: ListAuditLogActions): Promise<Serialised<List<AuditLogAction>>> {
    return pageOf(this.actions, query, { idPrefix: 'ala', textOf: (row) => actionText(shownAction(contentOf(row))) });
  }

  @Handles(ListAuditLogSchemas)
  async schemasOf(query: ListAuditLogSchemas): Promise<Serialised<List<AuditLogSchema>>> {
    const { context, action_name } = query;
    const action = await this.repository.load(auditActionDecider, context.environment, this.known.keyOf(action_name));
    if (action === null) throw notFound('Action', action_name);
    const where = { index: 'action', values: [action.id] };
    return pageOf(this.schemas, query, { idPrefix: 'audit_schema', where, textOf: (row) => schemaText(shownSchema(contentOf(row))) });
  }
}
