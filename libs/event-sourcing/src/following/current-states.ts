import { BoundedMap } from '#libs/platform/src/bounded-map';
import { unavailable } from '#libs/platform/src/domain-error';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import type { Decider, Fact } from '../deciding/decider.ts';
import type { Repository } from '../deciding/repository.ts';
import type { Position, RecordedEvent } from '../log/event-store.ts';
import { categoryOf, streamKeyOf } from '../log/naming.ts';
import type { LogFollowing, MemoryFollower } from './memory-follower.ts';

/** Of each kind of aggregate. */
const MAX_STATES = 100_000;

/**
 * What aggregates are at this moment, in memory: for questions that come thousands of times a second and may never get an old answer, such as whether a key is valid. A state is
 * folded from the log when it is first asked for, and forgotten as soon as anything more is recorded in its stream.
 */
export class CurrentStates implements BackgroundComponent {
  readonly name = 'current states';
  readonly stage = 'views';
  private readonly kinds: CurrentStatesOf<unknown>[] = [];
  private follower: MemoryFollower | null = null;

  constructor(
    private readonly repository: Pick<Repository, 'load'>,
    private readonly following: LogFollowing,
    private readonly maxStates = MAX_STATES,
  ) {}

  /** What `extract` takes of the states of one kind is remembered, and nothing else of them: nothing personal. To be called before the start. */
  of<State, Event extends Fact, Extract>(decider: Decider<State, Event, Fact>, extract: (state: State) => Extract): CurrentStatesOf<Extract> {
    return this.read(decider.category, async (environment, key) => extract(await this.repository.load(decider, environment, key)));
  }

  /** As `of`, where the streams are those of another service: `load` makes of one what matters. */
  read<Extract>(category: string, load: (environment: string, key: string) => Promise<Extract>): CurrentStatesOf<Extract> {
    const kind = new CurrentStatesOf(category, load, this.maxStates);
    this.kinds.push(kind);
    return kind;
  }

  /**
   * Resolves once everything is known here that was recorded before the call. What is asked for after that is no older.
   * @throws DomainError `service_unavailable` past the deadline (milliseconds since the epoch)
   */
  headReached(deadline: number): Promise<void> {
    return this.follower?.headReached(deadline) ?? Promise.reject(unavailable('This process does not follow the log yet.'));
  }

  async start(): Promise<void> {
    if (this.kinds.length === 0) return;
    // Whatever its type: a fact that only a later release knows changes a state too.
    const categories = new Set(this.kinds.map(({ category }) => category));
    this.follower = this.following.remember({
      name: this.name,
      types: null,
      isByEnvelope: true,
      isFor: ({ stream }) => categories.has(categoryOf(stream)),
      begin: () => this.begin(),
      handle: (events) => this.forget(events),
    });
    await this.follower.start();
  }

  async stop(): Promise<void> {
    await this.follower?.stop();
  }

  /** What was loaded before is of a log that this process did not follow. */
  private async begin(): Promise<Position> {
    const head = await this.following.reader.head();
    for (const kind of this.kinds) kind.forgetAll();
    return head;
  }

  /** Does not look into what was recorded, so that what only a later release can read keeps nobody waiting but those who ask about it. */
  private forget(events: readonly RecordedEvent[]): void {
    for (const { stream, meta } of events)
      for (const kind of this.kinds) if (categoryOf(stream) === kind.category) kind.forget(meta.environment, streamKeyOf(stream));
  }
}

/** Those of one kind. */
export class CurrentStatesOf<Extract> {
  /** By the keys of streams; one that is on its way is there already, and whoever asks meanwhile waits for it. */
  private readonly known: BoundedMap<Extract | Promise<Extract>>;

  constructor(
    readonly category: string,
    private readonly load: (environment: string, key: string) => Promise<Extract>,
    maxStates: number,
  ) {
    this.known = new BoundedMap(maxStates);
  }

  /** As of the last `headReached`, or later. */
  get(environment: string, key: string): Extract | Promise<Extract> {
    const known = this.known.get(environment, key);
    return known === undefined ? this.loaded(environment, key) : known;
  }

  forget(environment: string, key: string): void {
    this.known.delete(environment, key);
  }

  forgetAll(): void {
    this.known.clear();
  }

  private async loaded(environment: string, key: string): Promise<Extract> {
    const loading = this.load(environment, key);
    this.known.set(environment, key, loading);
    try {
      const extract = await loading;
      // Where it was forgotten meanwhile, it may have been read before what was recorded then.
      if (this.known.get(environment, key) === loading) this.known.set(environment, key, extract);
      return extract;
    } catch (error) {
      if (this.known.get(environment, key) === loading) this.known.delete(environment, key);
      throw error;
    }
  }
}
