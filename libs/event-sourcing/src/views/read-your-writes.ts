import type { Metrics } from '#libs/platform/src/metrics';
import type { ReadModels, Table } from '#libs/read-models/src/read-models';
import type { LogFollowing } from '../following/memory-follower.ts';
import type { Awaited } from '../following/position-gate.ts';
import { type Position, START } from '../log/event-store.ts';
import type { Projector } from './projector.ts';
import { tableOf, type View } from './view.ts';

/** How long an answer waits for views to show what it tells of. */
const VIEWS_TIMEOUT_MS = 1_000;

/** A view of another service, whose readers count on what is answered here. */
export interface ViewElsewhere {
  readonly name: string;
  readonly version: number;
  /** What has to be known there: of the types that it folds, those that matter so much. */
  readonly handles: readonly string[];
}

interface Needs {
  readonly views: readonly View<never>[];
  readonly elsewhere: readonly ViewElsewhere[];
  readonly readModels: ReadModels;
  readonly projector: Projector;
  readonly following: LogFollowing;
  readonly metrics: Metrics;
}

/**
 * Waits for views of this process, and for a few of other services, whoever brings them along: an answered command is seen by every later list and look-up (architecture §5 step 6). Primary views
 * are written at once, and nobody waits for a view that says so of itself.
 */
export class ReadYourWrites {
  /** By the types of events that they fold. */
  private readonly views = new Map<string, ReadonlySet<string>>();
  /** Of other services, by the names of their views. */
  private readonly stored = new Map<string, Awaited>();
  /** Of this process, by the names of their tables. */
  private readonly here: ReadonlyMap<string, string>;
  private readonly late;

  constructor(private readonly needs: Needs) {
    this.here = new Map(needs.views.map((view) => [tableOf(view).name, view.name]));
    const elsewhere = needs.elsewhere.filter(({ name }) => !needs.views.some((view) => view.name === name));
    for (const { name, version } of elsewhere) {
      const table = needs.readModels.table<never>({ name: `${name}-v${version}`, indexes: [], rebuildable: true });
      this.stored.set(name, new StoredCheckpoint(table));
    }
    for (const view of [...needs.views.filter((each) => !('decider' in each) && each.awaited !== false), ...elsewhere])
      for (const type of view.handles) this.views.set(type, new Set([...(this.views.get(type) ?? []), view.name]));
    this.late = needs.metrics.counter({ name: 'answers_before_views_total', help: 'Commands that were answered before a view showed what they recorded.' });
  }

  /**
   * Resolves once everything up to `position` is shown wherever facts of these types are, and by the view that is `late` since its rows could not be written with
   * them; in any case after a second. Null where no view has to be waited for.
   */
  waitForViews(facts: readonly { readonly type: string }[], position: Position, late: string | null = null): Promise<void> | null {
    let names: ReadonlySet<string> | null = late === null ? null : new Set([late]);
    for (const { type } of facts) {
      const folding = this.views.get(type);
      if (folding !== undefined && folding !== names) names = names === null ? folding : new Set([...names, ...folding]);
    }
    return names === null ? null : this.wait(names, position);
  }

  /**
   * Resolves once every view of this process has seen the log as it stands after the call: what is not found then was not there. Of one `table`: once its view has.
   * @throws DomainError `service_unavailable` past the deadline (milliseconds since the epoch)
   */
  async waitForHead(deadline: number, table: string | null = null): Promise<void> {
    const { projector, following } = this.needs;
    const names = new Set(table === null ? this.here.values() : [this.here.get(table)].filter((name) => name !== undefined));
    await following.gate.headReached(deadline, projector.shown(names));
  }

  /** As `waitForHead`, for whoever would rather read what is there than nothing: resolves after a second at the latest. */
  async waitBrieflyForHead(table: string): Promise<void> {
    await this.waitForHead(this.needs.following.clock.now() + VIEWS_TIMEOUT_MS, table).catch(() => {});
  }

  /**
   * What is looked for in several tables, or null: a row that is not there may come later than its event, so it is looked for once more at the end of the log.
   * What lies in one table is found by that table (`Table.find`).
   * @throws DomainError as `waitForHead`
   */
  async retryAtHead<Found>(deadline: number, look: () => Promise<Found | null>): Promise<Found | null> {
    const found = await look();
    if (found !== null) return found;
    await this.waitForHead(deadline);
    return look();
  }

  private async wait(names: ReadonlySet<string>, position: Position): Promise<void> {
    const { projector, following } = this.needs;
    const here = projector.shown(names);
    const awaited = this.stored.size === 0 ? here : [...here, ...[...this.stored].filter(([name]) => names.has(name)).map(([, stored]) => stored)];
    await following.gate.reached(position, following.clock.now() + VIEWS_TIMEOUT_MS, awaited).catch(() => this.late.inc());
  }
}

/** How far a table is that other processes bring along. */
class StoredCheckpoint implements Awaited {
  readonly isElsewhere = true;
  private position: Position = START;

  constructor(private readonly table: Table<never>) {}

  hasSeen(position: Position): boolean {
    return this.position >= position;
  }

  async look(): Promise<void> {
    this.position = await this.table.checkpoint();
  }
}
