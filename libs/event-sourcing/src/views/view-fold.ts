import { setTimeout as pause } from 'node:timers/promises';
import { isUnavailable, unavailable } from '#libs/platform/src/domain-error';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { contentOf, Fenced, type LogPlace, RowTooLarge, type StoredRow, type Table, type Write } from '#libs/read-models/src/read-models';
import { ERASED, ERASING, holdersOf } from '../erasure/erasing.ts';
import type { JointWrites } from '../following/joint-writes.ts';
import { announcesLater } from '../following/public-events.ts';
import { placeAt } from '../following/reading.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import { isFromLaterRelease, type LaterRecord } from '../log/upcasts.ts';
import type { Holder } from '../sealing/holders.ts';
import { KeyMissing } from '../sealing/key-store.ts';
import { replacedAt } from '../sealing/sealed-paths.ts';
import { FoldedRows } from './folded-rows.ts';
import { HOLDER_INDEX, typesOf, type PersonalColumns, type View } from './view.ts';

/** Rows that are older than they were are read again for so long, so often. A store that was just taken over by another of its members knows all of them soon. */
const AGAIN_MS = 5_000;
const AGAIN_EVERY_MS = 50;

/** An event that a view cannot fold, or whose row is more than a table holds: a gap would be silent, so the view stops before it. */
export class Unfoldable extends Error {
  constructor(
    readonly view: string,
    readonly event: RecordedEvent,
    cause: unknown,
  ) {
    super(`${view} cannot fold ${event.type} at position ${event.position}.`, { cause });
  }
}

/** A row as the events of a batch leave it. */
interface Touched<Row> {
  row: Row | null;
  revision: number;
  position: string;
  isChanged: boolean;
  readonly isThere: boolean;
}

type Rows<Row> = ReadonlyMap<string, Touched<Row>>;

interface Applying {
  /** Nothing else that concerns the view lies before it. Absent: the position of the last event. */
  readonly upTo?: LogPlace;
  /** The token of the lease under which it is done. */
  readonly fence?: number | undefined;
  /** Instead of the table's own. */
  readonly write?: JointWrites['write'];
}

/** Folds events into the rows of one view, a batch at a time. */
export class ViewFold<Row> {
  private readonly types: ReadonlySet<string>;
  private readonly handles: ReadonlySet<string>;
  /** What the view keeps from one batch to the next of the rows that it left. */
  private remembered = new Map<string, unknown>();
  private unstored = new Map<string, unknown>();
  /** By whose erasure, until no process has their keys: what is written meanwhile may be of a row that was read before. */
  private readonly erased = new Map<Holder, RecordedEvent>();

  constructor(
    readonly view: View<Row>,
    readonly table: Table<Row>,
    /** Positions that an operator decided to leave out. */
    private readonly skipped: ReadonlySet<string> = new Set(),
    /** What earlier folds of the same rows left. */
    private readonly known = new FoldedRows(),
    /** Whether nobody else has brought the view along since this began, as far as this process can tell. */
    private readonly isOurs: () => boolean = () => true,
  ) {
    this.types = new Set(typesOf(view));
    this.handles = new Set(view.handles);
  }

  concerns(event: RecordedEvent): boolean {
    return (this.types.has(event.type) || (this.view.showsAnnounced === true && announcesLater(event))) && !this.skipped.has(event.position);
  }

  /**
   * Folds the events that concern this view, and stores their rows together with the position up to which those are all. Folding events again changes nothing.
   * @throws Unfoldable, or NeedsLaterRelease, after what came before the event was stored; Fenced
   */
  async apply(batch: readonly RecordedEvent[], { upTo = placeAt(batch.at(-1)!), fence, write }: Applying = {}): Promise<void> {
    const events = batch.filter((event) => this.concerns(event));
    const later = events.find(isFromLaterRelease);
    if (later !== undefined) return this.applyBefore(later, batch, fence);
    const { personal } = this.view;
    const erasure = personal ? events.findIndex(({ type }) => ERASING.includes(type)) : -1;
    if (erasure >= 0) return this.applyErasure(events, erasure, personal!, { upTo, fence });
    try {
      const rows: Rows<Row> = events.length === 0 ? new Map() : await this.folded(events);
      await this.store(rows, upTo, fence, write);
      if (this.erased.size > 0) await this.forgetAgain(rows, personal!);
    } catch (error) {
      if (!(error instanceof Unfoldable) && !(error instanceof RowTooLarge)) throw error;
      // A row of several events may fail at any of them: one by one, the first that fails is found, and what came before it is stored.
      for (const event of events) await this.applyOne(event, fence);
      // What was too much in the midst of a batch may be less at its end, and the other way round.
      await this.store(new Map(), upTo, fence);
    }
  }

  private async applyBefore(later: LaterRecord, batch: readonly RecordedEvent[], fence: number | undefined): Promise<never> {
    const before = batch.slice(0, batch.indexOf(later));
    if (before.length > 0) await this.apply(before, { fence });
    throw later.reason;
  }

  /** What came before it is stored by then, so that every row is found which holds anything of who is erased. */
  private async applyErasure(events: readonly RecordedEvent[], index: number, personal: PersonalColumns<Row>, { upTo, fence }: Applying): Promise<void> {
    const [before, erasure, behind] = [events.slice(0, index), events[index]!, events.slice(index + 1)];
    if (before.length > 0) await this.apply(before, { fence });
    // The checkpoint comes last: cut short, all of it is done again.
    if (this.handles.has(erasure.type)) await this.store(await this.folded([erasure]), null, fence);
    for (const holder of holdersOf(erasure)) {
      await this.forget(holder, personal, erasure);
      if (erasure.type === ERASED) this.erased.set(holder, erasure);
      else this.erased.delete(holder);
    }
    if (behind.length === 0) return this.store(new Map(), upTo!, fence);
    await this.store(new Map(), placeAt(erasure), fence);
    await this.apply(behind, { upTo, fence });
  }

  private async forget(holder: Holder, { columns, idsOf }: PersonalColumns<Row>, { meta, position }: RecordedEvent): Promise<void> {
    const rows = idsOf === undefined ? { where: { index: HOLDER_INDEX, values: [holder] } } : { ids: idsOf(holder) };
    await this.table.rewrite(this.homeOf(meta), rows, position, (stored) => {
      const row = contentOf(stored);
      return this.textOf(replacedAt(row, columns(row, holder), () => null));
    });
  }

  /** Whoever decided on a row of before writes it with what was forgotten: it is not to stay until the keys are gone everywhere. */
  private async forgetAgain(rows: Rows<Row>, personal: PersonalColumns<Row>): Promise<void> {
    const holders = new Set([...rows.values()].flatMap(({ row }) => (row === null ? [] : personal.holders(row))));
    for (const holder of holders) {
      const erasure = this.erased.get(holder);
      if (erasure !== undefined) await this.forget(holder, personal, erasure);
    }
  }

  private async applyOne(event: RecordedEvent, fence: number | undefined): Promise<void> {
    try {
      await this.store(await this.folded([event]), placeAt(event), fence);
    } catch (error) {
      throw error instanceof RowTooLarge ? new Unfoldable(this.view.name, event, error) : error;
    }
  }

  private async store(rows: Rows<Row>, checkpoint: LogPlace | null, fence: number | undefined, write?: JointWrites['write']): Promise<void> {
    // Only the checkpoint is fenced. Rows that were read after somebody else had begun to empty the table would be taken for whole ones where it is filled anew.
    if (!this.isOurs()) throw new Fenced(this.table.definition.name, fence ?? 0);
    const changed = [...rows].filter(([, { isChanged }]) => isChanged);
    const writes = changed.map(([key, row]) => this.writeOf(key, row));
    const upTo = checkpoint ?? undefined;
    await (write === undefined ? this.table.write(writes, upTo, fence) : write(this.table, writes, upTo, fence));
    if (this.table.mayShowOlder) for (const [key, { position, isThere }] of rows) if (position !== '') this.known.set(key, { position, isThere });
    if (rows.size > 0) this.remembered = this.unstored;
  }

  /** The rows as these events leave them. @throws Unfoldable; DomainError `service_unavailable` */
  private async folded(events: readonly RecordedEvent[]): Promise<Rows<Row>> {
    let current = events[0]!;
    const attempt = <T>(step: () => T): T => {
      try {
        return step();
      } catch (error) {
        // Keys that do not answer at the moment are waited for; one that is missing stays so until somebody puts it back.
        if (isUnavailable(error) && !(error instanceof KeyMissing)) throw error;
        throw new Unfoldable(this.view.name, current, error);
      }
    };
    const ids = attempt(() => events.map((event) => this.view.idsOf((current = event))));
    const rows = await this.load(events, ids);
    const remembered = this.remembered;
    // Until what follows from it is stored, the table may be elsewhere than it says.
    this.remembered = new Map();
    this.unstored = remembered;
    const evolve = (await this.view.evolveBatch?.(this.table, events, remembered)) ?? this.view.evolve.bind(this.view);
    return attempt(() => {
      for (const [index, event] of events.entries()) this.foldOne((current = event), ids[index]!, rows, evolve);
      return rows;
    });
  }

  private foldOne(event: RecordedEvent, ids: readonly string[], rows: Rows<Row>, evolve: View<Row>['evolve']): void {
    for (const id of ids) {
      const touched = rows.get(keyOf(this.homeOf(event.meta), id))!;
      // Written with its event, or before a crash that took the checkpoint.
      if (touched.position >= event.position) continue;
      touched.row = evolve(touched.row, event, id);
      touched.revision = event.version;
      touched.position = event.position;
      touched.isChanged = true;
    }
  }

  /**
   * The stored rows that the events touch, none older than this fold knows it: an event that it has folded already would be lost.
   * @throws DomainError `service_unavailable` where they stay older
   */
  private async load(events: readonly RecordedEvent[], ids: readonly (readonly string[])[]): Promise<Rows<Row>> {
    const wanted = new Map<string, Set<string>>();
    for (const [index, { meta }] of events.entries()) {
      const environment = this.homeOf(meta);
      let ofEnvironment = wanted.get(environment);
      if (ofEnvironment === undefined) wanted.set(environment, (ofEnvironment = new Set()));
      for (const id of ids[index]!) ofEnvironment.add(id);
    }
    const rows = new Map<string, Touched<Row>>();
    for (const [environment, ofEnvironment] of wanted)
      for (const [id, found] of await this.latest(environment, [...ofEnvironment]))
        rows.set(keyOf(environment, id), new LazyRow<Row>(found?.text ?? null, found?.revision ?? 0, found?.position ?? ''));
    return rows;
  }

  private async latest(environment: string, ids: readonly string[]): Promise<ReadonlyMap<string, StoredRow | null>> {
    const rows = new Map<string, StoredRow | null>();
    const deadline = performance.now() + AGAIN_MS;
    for (let missing = ids; ; await pause(AGAIN_EVERY_MS)) {
      const stored = await this.table.getMany(environment, missing);
      for (const [index, id] of missing.entries()) rows.set(id, stored[index] ?? null);
      if (!this.table.mayShowOlder) return rows;
      const isOld = await Promise.all(missing.map((id) => this.isOld(environment, id, rows.get(id) ?? null)));
      missing = missing.filter((_id, index) => isOld[index]);
      if (missing.length === 0) return rows;
      if (performance.now() > deadline) throw unavailable(`Rows of the view ${this.view.name} are older than they were.`);
    }
  }

  private async isOld(environment: string, id: string, found: StoredRow | null): Promise<boolean> {
    const known = this.known.get(keyOf(environment, id));
    if (known === undefined) return false;
    if (found !== null) return found.position < known.position;
    // It may have been deleted since, as it may not be there yet.
    return known.isThere && !(await this.table.isAsLateAs(environment, id, known.position));
  }

  private writeOf(key: string, { row, revision, position }: Touched<Row>): Write {
    const separator = key.indexOf('\0');
    return { environment: key.slice(0, separator), id: key.slice(separator + 1), position, revision, text: row === null ? null : this.textOf(row), row };
  }

  /** The environment in which the rows of an event lie. */
  private homeOf({ environment }: RecordedEvent['meta']): string {
    return this.view.isOfAllEnvironments === true ? SYSTEM_ENVIRONMENT : environment;
  }

  private textOf(row: Row): string {
    return this.view.serialise?.(row) ?? JSON.stringify(row);
  }
}

function keyOf(environment: string, id: string): string {
  return `${environment}\0${id}`;
}

/** Parsed only when an event has to be folded into it: most rows were written with their event. */
class LazyRow<Row> implements Touched<Row> {
  isChanged = false;
  private parsed: Row | null | undefined;

  constructor(
    private readonly text: string | null,
    public revision: number,
    public position: string,
  ) {}

  get isThere(): boolean {
    return this.parsed === undefined ? this.text !== null : this.parsed !== null;
  }

  get row(): Row | null {
    if (this.parsed === undefined) this.parsed = this.text === null ? null : (JSON.parse(this.text) as Row);
    return this.parsed;
  }

  set row(row: Row | null) {
    this.parsed = row;
  }
}
