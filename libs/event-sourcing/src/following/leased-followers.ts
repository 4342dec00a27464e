import { setTimeout as pause } from 'node:timers/promises';
import { aborted } from '#libs/platform/src/deadline';
import { NeedsLaterRelease } from '#libs/platform/src/domain-error';
import type { Lifecycle } from '#libs/platform/src/lifecycle';
import type { Metrics } from '#libs/platform/src/metrics';
import { LeasedWork, type Work } from '#libs/read-models/src/leased-work';
import type { Leases } from '#libs/read-models/src/leases';
import type { LogPlace, Table } from '#libs/read-models/src/read-models';
import type { SharedLeases } from '#libs/read-models/src/shared-leases';
import { type Position, PositionOfAnotherLog, type RecordedEvent, START } from '../log/event-store.ts';
import type { FollowerStates, SharedState } from './follower-states.ts';
import { type Followed, Follower } from './follower.ts';
import type { JointWrites } from './joint-writes.ts';
import type { Listener } from './log-reader.ts';
import type { LogFollowing } from './memory-follower.ts';
import { LogPutBack } from './reading.ts';

/** How long resuming one may take: its holder looks every second. */
const RESUME_TIMEOUT_MS = 30_000;
const POLL = 100;
/** What this process tried so long ago, and not again, another process has taken over. */
const OTHERS_BUSINESS = 60_000;

/** A checkpoint that lies elsewhere than those of all others, and is not stored together with them. */
export interface CheckpointElsewhere extends Pick<Table<never>, 'checkpoint' | 'recordAt' | 'write'> {
  readonly isElsewhere: true;
}

/** Follows the log, each event at least once and in order, for the whole cluster. */
export interface LeasedFollowing {
  /** Of its lease: `forwarder.identity`. */
  readonly name: string;
  /** Keeps its checkpoint: under a new table, it begins at the start of the log. */
  readonly table: Table<never> | CheckpointElsewhere;
  /** Under a new table, it begins at the end of the log instead, or where this says. */
  readonly from?: 'head' | (() => Promise<Position>) | undefined;
  /** Doing again what was done changes nothing: resumed, it begins at the start of the log, so that nothing is passed over that came while it stood still. */
  readonly isRepeatable?: true;
  /** Told whenever it begins somewhere, before it is handed anything: what it remembers of before may be of another log. */
  readonly onBegin?: () => void;
  /** Which of these it handles, by what is known without their content; absent: all. */
  readonly isFor?: ((event: RecordedEvent) => boolean) | undefined;
  /** Shares its lease out, with others, among the replicas: it is given back between two batches, with the checkpoint of the last one stored. */
  readonly shares?: SharedLeases | undefined;
  /** Of the events that it handles; absent: all. What else is recorded costs it nothing. */
  readonly types?: readonly string[] | undefined;
  /**
   * Answers whether the end of the batch is worth remembering at once. What is cut short by the signal comes again.
   * @throws NeedsLaterRelease where the first of them is to be handled and cannot be read: it and all that follows is left to a process that can
   */
  readonly handle: (batch: readonly RecordedEvent[], signal: AbortSignal) => Promise<boolean>;
}

export interface FollowerStatus {
  readonly name: string;
  readonly position: Position;
  readonly isAhead: boolean;
}

/** What of the log is not known to be handled. */
interface Behind {
  /** When the oldest of it was recorded, at the earliest. */
  readonly since: number;
  readonly triedAt: number;
}

interface Needs {
  readonly following: LogFollowing;
  readonly writes: JointWrites;
  readonly leases: Leases;
  readonly states: FollowerStates;
  readonly lifecycle: Lifecycle;
  readonly metrics: Metrics;
}

/** Everything of this process that follows the log under a lease, from the checkpoint that whoever held it last has stored. */
export class LeasedFollowers implements Listener {
  private readonly followers: LeasedFollower[] = [];

  constructor(private readonly needs: Needs) {
    needs.metrics.gauge({
      name: 'follower_ahead',
      help: '1 while a forwarder or reaction is halted because the log does not have its position.',
      labels: ['work'],
      collect: (gauge) => {
        for (const follower of this.followers) gauge.set({ work: follower.name }, follower.isAhead ? 1 : 0);
      },
    });
    needs.metrics.gauge({
      name: 'follower_lag_seconds',
      help: 'Age of the oldest event that a forwarder or reaction of this process has not handled; 0 when it has handled all, or another process does it.',
      labels: ['work'],
      collect: (gauge) => {
        for (const follower of this.followers) gauge.set({ work: follower.name }, follower.lag());
      },
    });
    needs.metrics.gauge({
      name: 'follower_left_to_later_release',
      help: '1 where a forwarder or reaction came to an event that only a later release can handle: this process does not ask for its lease again.',
      labels: ['work'],
      collect: (gauge) => {
        for (const follower of this.followers) gauge.set({ work: follower.name }, follower.isLeft ? 1 : 0);
      },
    });
  }

  /** Before the process starts its parts. */
  add(following: LeasedFollowing): void {
    const {
      lifecycle,
      leases,
      following: { reader, log },
    } = this.needs;
    const follower = new LeasedFollower(following, this.needs);
    this.followers.push(follower);
    const work: Work = async (signal, token) => {
      reader.listen(this);
      await follower.follow(signal, token).finally(() => {
        if (!this.followers.some(({ isActive }) => isActive)) reader.leave(this);
      });
    };
    lifecycle.add(new LeasedWork(following.name, work, { leases, log, shares: following.shares }));
  }

  /** What those who follow are asked to do is read at once for all of them. */
  headIs(head: Position, asked: number): void {
    const active = this.followers.filter(({ isActive }) => isActive);
    for (const follower of active) follower.headIs(head, asked);
    if (active.length === 0) return;
    void this.needs.states.read(active.map(({ name }) => name)).then(
      (states) => {
        for (const [index, follower] of active.entries()) follower.learn(states[index]!);
      },
      () => {},
    );
  }

  status(): Promise<readonly FollowerStatus[]> {
    return Promise.all(this.followers.map((follower) => follower.status()));
  }

  /** Of one that was added here, whichever process holds it. */
  statusOf(name: string): Promise<FollowerStatus> {
    return this.followers.find((follower) => follower.name === name)!.status();
  }

  /** Has those go on from the end of the log that stand beyond it, whichever process holds them. @throws Error when a holder does not answer */
  async resume(): Promise<void> {
    const request = await this.needs.states.request(this.followers.map(({ name }) => name));
    await Promise.all(this.followers.map((follower) => follower.resumed(request)));
  }
}

class LeasedFollower {
  isAhead = false;
  /** It came to what only a later release can handle. */
  isLeft = false;
  private readonly follower: Follower;
  private again = new AbortController();
  /** Null: nothing is being followed. */
  private token: number | null = null;
  /** The stored checkpoint. */
  private stored: Position = START;
  private storing: Promise<void> = Promise.resolve();
  private isBusy = false;
  /** Null: nothing, or it is another's business. */
  private behind: Behind | null = null;
  /** Where the log was last seen to end. */
  private head: Position = START;

  constructor(
    private readonly following: LeasedFollowing,
    private readonly needs: Needs,
  ) {
    const handle: Followed['handle'] = (events, upTo, signal) => this.handle(events, upTo, signal);
    this.follower = new Follower({ types: following.types ?? null, isFor: following.isFor, handle }, needs.following.reader);
  }

  get name(): string {
    return this.following.name;
  }

  /** It holds its lease. */
  get isActive(): boolean {
    return this.token !== null;
  }

  /** Until the signal aborts, or the lease is to be given back to its share. @throws Fenced when another follows under a later lease */
  async follow(signal: AbortSignal, token: number): Promise<void> {
    const over = this.following.shares?.untilOver(this.name) ?? new AbortController().signal;
    this.token = token;
    try {
      while (!signal.aborted && !over.aborted) {
        this.again = new AbortController();
        this.follower.forget();
        await this.followOnce(AbortSignal.any([signal, this.again.signal]), over, token).catch((error: unknown) => this.standOutside(error, token));
      }
    } finally {
      // What could not be handled stays behind, and is tried again.
      if (signal.aborted || over.aborted || this.isLeft || !this.isBehind) this.behind = null;
      this.token = null;
      this.follower.forget();
      this.isAhead = false;
    }
  }

  /** The next look at what is shared finds it so. @throws whatever else it was */
  private async standOutside(error: unknown, token: number): Promise<void> {
    // Where it begins again, it finds out.
    if (error instanceof LogPutBack) return;
    if (!(error instanceof PositionOfAnotherLog)) throw error;
    const { carriedOut } = await this.shared();
    await this.needs.states.tell(this.name, { halt: { reason: 'ahead', position: error.position }, carriedOut }, token);
  }

  /** In seconds. Whoever asks does not depend on the log: what counts is where it ended when it was looked at last. */
  lag(): number {
    return this.behind !== null && this.isBehind ? Math.max(0, this.needs.following.clock.now() - this.behind.since) / 1_000 : 0;
  }

  async status(): Promise<FollowerStatus> {
    const [position, head] = [await this.following.table.checkpoint(), await this.needs.following.reader.head()];
    return { name: this.name, position, isAhead: position > head || (await this.shared()).halt !== null };
  }

  /** Resolves when the request was carried out: by its holder, or here where nobody holds it. */
  async resumed(request: string): Promise<void> {
    for (const deadline = Date.now() + RESUME_TIMEOUT_MS; ; await pause(POLL)) {
      if ((await this.shared()).carriedOut >= request) return;
      if (Date.now() > deadline) throw new Error(`${this.name} was not resumed: whoever does it does not answer.`);
      if (!this.needs.leases.isHeld(this.name)) await this.resumeHere();
    }
  }

  private async resumeHere(): Promise<void> {
    const { leases } = this.needs;
    const token = await leases.acquireOrRenew(this.name);
    if (token === null) return;
    try {
      await this.begin(token, { isFollowed: false });
    } finally {
      await leases.release(this.name);
    }
  }

  /** About every second. */
  headIs(head: Position, asked: number): void {
    this.head = head;
    if (this.follower.hasSeen(head)) this.handledBefore(asked);
    void this.rest().catch(() => {});
  }

  /** Somebody may have asked to resume it. */
  learn({ requested, carriedOut }: SharedState): void {
    if (requested > carriedOut) this.again.abort();
  }

  /** `over` ends it between two batches. */
  private async followOnce(signal: AbortSignal, over: AbortSignal, token: number): Promise<void> {
    if (this.behind !== null) this.handledBefore(this.behind.since);
    const from = await this.begin(token);
    if (from === null) {
      this.behind = null;
      return aborted(AbortSignal.any([signal, over]));
    }
    this.handledBefore(this.behind?.since ?? this.needs.following.clock.now());
    this.stored = from;
    this.follower.begin(from);
    await this.follower.follow(signal, { over });
    // Whoever takes it next need not do anything again.
    if (!signal.aborted) await this.rest();
  }

  private async handle(events: readonly RecordedEvent[], upTo: LogPlace, signal: AbortSignal): Promise<void> {
    this.isBusy = true;
    this.handledBefore(events[0]!.meta.at);
    try {
      const isWorthIt = await this.following.handle(events, signal);
      // What was cut short is not behind us.
      if (signal.aborted) return;
      if (isWorthIt) await this.store(upTo);
      this.handledBefore(events.at(-1)!.meta.at);
    } catch (error) {
      this.isLeft = error instanceof NeedsLaterRelease;
      // Whoever takes it next need not do anything again.
      if (!signal.aborted) await this.store(this.follower.place!);
      throw error;
    } finally {
      this.isBusy = false;
    }
  }

  /** A position that passes only what does not concern it is stored too: the next start reads no further back. */
  private async rest(): Promise<void> {
    const { place } = this.follower;
    if (!this.isBusy && place !== null && place.position > this.stored) await this.store(place);
  }

  /** One after the other, so that an earlier position never comes last. */
  private store(place: LogPlace): Promise<void> {
    const { token } = this;
    const { position } = place;
    const store = async (): Promise<void> => {
      if (token === null || position <= this.stored) return;
      const { table } = this.following;
      await ('isElsewhere' in table ? table.write([], place, token) : this.needs.writes.write(table, [], place, token));
      if (position > this.stored) this.stored = position;
    };
    const stored = this.storing.then(store);
    this.storing = stored.catch(() => {});
    return stored;
  }

  private handledBefore(since: number): void {
    this.behind = { since, triedAt: this.needs.following.clock.now() };
  }

  /** Whether anything is known to be unhandled, and this process's business. */
  private get isBehind(): boolean {
    const { behind } = this;
    const { position } = this.follower;
    if (position !== null) return this.isBusy || position < this.head;
    return behind !== null && this.needs.following.clock.now() - behind.triedAt <= OTHERS_BUSINESS;
  }

  /** Where to go on, once nobody can store a checkpoint under an earlier token; null: it has to be resumed first. */
  private async begin(token: number, { isFollowed }: { readonly isFollowed: boolean } = { isFollowed: true }): Promise<Position | null> {
    const {
      states,
      following: { reader, log },
    } = this.needs;
    const { table, name } = this.following;
    const { halt, carriedOut, requested } = await this.shared();
    const checkpoint = await table.checkpoint();
    const head = (this.head = await reader.head());
    const seen: LogPlace = { position: checkpoint, record: checkpoint === START ? null : await table.recordAt(checkpoint) };
    const isAhead = checkpoint > head || halt !== null || (await reader.hasAnotherAt(seen));
    const isAsked = requested > carriedOut;
    if (isAhead && !isAsked) {
      this.isAhead = true;
      if (halt === null) await states.tell(name, { halt: { reason: 'ahead', position: checkpoint }, carriedOut }, token);
      log.error("The log does not have what was handled last: it was restored to an earlier state. This is halted until 'gatehouse rebuild' repairs it.", {
        work: name,
        position: checkpoint,
        head,
      });
      return null;
    }
    const end = this.following.isRepeatable === true ? START : head;
    // Where it never began, whoever follows it first says where that is: it may ask what only then runs.
    const from = isAhead ? end : checkpoint === START && isFollowed ? await this.beginning(head) : checkpoint;
    await table.write([], from === checkpoint ? seen : from, token);
    this.following.onBegin?.();
    if (isAsked) await states.tell(name, { halt: null, carriedOut: requested }, token);
    if (isAhead) log.warn('What stood at a position that the log does not have goes on from its end, or its start.', { work: name, position: from });
    this.isAhead = false;
    return from;
  }

  /** Where it is followed from for the first time. */
  private async beginning(head: Position): Promise<Position> {
    const { from } = this.following;
    return from === 'head' ? head : from === undefined ? START : from();
  }

  private async shared(): Promise<SharedState> {
    return (await this.needs.states.read([this.name]))[0]!;
  }
}
