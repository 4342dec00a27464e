import { isNotFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { ReadModels, Table } from '#libs/read-models/src/read-models';
import { tableOf, type View } from './view.ts';

/** A command that took something away, by its own id. */
interface Deletion {
  readonly id: string;
}

/** Which commands of callers took something away in a service. What the system takes away by itself follows from an event, and is not answered. */
export function deletionsView(service: string, handles: readonly string[]): View<Deletion> {
  return {
    name: `${service}_deletions`,
    version: 1,
    handles,
    indexes: [],
    waitedFor: false,
    idsOf: ({ meta }) => (meta.actor.source === 'system' ? [] : [meta.commandId]),
    evolve: (_row, _event, id) => ({ id }),
  };
}

/** Commands that take something away: one that is repeated finds nothing, and is done all the same. */
export class Deletions {
  private readonly rows: Table<Deletion>;

  constructor(readModels: ReadModels, view: View<Deletion>) {
    this.rows = readModels.table(tableOf(view));
  }

  /**
   * Carries out a command that refuses as not found what it cannot take away; null where this very command has done so before, as another replica may have that
   * went before it answered.
   * @throws DomainError as `remove`
   */
  async once<Answer>(context: RequestContext, remove: () => Promise<Answer>): Promise<Answer | null> {
    try {
      return await remove();
    } catch (error) {
      const done = isNotFound(error) ? await this.rows.find(context, context.commandId) : null;
      if (done === null) throw error;
      context.receipt.position = done.position;
      return null;
    }
  }
}
