import type { Clock } from '#libs/platform/src/clock';
import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import type { Log } from '#libs/platform/src/log';
import type { Leases } from '#libs/read-models/src/leases';
import { Fenced, type LogPlace, type ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { Cursor } from '../following/cursor.ts';
import { Follower } from '../following/follower.ts';
import { announcesLater } from '../following/public-events.ts';
import type { JointWrites } from '../following/joint-writes.ts';
import type { LogReader } from '../following/log-reader.ts';
import type { Awaited } from '../following/position-gate.ts';
import { START, type EventStore, type Position, type RecordedEvent } from '../log/event-store.ts';
import type { FollowerState, FollowerStates, SharedState, Halt } from '../following/follower-states.ts';
import { FoldedRows } from './folded-rows.ts';
import type { StoppedViews } from './stopped-views.ts';
import { Unfoldable, ViewFold } from './view-fold.ts';
import { skippedOf } from './view-skips.ts';
import { tableOf, typesOf, type View } from './view.ts';

export interface ViewRunnerNeeds {
  readonly events: EventStore;
  readonly reader: LogReader;
  readonly writes: JointWrites;
  /** Unguarded: a view that is halted has to be read to go on. */
  readonly readModels: ReadModels;
  readonly states: FollowerStates;
  readonly stopped: StoppedViews;
  readonly leases: Leases;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * One view, as one process sees it. Whoever holds its lease brings it along the log: `taken` (to be opened), `following`, or `halted`; `clearing` while it is
 * emptied to be filled anew. For everybody else it is `elsewhere`, and the shared rows tell of it.
 */
export class ViewRunner implements Awaited {
  readonly table: Table<unknown>;
  /** Of its own for each version, so that an old and a new release do not wait for each other. */
  readonly lease: string;
  phase: 'elsewhere' | 'taken' | 'clearing' | 'following' | 'halted' = 'elsewhere';
  /** Where it began when it was opened, and where the log ended then: it is filled when it has got there. */
  opened: { readonly from: Position; readonly end: Position } = { from: START, end: START };
  halt: Halt | null = null;
  /** It came to an event that only a later release can fold: this process has given the lease up, and does not ask for it again. */
  left: NeedsLaterRelease | null = null;
  /** Requests to fill it anew: the last that was carried out, and the last that is known. */
  carriedOut = '';
  requested = '';
  /** The token under which it was brought along until it was to be rebuilt: rows of before are not to come back with a checkpoint that was stored late. */
  outdated = 0;
  /** This process has been there since before the first event, and nobody has filled the view yet. */
  private isAsOldAsLog = false;
  private token = 0;
  /** The request that is being carried out. */
  private rebuilding = '';
  private told: string | null = null;
  private isFresh = false;
  private fold: ViewFold<unknown> | null = null;
  /** Outlives a fold, since what makes rows older for a while also breaks it off. */
  private folded = new FoldedRows();
  private busy: Promise<void> = Promise.resolve();
  private readonly follower: Follower;
  /** What is known of where it is, while it is not followed here. */
  private known: Position = START;
  /** The stored checkpoint. */
  private stored: Position = START;
  /** It was brought along here until the lease was lost: what it had seen then, and since when it is behind, as far as is known; null: another process has been seen to go on. */
  private abandoned: { readonly position: Position; since: number | null } | null = null;
  /** It was held here and did not go along, though there was something to be seen: since when, as far as anybody looked. */
  private standing: number | null = null;
  /** Since it was opened last: only what was begun then may bring it further. */
  private going = new AbortController();

  constructor(
    readonly view: View<unknown>,
    private readonly needs: ViewRunnerNeeds,
  ) {
    this.table = needs.readModels.table(tableOf(view));
    this.lease = leaseOf(this.table.definition.name);
    const handle = (events: readonly RecordedEvent[], upTo: LogPlace, signal: AbortSignal): Promise<void> =>
      this.inTurn(() => this.advance(events, upTo, signal));
    const types = new Set(typesOf(view));
    this.follower = new Follower(
      view.showsAnnounced ? { types: null, isFor: (event) => types.has(event.type) || announcesLater(event), handle } : { types: [...types], handle },
      needs.reader,
    );
  }

  /** What it has seen of the log, as far as this process knows. */
  get position(): Position {
    return (this.isFollowing ? this.follower.position : null) ?? this.known;
  }

  get isHeld(): boolean {
    return this.phase !== 'elsewhere';
  }

  /** What serves and goes along. */
  get isFollowing(): boolean {
    return this.phase === 'following';
  }

  get isElsewhere(): boolean {
    return this.phase === 'elsewhere';
  }

  get isToBeRebuilt(): boolean {
    return this.isHeld && this.phase !== 'clearing' && this.requested > this.carriedOut && this.requested !== this.rebuilding;
  }

  /** Until a process of a later release has brought it past what this one cannot fold, nobody here may take its rows for all that there are. */
  get awaitsLaterRelease(): boolean {
    return this.left !== null && this.position < this.left.position;
  }

  /** For a reader: a view that is halted keeps nobody waiting, since it refuses. */
  hasSeen(position: Position): boolean {
    return this.halt !== null || this.awaitsLaterRelease || this.position >= position;
  }

  hurry(position: Position): void {
    this.follower.hurry(position);
  }

  /**
   * When the oldest event was recorded that it has not seen (milliseconds since the epoch), where it is brought along here, or was until nobody could: what
   * hangs ends leases as well. null: there is none.
   */
  behindSince(head: Position): number | null {
    if (this.isFollowing && this.follower.goesAlong) {
      this.standing = null;
      return this.follower.behindSince(head);
    }
    if (this.abandoned !== null && head > this.abandoned.position) return (this.abandoned.since ??= this.needs.clock.now());
    if (this.isHeld && head > this.position) return (this.standing ??= this.needs.clock.now());
    return null;
  }

  /** Whether this process has to say how far behind it is: of a view that is halted, that is told otherwise. */
  get isToldOf(): boolean {
    return (this.isHeld && this.phase !== 'halted') || this.abandoned !== null;
  }

  /** Whether nobody has been seen to go on with it, though there is something to be seen. */
  get seemsAbandoned(): boolean {
    return this.isElsewhere && this.abandoned !== null && this.abandoned.since !== null;
  }

  /** For a start: a view that is halted may be about to go on, and one that is being filled is waited for. */
  isFilledTo(position: Position): boolean {
    if (this.awaitsLaterRelease) return true;
    if (this.halt !== null) return this.halt.reason !== 'rebuilding' && (this.phase === 'halted' || this.phase === 'elsewhere');
    return (this.phase === 'elsewhere' || this.phase === 'following') && this.position >= position;
  }

  /** The lease is ours; answers whether that is news. */
  take(token: number): boolean {
    if (this.isHeld && token === this.token) return false;
    this.token = token;
    // It was asked for here, for what is done next.
    if (this.phase === 'clearing') return false;
    this.quit('taken');
    this.isFresh = true;
    this.told = null;
    this.rebuilding = '';
    return true;
  }

  /** Nobody can be asked for the lease: another process may have it, or none. */
  abandon(): void {
    if (this.isFollowing) this.abandoned = { position: this.position, since: this.follower.behindSince(this.position) };
    this.lose();
  }

  /** The lease is no longer ours. */
  lose(): void {
    this.quit('elsewhere');
    this.standing = null;
    this.folded = new FoldedRows();
    this.known = START;
  }

  /** What is in memory of it may not be what is stored. */
  reopen(): void {
    if (this.isFollowing) this.quit('taken');
  }

  /** Nothing was recorded when this process began: rows that are written since are all that there can be. */
  beginWithLog(): void {
    this.isAsOldAsLog = true;
  }

  /** What the shared rows say. Of a view that is held here, they know what this process told. */
  learn({ halt, carriedOut, requested }: SharedState): void {
    this.requested = requested;
    if (this.isHeld && !this.isFresh) return;
    this.isFresh = false;
    this.carriedOut = carriedOut;
    if (halt === null && this.position > START) this.isAsOldAsLog = false;
    const isFilledFirst = halt?.reason === 'rebuilding' && halt.position === START && requested <= carriedOut;
    this.setHalt(isFilledFirst && this.isAsOldAsLog ? null : halt);
  }

  /** Where another process brings it along. */
  async look(): Promise<void> {
    const checkpoint = await this.table.checkpoint();
    if (!this.isElsewhere) return;
    this.known = checkpoint;
    if (this.abandoned !== null && checkpoint > this.abandoned.position) this.abandoned = null;
    if (this.left !== null) this.show();
  }

  /**
   * Goes on from the stored checkpoint, whatever was in memory of it; from then on nobody stores one under an earlier token. Answers its place in the log, which it is to be
   * given before it follows; null where it does not.
   * @throws Fenced
   */
  async open(): Promise<Cursor | null> {
    const { token } = this;
    await this.busy;
    const skipped = await skippedOf(this.needs.events, this.view.name);
    await this.table.prepare();
    // First the checkpoint, which grows, then the head: never the other way round.
    const position = await this.table.checkpoint();
    const end = await this.needs.events.head();
    const seen: LogPlace = { position, record: position === START ? null : await this.table.recordAt(position) };
    const isPutBack = position > end || (await this.needs.reader.hasAnotherAt(seen));
    if (this.phase !== 'taken' || this.token !== token) return null;
    if (isPutBack || this.halt?.reason === 'ahead') {
      this.haltAhead(position, end);
      return null;
    }
    await this.table.write([], seen, token);
    if (this.phase !== 'taken' || this.token !== token) return null;
    this.folded.forgetAfter(position);
    this.fold = new ViewFold(this.view, this.table, skipped, this.folded, () => this.needs.leases.isHeld(this.lease, token));
    this.known = this.stored = position;
    this.opened = { from: position, end };
    this.going = new AbortController();
    const cursor = this.follower.begin(position);
    this.phase = 'following';
    this.abandoned = null;
    // Rows that are there may not be all: nobody is to take them for that.
    if (position === START && this.halt === null && !this.isAsOldAsLog) this.setHalt({ reason: 'rebuilding', position });
    this.settle();
    return cursor;
  }

  /**
   * From where it was opened, until it is lost, stands, or is to be opened again.
   * @throws Fenced; PositionOfAnotherLog; anything else that the engines throw, or that has ended the reading of the log
   */
  async follow(): Promise<void> {
    const { signal } = this.going;
    try {
      await this.follower.follow(signal, { isSeated: true });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** The log does not have its position. */
  haltOutside(): void {
    if (this.isFollowing) this.haltAhead(this.position, this.opened.end);
  }

  /** What it passed over is stored: readers elsewhere learn of the last events of others too, and after a restart less is read again. */
  async rest(): Promise<void> {
    if (!this.isFollowing || this.position <= this.stored) return;
    await this.inTurn(async () => {
      const { token } = this;
      const { place } = this.follower;
      if (!this.isFollowing || place === null || place.position <= this.stored) return;
      await this.needs.writes.write(this.table, [], place, token);
      if (place.position > this.stored) this.stored = place.position;
    });
  }

  /** Filled: what kept it from serving is over. Answers whether that is news. */
  settle(): boolean {
    if (!this.isFollowing || this.halt === null || this.position < this.opened.end) return false;
    if (this.rebuilding !== '') this.carriedOut = this.rebuilding;
    this.rebuilding = '';
    this.setHalt(null);
    void this.tell().catch(() => {});
    return true;
  }

  /** Whether an operator decided to leave the event out before which it stands. */
  async isPassable(): Promise<boolean> {
    const { halt, phase } = this;
    return phase === 'halted' && halt?.reason === 'unfoldable' && (await skippedOf(this.needs.events, this.view.name)).has(halt.position);
  }

  /** Marks it, so that queries are refused everywhere before rows are missing. */
  beginRebuild(): void {
    this.rebuilding = this.requested;
    this.outdated = this.token;
    this.quit('clearing');
    this.setHalt({ reason: 'rebuilding', position: this.known });
  }

  /** Under a token that is newer than everything that was sent before. @throws Fenced when another process took over meanwhile */
  async clear(): Promise<void> {
    const { token } = this;
    await this.busy;
    this.folded = new FoldedRows();
    await this.table.clear(token);
    try {
      await this.table.write([], START, token);
    } catch (error) {
      // Rows of whoever took over may have gone with ours: it has to begin again.
      if (error instanceof Fenced) await this.needs.states.request([this.lease]);
      throw error;
    }
    if (this.token === token && this.phase === 'clearing') this.phase = 'taken';
  }

  /** Where clearing it failed, the request is still open. */
  rebuildFinished(): void {
    if (this.phase !== 'clearing') return;
    this.rebuilding = '';
    this.phase = 'taken';
  }

  /** Tells the others where that was not done yet. */
  async tell(): Promise<void> {
    if (!this.isHeld || this.isFresh) return;
    const state: FollowerState = { halt: this.halt, carriedOut: this.carriedOut };
    const text = JSON.stringify(state);
    if (text === this.told) return;
    await this.needs.states.tell(this.lease, state, this.token);
    this.told = text;
  }

  private async advance(events: readonly RecordedEvent[], upTo: LogPlace, signal: AbortSignal): Promise<void> {
    const { fold, token } = this;
    if (signal.aborted || fold === null || !events.some((event) => fold.concerns(event))) return;
    const place = this.needs.writes.reserve();
    try {
      await fold.apply(events, { upTo, fence: token, write: place.write });
      this.stored = upTo.position;
    } catch (error) {
      if (error instanceof NeedsLaterRelease) return signal.aborted ? undefined : this.leave(error);
      if (!(error instanceof Unfoldable)) throw error;
      if (!signal.aborted) this.haltBefore(error);
    } finally {
      place.release();
    }
  }

  private inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.busy.then(work);
    this.busy = done.catch(() => {});
    return done;
  }

  private quit(phase: Exclude<ViewRunner['phase'], 'following'>): void {
    this.known = this.position;
    this.phase = phase;
    this.fold = null;
    this.going.abort();
  }

  private haltBefore({ view, event, cause }: Unfoldable): void {
    this.needs.log.error('A view halts before an event that it cannot fold; queries that need it answer 503.', {
      view,
      type: event.type,
      position: event.position,
      error: cause,
    });
    this.stop({ reason: 'unfoldable', position: event.position });
  }

  /** Nobody else is told: a process of a later release goes on from what is stored. */
  private leave(reason: NeedsLaterRelease): void {
    this.needs.log.warn('A view has come to an event that only a later release can fold, and is left to processes of that release.', {
      view: this.view.name,
      position: reason.position,
      error: reason,
    });
    this.left = reason;
    this.lose();
    this.show();
    void this.needs.leases.release(this.lease);
  }

  private haltAhead(position: Position, head: Position): void {
    this.needs.log.error(
      "The log does not have what a view has seen last: it was restored to an earlier state. Queries that need the view answer 503 until 'gatehouse rebuild' has repaired it.",
      { view: this.view.name, position, head },
    );
    this.stop({ reason: 'ahead', position });
  }

  private stop(halt: Halt): void {
    this.quit('halted');
    // As far as it could be.
    if (this.rebuilding !== '') this.carriedOut = this.rebuilding;
    this.rebuilding = '';
    this.setHalt(halt);
    void this.tell().catch(() => {});
  }

  private setHalt(halt: Halt | null): void {
    this.halt = halt;
    this.show();
    // What was seen before it was emptied, or before the log was restored, is no longer there.
    if (halt !== null && this.isElsewhere) this.known = START;
  }

  /** To whoever reads its rows here. */
  private show(): void {
    const halt = this.halt?.reason ?? null;
    this.needs.stopped.set(this.table.definition.name, { halt, left: this.awaitsLaterRelease ? this.left : null });
  }
}

/** The lease of whoever fills a table. */
export function leaseOf(table: string): string {
  return `view.${table}`;
}
