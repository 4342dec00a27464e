import { EventEmitter } from 'node:events';
import { START, type EventStore, type Position, type RecordedEvent } from '#libs/event-sourcing/src/event-store';
import { tableOf } from '#libs/event-sourcing/src/view';
import type { Clock } from '#libs/platform/src/clock';
import type { Log } from '#libs/platform/src/log';
import type { Part } from '#libs/platform/src/runtime/lifecycle';
import type { ReadModels, Table } from '#libs/read-models/src/read-models';
import { signingKeys, type SigningKeys } from '../webhook-deliveries/signature.ts';
import type { EndpointSecrets } from './endpoint-secrets.ts';
import { webhookEndpointDecider, type StoredWebhookEndpoint, type WebhookEndpointEvent, type WebhookEndpointState } from './webhook-endpoint.decider.ts';
import { webhookEndpointsView } from './webhook-endpoints.view.ts';

/** An endpoint as a delivery needs it. */
export interface Target {
  readonly id: string;
  readonly environment: string;
  readonly url: URL;
  readonly isEnabled: boolean;
  readonly events: ReadonlySet<string>;
  /** What was recorded before is not sent; START where this process did not see the creation. */
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
  readonly readModels: ReadModels;
  readonly secrets: EndpointSecrets;
  readonly clock: Clock;
  readonly log: Log;
}

const HANDLED = new Set(webhookEndpointsView.handles);
const SLICE = 500;

/** Every endpoint of every environment, in memory, kept fresh by the log: each event asks it who wants it. */
export class EndpointDirectory implements Part {
  readonly name = 'webhook endpoints';
  readonly stage = 'views';
  private readonly known = new Map<string, Known>();
  private readonly byEnvironment = new Map<string, Map<string, Target>>();
  private readonly changes = new EventEmitter<{ changed: [target: Target]; moved: [] }>();
  private readonly stopping = new AbortController();
  private following: Promise<void> = Promise.resolve();
  private position: Position = START;
  private readonly rows: Table<StoredWebhookEndpoint>;

  constructor(private readonly needs: Needs) {
    this.rows = needs.readModels.table(tableOf(webhookEndpointsView));
    this.changes.setMaxListeners(0);
  }

  async start(): Promise<void> {
    // Rows may be ahead of the checkpoint, never behind it: what the log then repeats is told by its version.
    const checkpoint = await this.rows.checkpoint();
    for await (const ids of this.storedIds()) await this.load(ids);
    this.position = checkpoint;
    this.following = this.follow(checkpoint);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.changes.emit('moved');
    await this.following;
  }

  /** The enabled endpoints of an environment. */
  enabled(environment: string): readonly Target[] {
    return [...(this.byEnvironment.get(environment)?.values() ?? [])].filter(({ isEnabled }) => isEnabled);
  }

  get(environment: string, id: string): Target | null {
    return this.byEnvironment.get(environment)?.get(id) ?? null;
  }

  /** As the log has it now: an endpoint that was created a moment ago is known, rather than taken for a deleted one. */
  async latest(environment: string, id: string): Promise<Target | null> {
    await this.reached(await this.needs.events.head());
    return this.get(environment, id);
  }

  all(): readonly Target[] {
    return [...this.byEnvironment.values()].flatMap((targets) => [...targets.values()]);
  }

  /** Resolves once everything up to `position` is known here. */
  async reached(position: Position): Promise<void> {
    while (this.position < position && !this.stopping.signal.aborted) await new Promise<void>((resolve) => this.changes.once('moved', resolve));
  }

  /** Calls back for each endpoint that was created, changed or deleted; a deleted one is not enabled. */
  onChange(listener: (target: Target) => void): void {
    this.changes.on('changed', listener);
  }

  private async *storedIds(): AsyncIterable<readonly { readonly environment: string; readonly id: string }[]> {
    let slice: { environment: string; id: string }[] = [];
    for await (const { environment, id, text } of this.rows.dump()) {
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
      await this.set(environment, id, { state: JSON.parse(row.text) as StoredWebhookEndpoint, version: row.revision, since: START });
    }
  }

  private async follow(after: Position): Promise<void> {
    for await (const batch of this.needs.events.subscribe(after, this.stopping.signal)) {
      for (const event of batch) if (HANDLED.has(event.type)) await this.apply(event);
      this.position = batch.at(-1)?.position ?? this.position;
      this.changes.emit('moved');
    }
  }

  private async apply({ stream, version, position, type, data, meta }: RecordedEvent): Promise<void> {
    const { environment, at } = meta;
    const id = stream.slice(webhookEndpointDecider.category.length + environment.length + 2);
    const before = this.known.get(id);
    if (before !== undefined && before.version >= version) return;
    const event = { type, data, at: new Date(at).toISOString() } as WebhookEndpointEvent & { readonly at: string };
    const state = webhookEndpointDecider.evolve(before?.state ?? null, event);
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
    const targets = this.byEnvironment.get(environment) ?? new Map<string, Target>();
    this.byEnvironment.set(environment, targets);
    if (target === null) targets.delete(id);
    else targets.set(id, target);
    const changed = target ?? (before && { ...before, isEnabled: false });
    if (changed !== null) this.changes.emit('changed', changed);
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
