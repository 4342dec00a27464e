import { Injectable } from '@nestjs/common';
import { factsOf } from '#libs/event-sourcing/src/deciding/records';
import { CurrentStates, type CurrentStatesOf } from '#libs/event-sourcing/src/following/current-states';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import type { RequestContext } from '#libs/platform/src/request-context';
import {
  auditActionDecider,
  knownSchema,
  requireConforming,
  unknownVersion,
  type DescribedEvent,
  type KnownSchema,
  type StoredAction,
} from '../domain/audit-action.decider.ts';

/** Earlier versions that are kept in memory: they never change. */
const MAX_EARLIER = 1_000;

/** What events have to be like: as it stands at the end of the log, so that a schema holds for the next event on every replica. */
@Injectable()
export class ActionSchemas {
  private readonly actions: CurrentStatesOf<Pick<StoredAction, 'schema'> | null>;
  private readonly earlier = new BoundedMap<KnownSchema>(MAX_EARLIER);

  constructor(
    private readonly current: CurrentStates,
    private readonly naming: Naming,
    private readonly events: EventStore,
  ) {
    this.actions = current.of(auditActionDecider, (action) => action && { schema: action.schema });
  }

  /** The key of the stream of an action. */
  keyOf(name: string): string {
    return this.naming.keyOf('audit_action', name);
  }

  /**
   * Events of an action without a schema are as they like, unless they name a version.
   * @throws DomainError `invalid_audit_log_event` where the event is not what its schema asks for, or names a version that is not there
   */
  async requireConforming(context: RequestContext, content: DescribedEvent): Promise<void> {
    await this.current.headReached(context.deadline);
    const found = this.actions.get(context.environment, this.keyOf(content.action));
    const action = found instanceof Promise ? await found : found;
    const { version } = content;
    if (action === null) {
      if (version !== null) throw unknownVersion();
      return;
    }
    requireConforming(
      content,
      version === null || version === action.schema.version ? action.schema : await this.earlierOf(context, content.action, action, version),
    );
  }

  /** From the log, since its row may not be written yet. */
  private async earlierOf({ environment }: RequestContext, action: string, { schema }: Pick<StoredAction, 'schema'>, version: number): Promise<KnownSchema> {
    if (version < 1 || version > schema.version) throw unknownVersion();
    const name = `${schema.action_id}.${version}`;
    const known = this.earlier.get(environment, name);
    if (known !== undefined) return known;
    const { data, meta } = (await factsOf(this.events, auditActionDecider, environment, this.keyOf(action))).find((fact) => fact.data.version === version)!;
    const earlier = knownSchema(data, new Date(meta.at).toISOString());
    this.earlier.set(environment, name, earlier);
    return earlier;
  }
}
