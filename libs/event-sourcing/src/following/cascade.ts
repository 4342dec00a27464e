import { Injectable } from '@nestjs/common';
import { allDone } from '#libs/platform/src/all-done';
import { Clock } from '#libs/platform/src/clock';
import { systemContext } from '#libs/platform/src/system-context';
import { contentOf, ReadModels, type PageRequest, type StoredRow } from '#libs/read-models/src/read-models';
import type { Decider, Decision, Fact, Parent, Recorded } from '../deciding/decider.ts';
import { Repository } from '../deciding/repository.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import { streamKeyOf } from '../log/naming.ts';
import { tableOf, type PrimaryView, type ViewOf } from '../views/view.ts';
import { Positions } from '#libs/platform/src/positions';
import type { Reaction } from './reaction.ts';

/** How long a reaction waits for the rows that the log already tells of. */
const ROWS_TIMEOUT_MS = 10_000;
/** Decided at one time: they share the flushes of the log, and leave room for requests. */
const AT_ONCE = 25;

type AnyDecider = Decider<unknown, Fact>;
type AnyView = PrimaryView<unknown, Fact, object>;

/** The end of a parent, or the beginning of what hangs on one. */
type Ending = Fact<string, { readonly id: string }>;

/** Records what follows for everything that hangs on something that ended: one decision each, however many they are. Every step may be broken off and begun again. */
@Injectable()
export class Cascade {
  constructor(
    private readonly repository: Repository,
    private readonly positions: Positions,
    private readonly readModels: ReadModels,
    private readonly clock: Clock,
  ) {}

  /**
   * The reaction that ends what these deciders decide together with its parents. `views`: the primary views of the service, by their categories; they tell what hangs
   * on a parent, and whether a parent lives.
   */
  reactionOf(deciders: readonly AnyDecider[], views: ReadonlyMap<string, AnyView>): Reaction<Ending> {
    const declared = deciders.map((decider) => ({ decider, hangsOn: decider.hangsOn!, view: views.get(decider.category) }));
    const unseen = declared.flatMap(({ hangsOn }) => hangsOn.parents).find(({ category }) => category !== undefined && !views.has(category));
    if (unseen !== undefined) throw new Error(`No view of this service tells which ${unseen.category} lives.`);
    return {
      name: declared[0]!.hangsOn.reaction,
      handles: [...new Set(declared.flatMap(({ hangsOn: { parents, begins = [] } }) => [...parents.map(({ ends }) => ends), ...begins]))],
      react: async (event) => {
        const { id } = event.data;
        for (const { decider, hangsOn, view } of declared) {
          const { parents, begins = [] } = hangsOn;
          const parent = parents.find(({ ends }) => ends === event.type);
          if (parent?.index !== undefined) {
            const where = view!.under?.[parent.index]?.(id) ?? { index: parent.index, values: [id] };
            await this.each(event, view!, where, (row) => this.decide(event, decider, hangsOn.keyOf?.(contentOf(row)) ?? row.id, hangsOn.end(row.id)));
          } else if (parent !== undefined) await this.decide(event, decider, id, hangsOn.end(id));
          else if (begins.includes(event.type) && (await this.hasLostAParent(event, parents, views)))
            await this.decide(event, decider, streamKeyOf(event.stream), hangsOn.end(id));
        }
      },
    };
  }

  /** Work for each row of a view that an index finds, as the rows stand after `event`. */
  async each<Row>(
    event: Pick<RecordedEvent, 'position' | 'meta'>,
    view: ViewOf<Row>,
    where: NonNullable<PageRequest['where']>,
    work: (row: StoredRow<Row>) => Promise<unknown>,
  ): Promise<void> {
    await this.reached(event);
    const table = this.readModels.table(tableOf(view));
    for (let after: string | undefined, more = true; more;) {
      const page = await table.page(event.meta.environment, { where, order: 'asc', limit: AT_ONCE, after });
      await allDone(page.rows.map(work));
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }

  /** Resolves when rows show everything up to the event. */
  async reached({ position }: Pick<RecordedEvent, 'position'>): Promise<void> {
    await this.positions.reached(position, this.clock.now() + ROWS_TIMEOUT_MS);
  }

  /** Decides on one aggregate until nothing follows: facts that `mayFollow` are left for another append where they are more than one takes. */
  async decide<State, Event extends Fact>(
    { meta }: Pick<RecordedEvent, 'meta'>,
    decider: Decider<State, Event>,
    key: string,
    decision: Decision<State, Event>,
  ): Promise<void> {
    const next = () => this.repository.transact(decider, systemContext(meta.environment, this.clock.now()), key, decision);
    while ((await next()).facts.length > 0 && decider.mayFollow !== undefined);
  }

  /** What began behind the end of a parent is met here: the end comes earlier in the log, and rows show it. */
  private async hasLostAParent(event: Recorded<Ending>, parents: readonly Parent[], views: ReadonlyMap<string, AnyView>): Promise<boolean> {
    await this.reached(event);
    const fields = event.data as unknown as Readonly<Record<string, string | null>>;
    const found = parents.flatMap(({ category, field }) => {
      const id = category === undefined ? null : fields[field!]!;
      return id === null ? [] : [this.readModels.table(tableOf(views.get(category!)!)).get(event.meta.environment, id)];
    });
    return (await Promise.all(found)).includes(null);
  }
}
