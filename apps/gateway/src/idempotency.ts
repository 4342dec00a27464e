import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Clock } from '#libs/platform/src/clock';
import { GatewaySettings } from '#libs/platform/src/config/settings';
import { invalidField, unavailable } from '#libs/platform/src/domain-error';
import { newCommandId } from '#libs/platform/src/ids';
import { Log } from '#libs/platform/src/log';
import { HANDED_ON_AFTER } from '#libs/platform/src/request-context';
import { Replicas } from '#libs/platform/src/replicas';
import { ShortLived, type Entry } from '#libs/read-models/src/short-lived';
import { AnswerVault } from './answer-vault.ts';
import type { HttpAnswer } from './http-answer.ts';

const COLLECTION = 'idempotency';
const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;
/** What an SDK derives from method, path, query and body: the same thing asked for later on would get the first answer, and nothing would happen. */
const DIGEST = /^retry-[0-9a-f]{64}$/;
/** How often another process's answer is looked for. */
const POLL = 50;

/** What is stored under a key. */
interface Held {
  readonly commandId: string;
  /** How often it was carried out, or begun. */
  readonly attempt: number;
  /** Hash of the body: tells a repeat from another request under the same key. */
  readonly body: string;
  /** Who carries it out, until when (milliseconds since the epoch); null when nobody does. */
  readonly at: { readonly replica: string; readonly until: number } | null;
  /** Sealed, once there is one. */
  readonly answer: string | null;
}

/** A command that comes with a key. */
export interface KeyedRequest {
  readonly environment: string;
  readonly path: string;
  readonly key: string;
  readonly body: string;
  readonly requestId: string;
  /** Milliseconds since the epoch. */
  readonly deadline: number;
}

/** Carries out a command under the id it is given, the same at every attempt. Refusals and failures are answers too; it does not throw. */
export type Execute = (command: { readonly commandId: string; readonly attempt: number }) => Promise<HttpAnswer>;

interface Reservation {
  readonly held: Held;
  readonly version: number;
}

/**
 * A command with an `Idempotency-Key` is carried out once: its command id is reserved durably before, used again by every retry, and its answer
 * kept for whoever asks again.
 */
@Injectable()
export class Idempotency {
  /** Requests of this process that are being carried out or whose answers are being stored: twins wait here. */
  private readonly inFlight = new Map<string, Promise<HttpAnswer>>();
  private readonly storing = new Set<Promise<void>>();

  constructor(
    private readonly store: ShortLived,
    private readonly vault: AnswerVault,
    private readonly replicas: Replicas,
    private readonly clock: Clock,
    private readonly settings: GatewaySettings,
    private readonly log: Log,
  ) {}

  /** @throws DomainError `service_unavailable` when a twin in another process is not done by the deadline */
  async run(request: KeyedRequest, execute: Execute): Promise<HttpAnswer> {
    const name = hash('sha256', `${request.environment}\n${request.path}\n${request.key}`, 'base64url');
    const twin = this.inFlight.get(name);
    if (twin !== undefined) {
      const answer = await twin;
      return isKept(answer) ? replayed(answer) : answer;
    }
    const attempt = this.attempt(name, request, execute);
    this.inFlight.set(name, attempt);
    return attempt;
  }

  /** Resolves when every answer given so far is stored. */
  async settled(): Promise<void> {
    await Promise.all(this.storing);
  }

  private async attempt(name: string, request: KeyedRequest, execute: Execute): Promise<HttpAnswer> {
    let stored: Promise<void> = Promise.resolve();
    try {
      const body = hash('sha256', request.body, 'base64url');
      const reserved = await this.reserve(name, request, body);
      if ('status' in reserved) return reserved;
      const answer = await execute(reserved.held);
      stored = this.keep(name, request, reserved, answer);
      this.storing.add(stored);
      // What was done is found done by a retry, whether its answer was stored or not; a refusal is known only by its answer.
      if (answer.status >= 300) await stored;
      return answer;
    } finally {
      void stored.then(() => {
        this.storing.delete(stored);
        this.inFlight.delete(name);
      });
    }
  }

  /** Reserves the command, or finds its answer. */
  private async reserve(name: string, request: KeyedRequest, body: string): Promise<Reservation | HttpAnswer> {
    const now = this.clock.now();
    const at = { replica: this.replicas.id, until: request.deadline };
    const fresh: Held = { commandId: newCommandId(now), attempt: 1, body, at, answer: null };
    const first = await this.store.putIfAbsent(COLLECTION, name, textOf(fresh), now + this.settings.IDEMPOTENCY_RETENTION);
    if (first.stored) return { held: fresh, version: first.entry.version };

    if (heldIn(first.entry.value).body !== body)
      this.log.warn('A request repeats an Idempotency-Key with another body.', { environment: request.environment, requestId: request.requestId });
    const met = performance.now();
    let entry: Entry | null = first.entry;
    while (entry !== null) {
      const held = heldIn(entry.value);
      if (held.answer !== null) return replayed(answerIn(await this.vault.open(request.environment, name, held.answer)));
      if (this.isAbandoned(held, performance.now() - met)) {
        const taken: Held = { ...held, attempt: held.attempt + 1, at };
        if (await this.store.compareAndSet(COLLECTION, name, entry.version, textOf(taken), entry.expiresAt)) {
          const version = (await this.store.get(COLLECTION, name))?.version ?? 0;
          return { held: taken, version };
        }
      } else {
        if (this.clock.now() + POLL > request.deadline) throw unavailable('The first request with this Idempotency-Key is still being carried out.');
        await pause(POLL);
      }
      entry = await this.store.get(COLLECTION, name);
    }
    return this.reserve(name, request, body);
  }

  /** `watched`: so long it has been seen held (milliseconds). The clock of whoever holds it may be another: what it sent is handed on no sooner than any command. */
  private isAbandoned({ at }: Held, watched: number): boolean {
    if (at === null || !this.replicas.mayBeAlive(at.replica)) return true;
    return at.until <= this.clock.now() && watched >= HANDED_ON_AFTER;
  }

  /** Stores the answer, or gives the reservation up where there is none to keep: the next attempt uses the same command id. */
  private async keep(name: string, request: KeyedRequest, { held, version }: Reservation, answer: HttpAnswer): Promise<void> {
    try {
      const sealed = isKept(answer) ? await this.vault.seal(request.environment, name, textOfAnswer(answer)) : null;
      // False when another process took over after our deadline: then its answer counts.
      await this.store.compareAndSet(
        COLLECTION,
        name,
        version,
        textOf({ ...held, at: null, answer: sealed }),
        this.clock.now() + this.settings.IDEMPOTENCY_RETENTION,
      );
    } catch (error) {
      this.log.warn('An answer could not be kept for its Idempotency-Key; a retry carries the command out again under the same id.', {
        error,
        requestId: request.requestId,
      });
    }
  }
}

// Words rather than JSON: they are written twice for every command.

function textOf({ commandId, attempt, body, at, answer }: Held): string {
  return answer === null ? `${commandId} ${body} ${at === null ? '- 0' : `${at.replica} ${at.until}`} ${attempt}` : `${commandId} ${body} = ${answer}`;
}

/** A release that counted no attempts wrote none. */
function heldIn(text: string): Held {
  const [commandId, body, by, rest, attempt = '1'] = text.split(' ') as [string, string, string, string, string?];
  if (by === '=') return { commandId, attempt: 1, body, at: null, answer: rest };
  return { commandId, attempt: Number(attempt), body, at: by === '-' ? null : { replica: by, until: Number(rest) }, answer: null };
}

/** Headers are those of refusals that are not kept. */
function textOfAnswer({ status, position = '', text }: HttpAnswer): string {
  return `${status} ${position} ${text ?? ''}`;
}

function answerIn(kept: string): HttpAnswer {
  const [, status, position, text] = /^(\d+) (\S*) (.*)$/s.exec(kept)!;
  return { status: Number(status), position: position === '' ? undefined : position, text: text === '' ? null : text! };
}

/** Answers that say nothing about the command itself are not kept. */
function isKept({ status }: HttpAnswer): boolean {
  return status < 500 && status !== 401 && status !== 403 && status !== 408 && status !== 429;
}

function replayed(answer: HttpAnswer): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, 'Idempotent-Replayed': 'true' } };
}

/** The key that a request came with; null for none, and for one that says what is asked rather than which request it is. @throws DomainError `invalid_request_parameters` */
export function idempotencyKeyOf(given: string | string[] | undefined): string | null {
  const key = givenKeyOf(given);
  return key !== null && DIGEST.test(key) ? null : key;
}

/** Whatever it came with as a key; null for nothing. @throws DomainError `invalid_request_parameters` */
export function givenKeyOf(given: string | string[] | undefined): string | null {
  if (given === undefined) return null;
  if (typeof given === 'string' && VISIBLE_ASCII.test(given)) return given;
  throw invalidField('invalid_format', 'Idempotency-Key', 'Idempotency-Key must be 1 to 255 visible ASCII characters.');
}
