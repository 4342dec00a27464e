import { toFolded } from '#libs/event-sourcing/src/deciding/records';
import type { LogFollowing, MemoryFollower } from '#libs/event-sourcing/src/following/memory-follower';
import { START, type EventStore, type Position, type RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import type { Clock } from '#libs/platform/src/clock';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';
import type { Log } from '#libs/platform/src/log';
import type { Work } from '#libs/read-models/src/leased-work';
import { contentOf, type ReadModels, type Table } from '#libs/read-models/src/read-models';
import {
  webhookEndpointDecider,
  type StoredWebhookEndpoint,
  type WebhookEndpointEvent,
  type WebhookEndpointState,
} from '../domain/webhook-endpoint.decider.ts';
import { webhookEndpointsView } from '../views/webhook-endpoints.view.ts';
import { signingKeys, type SigningKeys } from '#libs/messaging/src/webhooks/signature';
import type { EndpointSecrets } from './endpoint-secrets.ts';

/** An endpoint as a delivery needs it. */
export interface Target {
  readonly id: string;
  readonly environment: string;
  readonly url: URL;
  readonly isEnabled: boolean;
  readonly events: ReadonlySet<string>;
  /** What was recorded before is not sent. */
  readonly since: Position;
  readonly keys: SigningKeys;
  readonly previous: { readonly keys: SigningKeys; readonly until: number } | null;
}

interface Known {
  readonly state: WebhookEndpointState;
  readonly version: number;
  readonly target: Target | null;
}

interface Needs {
  readonly events: EventStore;
  readonly following: LogFollowing;
  readonly readModels: ReadModels;
  readonly secrets: EndpointSecrets;
  readonly clock: Clock;
  readonly log: Log;
}

const SLICE = 500;
const HEAD_TIMEOUT_MS = 5_000;

/** Every endpoint of every environment, in memory, kept fresh by the log: each event asks it who wants it. */
export class EndpointDirectory implements BackgroundComponent {
  readonly name = 'webhook endpoints';
  readonly stage = 'views';
  private readonly known = new Map<string, Known>();
  private readonly byEnvironment = new Map<string, Map<string, Target>>();
  private readonly listeners: ((target: Target) => void)[] = [];
  private readonly rows: Table<StoredWebhookEndpoint>;
  private readonly follower: MemoryFollower;
  /** Aborts when something was recorded of an endpoint that only a later release can read. */
  private readonly outdated = new AbortController();

  constructor(private readonly needs: Needs) {
    this.rows = needs.readModels.table(tableOf(webhookEndpointsView));
    const { handles: types } = webhookEndpointsView;
    this.follower = needs.following.remember({
      name: this.name,
      types,
      begin: (isAgain) => this.begin(isAgain),
      handle: (events) => this.handle(events),
      left: (reason) => this.outdated.abort(reason),
    });
  }

  start(): Promise<void> {
    return this.follower.start();
  }

  stop(): Promise<void> {
    return this.follower.stop();
  }

  /** The enabled endpoints of an environment. */
  enabled(environment: string): readonly Target[] {
    return this.all(environment).filter(({ isEnabled }) => isEnabled);
  }

  /**
   * As the log has it now: before an endpoint is taken for one that wants nothing, everything is heard that was recorded of it.
   * @throws DomainError `service_unavailable` where the log cannot be read
   */
  async latest(environment: string, id: string): Promise<Target | null> {
    const known = this.byEnvironment.get(environment)?.get(id);
    if (known?.isEnabled) return known;
    const { following, clock } = this.needs;
    const head = await following.reader.head(HEAD_TIMEOUT_MS);
    await this.reached(head, clock.now() + HEAD_TIMEOUT_MS);
    return this.byEnvironment.get(environment)?.get(id) ?? null;
  }

  /** Also those that are disabled. */
  all(environment: string): readonly Target[] {
    return [...(this.byEnvironment.get(environment)?.values() ?? [])];
  }

  /** The environments that have, or had, an endpoint. */
  environments(): readonly string[] {
    return [...this.byEnvironment.keys()];
  }

  /**
   * Resolves once everything up to `position` is known here, or where it is a position of another log.
   * @throws DomainError `service_unavailable` past the deadline (milliseconds since the epoch)
   */
  reached(position: Position, deadline: number): Promise<void> {
    return this.follower.reached(position, deadline);
  }

  /** Work that sends to endpoints as they are: left to processes of a later release once this one cannot know them any more. */
  knownTo(work: Work): Work {
    const { signal: outdated } = this.outdated;
    return async (signal, token) => {
      outdated.throwIfAborted();
      await work(AbortSignal.any([signal, outdated]), token);
      outdated.throwIfAborted();
    };
  }

  /** Calls back for each endpoint that was created, changed or deleted; a deleted one is not enabled. */
  onChange(listener: (target: Target) => void): void {
    this.listeners.push(listener);
  }

  private async begin(isAgain: boolean): Promise<Position> {
    if (isAgain) {
      // The rows may tell of what the log does not hold any more.
      this.known.clear();
      this.byEnvironment.clear();
      return START;
    }
    // Rows may be ahead of the checkpoint, never behind it: what the log then repeats is told by its version.
    const checkpoint = await this.rows.checkpoint();
    for await (const ids of this.storedIds()) await this.load(ids);
    return checkpoint;
  }

  private async handle(events: readonly RecordedEvent[]): Promise<void> {
    for (const event of events) await this.apply(event);
  }

  private async *storedIds(): AsyncIterable<readonly { readonly environment: string; readonly id: string }[]> {
    let slice: { environment: string; id: string }[] = [];
    for await (const { environment, id, text } of this.rows.dump()) {
      // Something may still wait for one that was deleted.
      this.targetsIn(environment);
      if (text !== null) slice.push({ environment, id });
      if (slice.length < SLICE) continue;
      yield slice;
      slice = [];
    }
    yield slice;
  }

  private async load(ids: readonly { readonly environment: string; readonly id: string }[]): Promise<void> {
    for (const { environment, id } of ids) {
      const row = await this.rows.get(environment, id);
      if (row === null) continue;
      const since = row.revision === 1 ? row.position : await this.createdAt(environment, id);
      await this.set(environment, id, { state: contentOf(row), version: row.revision, since });
    }
  }

  /** Where its stream begins; where that is damaged, it is sent what it would have been sent before. */
  private async createdAt(environment: string, id: string): Promise<Position> {
    const stream = streamName(webhookEndpointDecider.category, environment, id);
    const [first] = await this.needs.events.readBackwards(stream, 1, 1).catch(() => []);
    return first?.position ?? START;
  }

  private async apply(record: RecordedEvent): Promise<void> {
    const { stream, version, position, meta } = record;
    const { environment } = meta;
    const id = stream.slice(webhookEndpointDecider.category.length + environment.length + 2);
    const before = this.known.get(id);
    if (before !== undefined && before.version >= version) return;
    const state = webhookEndpointDecider.evolve(before?.state ?? null, toFolded<WebhookEndpointEvent>(record));
    await this.set(environment, id, { state, version, since: before?.target?.since ?? position });
  }

  private async set(
    environment: string,
    id: string,
    { state, version, since }: { state: WebhookEndpointState; version: number; since: Position },
  ): Promise<void> {
    const before = this.known.get(id)?.target ?? null;
    const target = state?.object === 'webhook_endpoint' ? await this.targetOf(environment, state, since) : null;
    this.known.set(id, { state, version, target });
    const targets = this.targetsIn(environment);
    if (target === null) targets.delete(id);
    else targets.set(id, target);
    const changed = target ?? (before && { ...before, isEnabled: false });
    if (changed !== null) for (const listener of this.listeners) listener(changed);
  }

  private targetsIn(environment: string): Map<string, Target> {
    let targets = this.byEnvironment.get(environment);
    if (targets === undefined) this.byEnvironment.set(environment, (targets = new Map<string, Target>()));
    return targets;
  }

  /** An endpoint whose secret cannot be opened is sent nothing, since nobody could verify it; the others go on. */
  private async targetOf(environment: string, endpoint: StoredWebhookEndpoint, since: Position): Promise<Target | null> {
    const { id, normalised_url, status, events } = endpoint;
    try {
      const previous = await this.needs.secrets.previous(environment, endpoint, this.needs.clock.now());
      return {
        id,
        environment,
        url: new URL(normalised_url),
        isEnabled: status === 'enabled',
        events: new Set(events),
        since,
        keys: signingKeys(await this.needs.secrets.current(environment, endpoint)),
        previous: previous && { keys: signingKeys(previous.secret), until: previous.until },
      };
    } catch (error) {
      this.needs.log.error('The secret of a webhook endpoint cannot be opened; nothing is sent to it.', { environment, endpoint: id, error });
      return null;
    }
  }
}
