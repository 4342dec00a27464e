import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { FindEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { EventStore, START, type Position } from '#libs/event-sourcing/src/event-store';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { Log } from '#libs/platform/src/log';
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
/** After an event about keys, rows may still be older than the event: what is looked up in this time is not remembered. */
const SETTLING = 5_000;
const HEARTBEAT = 5_000;
/** Without word from the log for so long, a key may have been revoked without our hearing of it. */
const MAX_SILENCE = 30_000;
const MAX_TOKEN = 512;

/**
 * Finds who holds an API key. Keys are looked up by their SHA-256, so that the time a look-up takes says nothing about a key, and remembered until
 * the log tells of any change to keys.
 */
@Injectable()
export class Authentication {
  private readonly known = new Map<string, { readonly caller: Caller; readonly until: number }>();
  private readonly unknown = new Map<string, number>();
  private readonly lookups = new Map<string, Promise<Caller>>();
  private readonly stopping = new AbortController();
  private following: Promise<void> | null = null;
  private heartbeat: NodeJS.Timeout | undefined;
  private position: Position = START;
  private lastWord = 0;
  private settledAt = 0;

  constructor(
    private readonly transport: OperationTransport,
    private readonly events: EventStore,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** @throws DomainError `unauthorized`, or `service_unavailable` while nobody can tell */
  authenticate(authorization: string | undefined, requestId: string): Caller | Promise<Caller> {
    const token = bearerToken(authorization);
    if (token === null) throw unauthorized();
    const now = this.clock.now();
    if (now - this.lastWord > MAX_SILENCE) throw unavailable('Keys cannot be checked at the moment.');

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

  /** Begins to follow the log; nothing is remembered from before. */
  async start(): Promise<void> {
    this.position = await this.events.head();
    this.lastWord = this.clock.now();
    this.following = this.follow();
    this.heartbeat = setInterval(() => void this.listen(), HEARTBEAT);
    this.heartbeat.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.heartbeat);
    this.stopping.abort();
    await this.following;
  }

  private async lookUp(digest: string, requestId: string): Promise<Caller> {
    const began = this.clock.now();
    try {
      const question = Object.assign(new FindEnvironmentKey(), { hash: digest, context: { ...systemContext(SYSTEM_ENVIRONMENT, began), requestId } });
      const key = await this.transport.call(question);
      const caller: Caller = { environment: key.environment_id, actor: { id: key.id, source: 'api', name: key.name } };
      const expiresAt = key.expires_at === null ? Infinity : Date.parse(key.expires_at);
      if (began > this.settledAt) remember(this.known, digest, { caller, until: Math.min(expiresAt, began + KNOWN_FOR) });
      return caller;
    } catch (error) {
      if (!(error instanceof DomainError) || (error.kind !== 'not-found' && error.kind !== 'unauthenticated')) throw error;
      remember(this.unknown, digest, began + UNKNOWN_FOR);
      throw unauthorized();
    }
  }

  /** Follows the log for as long as the process runs; a lost connection is taken up again where it broke off. */
  private async follow(): Promise<void> {
    const { signal } = this.stopping;
    for (let pause = 100; !signal.aborted; pause = Math.min(pause * 2, 5_000)) {
      try {
        for await (const batch of this.events.subscribe(this.position, signal)) {
          pause = 100;
          for (const event of batch) if (event.type.startsWith('environment_key.')) this.forget();
          this.position = batch.at(-1)?.position ?? this.position;
          this.lastWord = this.clock.now();
        }
      } catch (error) {
        this.log.warn('The log of key changes broke off; it is taken up again.', { error, pause });
      }
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** A quiet log is no silence: who has read up to its head has heard everything. */
  private async listen(): Promise<void> {
    const asked = this.clock.now();
    try {
      if (this.position >= (await this.events.head())) this.lastWord = Math.max(this.lastWord, asked);
    } catch (error) {
      this.log.warn('The head of the log cannot be read.', { error });
    }
  }

  private forget(): void {
    this.known.clear();
    this.unknown.clear();
    this.lookups.clear();
    this.settledAt = this.clock.now() + SETTLING;
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
