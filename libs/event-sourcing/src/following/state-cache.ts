import type { Clock } from '#libs/platform/src/clock';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import type { Decider, Fact } from '../deciding/decider.ts';
import type { Repository } from '../deciding/repository.ts';
import { categoryOf, streamName } from '../log/naming.ts';
import type { LogFollowing, MemoryFollower } from './memory-follower.ts';

const MAX_STATES = 10_000;
/** Without word from the log for so long, a state may have changed without our hearing of it (milliseconds). */
const MAX_SILENCE = 30_000;

interface Needs {
  readonly following: LogFollowing;
  readonly repository: Repository;
  readonly clock: Clock;
}

/**
 * States of aggregates that are asked for with every request and change seldom: loaded once, and dropped when the log tells of a change. While the log is silent
 * they are loaded anew each time.
 */
export class StateCache implements BackgroundComponent {
  readonly stage = 'views';
  private readonly states = new Map<string, unknown>();
  private readonly loading = new Map<string, Promise<unknown>>();
  private readonly follower: MemoryFollower;

  /** `deciders`: of the aggregates that may be asked for. */
  constructor(
    readonly name: string,
    deciders: readonly Pick<Decider<never, never>, 'category'>[],
    private readonly needs: Needs,
  ) {
    // Whatever its type: a fact that only a later release knows changes a state too.
    const categories = new Set(deciders.map(({ category }) => category));
    this.follower = needs.following.remember({
      name,
      types: null,
      isByEnvelope: true,
      isFor: ({ stream }) => categories.has(categoryOf(stream)),
      begin: () => this.begin(),
      handle: (events) => {
        for (const { stream } of events) this.drop(stream);
      },
      left: () => this.dropAll(),
    });
  }

  start(): Promise<void> {
    return this.follower.start();
  }

  stop(): Promise<void> {
    return this.follower.stop();
  }

  /** The state as this process last heard of it. @throws DomainError `service_unavailable` where it has to be loaded and its engine is away */
  async state<State, Event extends Fact>(decider: Decider<State, Event>, environment: string, key: string): Promise<State> {
    const load = (): Promise<State> => this.needs.repository.load(decider, environment, key);
    // Also before the log is followed, and after it was left.
    if (this.needs.clock.now() - this.follower.heardAt > MAX_SILENCE || this.follower.refusal !== null) return load();
    const stream = streamName(decider.category, environment, key);
    if (this.states.has(stream)) return this.states.get(stream) as State;
    let loading = this.loading.get(stream) as Promise<State> | undefined;
    if (loading === undefined) {
      loading = load()
        .then((state) => {
          // Dropped meanwhile: it may have been read before what changed it.
          if (this.loading.get(stream) === loading) this.remember(stream, state);
          return state;
        })
        .finally(() => {
          if (this.loading.get(stream) === loading) this.loading.delete(stream);
        });
      this.loading.set(stream, loading);
    }
    return loading;
  }

  /** For whoever has just changed it: nobody here sees it as it was. */
  forget<State, Event extends Fact>(decider: Decider<State, Event>, environment: string, key: string): void {
    this.drop(streamName(decider.category, environment, key));
  }

  private async begin() {
    const head = await this.needs.following.reader.head();
    this.dropAll();
    return head;
  }

  private drop(stream: string): void {
    this.states.delete(stream);
    this.loading.delete(stream);
  }

  private dropAll(): void {
    this.states.clear();
    this.loading.clear();
  }

  /** Keeps the map bounded: whatever was put in first goes first. */
  private remember(stream: string, state: unknown): void {
    if (this.states.size >= MAX_STATES) this.states.delete(this.states.keys().next().value!);
    this.states.set(stream, state);
  }
}
