import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { FindEnvironmentKey } from '#libs/contracts/src/environments/operations';
import type { EnvironmentEvent } from '#apps/identity/src/domain/environment.decider';
import { LogFollowing, type MemoryFollower } from '#libs/event-sourcing/src/following/memory-follower';
import type { Position } from '#libs/event-sourcing/src/log/event-store';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { Metrics } from '#libs/platform/src/metrics';
import { Readiness } from '#libs/platform/src/readiness';
import { SYSTEM_ENVIRONMENT, type Actor } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';

/** Whom a request comes from. */
export interface Caller {
  readonly environment: string;
  readonly actor: Actor;
}

const MAX_KEYS = 10_000;
/** A key that was just made must work soon, wherever it was tried too early. */
const UNKNOWN_FOR = 5_000;
/** A bound on what a missed event could do. */
const KNOWN_FOR = 60_000;
/** Without word from the log for so long, a key may have been revoked without our hearing of it. */
const MAX_SILENCE = 30_000;
/** A log that is there answers within this time, and a start waits for it; a log that is away holds no start up. */
const START_TIMEOUT_MS = 2_000;
/** Every request with an unknown key waits for its look-up. */
const LOOK_UP_LIMIT = 3_000;
const MAX_TOKEN = 512;
/** What tells that a key may not be what it was: no type may be missing. */
const KEY_EVENTS = {
  'environment_key.created': true,
  'environment_key.rotated': true,
  'environment_key.revoked': true,
} satisfies Readonly<Record<Extract<EnvironmentEvent['type'], `environment_key.${string}`>, true>>;
/** As readiness calls it. */
const LOG = 'the event log';

/**
 * Finds who holds an API key. Keys are looked up by their SHA-256, so that the time a look-up takes says nothing about a key, and remembered until
 * the log tells of any change to keys.
 */
@Injectable()
export class Authentication {
  private readonly known = new Map<string, { readonly caller: Caller; readonly until: number }>();
  private readonly unknown = new Map<string, number>();
  private readonly lookups = new Map<string, Promise<Caller>>();
  private readonly follower: MemoryFollower;
  private forgottenAt = 0;

  constructor(
    private readonly transport: OperationTransport,
    private readonly readiness: Readiness,
    private readonly clock: Clock,
    private readonly following: LogFollowing,
    metrics: Metrics,
  ) {
    this.follower = following.remember({ name: 'keys', types: Object.keys(KEY_EVENTS), begin: () => this.begin(), handle: () => this.forget() });
    metrics.gauge({
      name: 'log_silence_seconds',
      help: 'How long ago the gateway knew every change of keys for certain; above 30 it answers 503.',
      collect: (gauge) => gauge.set((clock.now() - this.follower.heardAt) / 1000),
    });
  }

  /** @throws DomainError `unauthorized`, or `service_unavailable` while nobody can tell */
  authenticate(authorization: string | undefined, requestId: string): Caller | Promise<Caller> {
    const token = bearerToken(authorization);
    if (token === null) throw unauthorized();
    const now = this.clock.now();
    if (now - this.follower.heardAt > MAX_SILENCE) throw unavailable('Keys cannot be checked at the moment.');

    const digest = hash('sha256', token, 'hex');
    const known = this.known.get(digest);
    if (known !== undefined && known.until > now) return known.caller;
    const unknownUntil = this.unknown.get(digest);
    if (unknownUntil !== undefined && unknownUntil > now) throw unauthorized();

    let lookup = this.lookups.get(digest);
    if (lookup === undefined) {
      const started = this.lookUp(digest, requestId).finally(() => {
        if (this.lookups.get(digest) === started) this.lookups.delete(digest);
      });
      this.lookups.set(digest, started);
      lookup = started;
    }
    return lookup;
  }

  /** Follows the log from its present end. Until it is there for the first time, nobody can be let in, and the process is not ready. */
  async start(): Promise<void> {
    this.readiness.awaits(LOG);
    const started = this.follower.start().then(() => this.readiness.found(LOG));
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([started, new Promise((resolve) => (timer = setTimeout(resolve, START_TIMEOUT_MS)))]);
    clearTimeout(timer);
  }

  async stop(): Promise<void> {
    await this.follower.stop();
  }

  private async lookUp(digest: string, requestId: string): Promise<Caller> {
    const began = this.clock.now();
    try {
      const context = { ...systemContext(SYSTEM_ENVIRONMENT, began), requestId, deadline: began + LOOK_UP_LIMIT };
      const question = Object.assign(new FindEnvironmentKey(), { hash: digest, context });
      const key = await this.transport.call(question);
      const caller: Caller = { environment: key.environment_id, actor: { id: key.id, source: 'api', name: key.name } };
      const expiresAt = key.expires_at === null ? Infinity : Date.parse(key.expires_at);
      if (began > this.forgottenAt) remember(this.known, digest, { caller, until: Math.min(expiresAt, began + KNOWN_FOR) });
      return caller;
    } catch (error) {
      if (!(error instanceof DomainError) || (error.kind !== 'not-found' && error.kind !== 'unauthenticated')) throw error;
      if (began > this.forgottenAt) remember(this.unknown, digest, began + UNKNOWN_FOR);
      throw unauthorized();
    }
  }

  /** Nothing is remembered from before: it was looked up in a log that this process did not follow. */
  private async begin(): Promise<Position> {
    const head = await this.following.reader.head();
    this.forget();
    return head;
  }

  /** What is being looked up meanwhile is not remembered either: it may have been read before the event. */
  private forget(): void {
    this.known.clear();
    this.unknown.clear();
    this.lookups.clear();
    this.forgottenAt = this.clock.now();
  }
}

function bearerToken(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.length > MAX_TOKEN || authorization.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  const token = authorization.slice(7).trim();
  return token === '' ? null : token;
}

function unauthorized(): DomainError {
  return new DomainError('unauthenticated', 'unauthorized', 'Unauthorized');
}

/** Keeps the map bounded: whoever was put in first goes first. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  if (map.size >= MAX_KEYS) map.delete(map.keys().next().value!);
  map.set(key, value);
}
