import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { FindEnvironmentKey } from '#libs/contracts/src/environments/operations';
import type { EnvironmentEvent } from '#apps/identity/src/domain/environment.decider';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { Metrics } from '#libs/platform/src/metrics';
import { Readiness } from '#libs/platform/src/readiness';
import { SYSTEM_ENVIRONMENT, type Actor } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { RememberedLookUps, type Found } from './remembered-look-ups.ts';

/** Whom a request comes from. */
export interface Caller {
  readonly environment: string;
  readonly actor: Actor;
  /** With whom it shares the limits of requests. */
  readonly countedAs: string;
}

/** Without word from the log for so long, a key may have been revoked without our hearing of it. */
const MAX_SILENCE = 30_000;
/** A log that is there answers within this time, and a start waits for it; a log that is away holds no start up. */
const START_TIMEOUT_MS = 2_000;
/** Every request with an unknown key waits for its look-up. */
const LOOK_UP_TIMEOUT_MS = 3_000;
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
  private readonly keys: RememberedLookUps<Caller>;

  constructor(
    private readonly transport: OperationTransport,
    private readonly readiness: Readiness,
    private readonly clock: Clock,
    following: LogFollowing,
    metrics: Metrics,
  ) {
    this.keys = new RememberedLookUps(following, clock, {
      name: 'keys',
      types: Object.keys(KEY_EVENTS),
      lookUp: (digest, requestId) => this.lookUp(digest, requestId),
    });
    metrics.gauge({
      name: 'log_silence_seconds',
      help: 'How long ago the gateway knew every change of keys for certain; above 30 it answers 503.',
      collect: (gauge) => gauge.set((clock.now() - this.keys.heardAt) / 1000),
    });
  }

  /** @throws DomainError `unauthorized`, or `service_unavailable` while nobody can tell */
  authenticate(authorization: string | undefined, requestId: string): Caller | Promise<Caller> {
    const token = bearerToken(authorization);
    if (token === null) throw unauthorized();
    const now = this.clock.now();
    if (now - this.keys.heardAt > MAX_SILENCE) throw unavailable('Keys cannot be checked at the moment.');

    const digest = hash('sha256', token, 'hex');
    return this.keys.remembered(digest) ?? this.keys.lookUp(digest, requestId);
  }

  /** Follows the log from its present end. Until it is there for the first time, nobody can be let in, and the process is not ready. */
  async start(): Promise<void> {
    this.readiness.awaits(LOG);
    const started = this.keys.start().then(() => this.readiness.found(LOG));
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([started, new Promise((resolve) => (timer = setTimeout(resolve, START_TIMEOUT_MS)))]);
    clearTimeout(timer);
  }

  async stop(): Promise<void> {
    await this.keys.stop();
  }

  /** @throws DomainError `unauthorized` */
  private async lookUp(digest: string, requestId: string): Promise<Found<Caller>> {
    const began = this.clock.now();
    const context = { ...systemContext(SYSTEM_ENVIRONMENT, began), requestId, deadline: began + LOOK_UP_TIMEOUT_MS };
    try {
      const key = await this.transport.call(Object.assign(new FindEnvironmentKey(), { hash: digest, context }));
      const until = key.expires_at === null ? undefined : Date.parse(key.expires_at);
      return { value: { environment: key.environment_id, actor: { id: key.id, source: 'api', name: key.name }, countedAs: key.id }, until };
    } catch (error) {
      throw error instanceof DomainError && error.kind === 'not-found' ? unauthorized() : error;
    }
  }
}

export function bearerToken(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.length > MAX_TOKEN || authorization.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  const token = authorization.slice(7).trim();
  return token === '' ? null : token;
}

function unauthorized(): DomainError {
  return new DomainError('unauthenticated', 'unauthorized', 'Unauthorized');
}
