import { isNotFound, notFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { ReadModels, Table } from '#libs/read-models/src/read-models';
import { tableOf, type View } from '../views/view.ts';
import type { Fact } from './decider.ts';
import { mayHaveRun } from './repeats.ts';
import type { Transacted } from './repository.ts';

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
    awaited: false,
    personal: null,
    idsOf: ({ meta }) => (meta.actor.source === 'system' ? [] : [meta.commandId]),
    evolve: (_row, _event, id) => ({ id }),
  };
}

/** Who takes away what. */
interface Removal {
  readonly context: RequestContext;
  /** As callers know it: `Group`. */
  readonly what: string;
  readonly id: string;
}

/** Commands that take something away: one that is repeated finds nothing, and is done all the same. */
export class Deletions {
  private readonly rows: Table<Deletion>;

  constructor(readModels: ReadModels, view: View<Deletion>) {
    this.rows = readModels.table(tableOf(view));
  }

  /**
   * Carries out a command that takes something away, and refuses as not found what is gone: of those who ask at once, one is told that it did so. Null where this very
   * command had done so before, as another replica may have that went before it answered, and what it names cannot be looked up any more.
   * @throws DomainError `entity_not_found`, and as `remove`
   */
  async once<Removed extends Pick<Transacted<unknown, Fact>, 'facts' | 'isRepeat'>>(
    { context, what, id }: Removal,
    remove: () => Promise<Removed>,
  ): Promise<Removed | null> {
    try {
      const removed = await remove();
      if (removed.facts.length === 0 && !removed.isRepeat) throw notFound(what, id);
      return removed;
    } catch (error) {
      const done = isNotFound(error) && mayHaveRun(context) ? await this.rows.find(context, context.commandId) : null;
      if (done === null) throw error;
      context.receipt.position = done.position;
      return null;
    }
  }
}
