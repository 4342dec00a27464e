import { Injectable } from '@nestjs/common';
import type { AuthenticationChallenge } from '#libs/contracts/src/authentication-factors/authentication-factor';
import { passOver, Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Naming, streamName } from '#libs/event-sourcing/src/log/naming';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ShortLived, type Entry } from '#libs/read-models/src/short-lived';
import { ShortLivedValues } from '#libs/read-models/src/short-lived-values';
import { OneTimeCodes, type CodeName } from '../codes/one-time-codes.ts';
import { authenticationFactorDecider, isLastChallenge, isRemoved, verifyFactor, type StoredFactor } from '../domain/authentication-factor.decider.ts';
import { ASKED_AGAIN_WITHIN_MS } from '../domain/lost-answer.decider.ts';
import type { StoredUser } from '../domain/user.decider.ts';
import { tooManyTries } from '../domain/one-time-code.decider.ts';
import { secretOfBase32, stepsOf, TAKEN_WITHIN_MS } from './totp.ts';

const CHALLENGES = 'authentication_challenges';
const STEPS = 'totp_steps';
const FAILURES = 'second_factor_failures';
const FIRST_FACTORS = 'first_second_factors';
/** Longer than any request takes: after that the log tells that there is one. */
const FIRST_KNOWN_MS = 60_000;
const DAY_MS = 24 * 60 * 60_000;
/** Of a challenge, where its code does not come and go by itself. */
const CODE_LIFETIME_MS = 10 * 60_000;
/** Per factor, at sign-in and beside it together. */
export const FACTOR_TRIES = { what: 'second_factor', limit: { most: 10, perSeconds: 60 } } as const;
/** Beyond so many wrong codes in a day none is taken for the factor: a million codes are not many. */
const FAILURES_PER_DAY = 100;

/** A factor is to be proven, once. */
export interface Challenge {
  readonly id: string;
  readonly factor_id: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly expires_at: string | null;
  /** By which command, or for which session. */
  readonly verified: { readonly by: string; readonly at: number } | null;
}

/** Challenges of factors, in a store with expiry; what they prove is recorded by who asks. */
@Injectable()
export class AuthenticationChallenges {
  private readonly entries: ShortLivedValues<Challenge>;

  constructor(
    private readonly store: ShortLived,
    private readonly codes: OneTimeCodes,
    private readonly vault: Vault,
    private readonly repository: Repository,
    private readonly naming: Naming,
    private readonly clock: Clock,
  ) {
    this.entries = new ShortLivedValues(store, CHALLENGES);
  }

  /** Whether this very command made one before. */
  async isMade({ environment, commandId }: RequestContext): Promise<boolean> {
    return (await this.find(environment, challengeIdOf(commandId))) !== null;
  }

  /** Null where there is none, or it is over. */
  async find(environment: string, id: string): Promise<Challenge | null> {
    return (await this.entries.get(keyOf(environment, id)))?.value ?? null;
  }

  /** The challenge of this command: when it is repeated, the same. */
  async create({ environment, commandId }: RequestContext, { id: factor_id, type }: StoredFactor): Promise<Challenge> {
    const now = this.clock.now();
    const at = new Date(now).toISOString();
    const expires_at = type === 'totp' ? null : new Date(now + CODE_LIFETIME_MS).toISOString();
    const challenge: Challenge = {
      ...{ id: challengeIdOf(commandId), factor_id },
      ...{ created_at: at, updated_at: at, expires_at, verified: null },
    };
    const { entry } = await this.entries.putIfAbsent(keyOf(environment, challenge.id), challenge, now + DAY_MS);
    await this.store.durable();
    return entry.value;
  }

  /** Of a factor whose code is delivered. */
  digits({ environment }: Pick<RequestContext, 'environment'>, { id }: Challenge): Promise<string> {
    return this.codes.digits(nameOf(environment, id));
  }

  /** With its factor. @throws DomainError `entity_not_found`, also where the factor is gone */
  async require({ environment }: RequestContext, id: string): Promise<{ readonly challenge: Challenge; readonly factor: StoredFactor }> {
    const challenge = await this.find(environment, id);
    const factor = challenge === null ? null : await this.repository.load(authenticationFactorDecider, environment, challenge.factor_id);
    if (challenge === null || factor?.object !== 'authentication_factor') throw notFound('Authentication challenge', id);
    return { challenge, factor };
  }

  /**
   * Tries a code, and spends the challenge on `by` where it is the right one: of all who try at once, one has it. The same may ask again for a while. The factor counts from
   * then on. `onlyOf`: the user who has none that counts, of whom it is to be the only one: of several that are proven at once, one is. Takes one place among the aggregates that the command asks. Durable when it resolves.
   * @throws DomainError `authentication_challenge_previously_verified`, `authentication_challenge_expired`, `one_time_code_too_many_attempts`
   */
  async verify(
    context: RequestContext,
    factor: StoredFactor,
    id: string,
    { code, by, onlyOf }: { readonly code: string; readonly by: string; readonly onlyOf?: StoredUser },
  ): Promise<Challenge | null> {
    const { environment } = context;
    const before = await this.requireOpen(environment, id, by);
    if (!isLastChallenge(factor, id) && before.verified === null) throw expired();
    const failures = this.naming.keyOf(FAILURES, environment, factor.id);
    const dayEnd = nextDay(this.clock.now());
    const steps = await this.matching(environment, factor, before, code);
    const isRight = steps !== null;
    // Each is one step of the store: of many guesses at once nobody is told of more than may be.
    const failed = await this.store.add(FAILURES, `${failures} ${dayEnd}`, isRight ? 0 : 1, dayEnd);
    const isGuessed = isRight ? failed >= FAILURES_PER_DAY : failed > FAILURES_PER_DAY;
    if (isGuessed || !(await this.codes.countTry(nameOf(environment, id), isRight, DAY_MS))) throw tooManyTries();
    if (!isRight || !(await this.takeStep(environment, before, steps))) return null;
    if (onlyOf !== undefined && !(await this.isOnly(environment, onlyOf, factor))) return null;
    const verified = await this.spend(environment, before, by);
    if (factor.verified_at === null) await this.repository.transact(authenticationFactorDecider, context, factor.id, verifyFactor(factor.id));
    else passOver(context);
    await this.store.durable();
    return verified;
  }

  /** The half minutes of which this is the code, none where it was delivered; null where it is not the right one. */
  private async matching(environment: string, factor: StoredFactor, { id }: Challenge, given: string): Promise<readonly number[] | null> {
    if (factor.type !== 'totp') return (await this.codes.isDigits(nameOf(environment, id), given)) ? [] : null;
    const place = { stream: streamName(authenticationFactorDecider.category, environment, factor.id), field: 'totp_secret' };
    const secret = factor.totp_secret === null ? null : secretOfBase32(await this.vault.open(factor.totp_secret, place));
    const steps = secret === null ? [] : stepsOf(secret, given, this.clock.now());
    return steps.length === 0 ? null : steps;
  }

  /** The half minute of a code is taken by the challenge that it came with first: one that somebody overlooks is of no use to them. */
  private async takeStep(environment: string, { id, factor_id }: Challenge, steps: readonly number[]): Promise<boolean> {
    for (const step of steps) {
      const { entry } = await this.store.putIfAbsent(STEPS, `${environment} ${factor_id} ${step}`, id, this.clock.now() + TAKEN_WITHIN_MS);
      if (entry.value === id) return true;
    }
    return steps.length === 0;
  }

  /** Known for as long as somebody may still go by what there was before it, or until it is gone. */
  private async isOnly(environment: string, user: StoredUser, { id }: StoredFactor): Promise<boolean> {
    const key = `${environment} ${user.id}`;
    for (;;) {
      const until = this.clock.now() + FIRST_KNOWN_MS;
      const { entry } = await this.store.putIfAbsent(FIRST_FACTORS, key, id, until);
      if (entry.value === id) return true;
      const first = await this.repository.load(authenticationFactorDecider, environment, entry.value);
      if (first?.object === 'authentication_factor' && !isRemoved(first, user)) return false;
      if (await this.store.compareAndSet(FIRST_FACTORS, key, entry.version, id, until)) return true;
    }
  }

  private async spend(environment: string, { id }: Challenge, by: string): Promise<Challenge> {
    for (;;) {
      const entry = await this.requireEntry(environment, id, by);
      if (entry.value.verified !== null) return entry.value;
      const at = this.clock.now();
      const verified: Challenge = { ...entry.value, updated_at: new Date(at).toISOString(), verified: { by, at } };
      if (await this.entries.replace(keyOf(environment, id), entry, verified)) return verified;
    }
  }

  private async requireOpen(environment: string, id: string, by: string): Promise<Challenge> {
    const { value: challenge } = await this.requireEntry(environment, id, by);
    if (challenge.verified === null && challenge.expires_at !== null && Date.parse(challenge.expires_at) <= this.clock.now()) throw expired();
    return challenge;
  }

  private async requireEntry(environment: string, id: string, by: string): Promise<Entry<Challenge>> {
    const entry = await this.entries.get(keyOf(environment, id));
    if (entry === null) throw notFound('Authentication challenge', id);
    const { verified } = entry.value;
    const isRepeat = verified?.by === by && this.clock.now() - verified.at <= ASKED_AGAIN_WITHIN_MS;
    if (verified !== null && !isRepeat)
      throw new DomainError('conflict', 'authentication_challenge_previously_verified', 'The challenge was verified already.');
    return entry;
  }
}

/** As the API shows it, but for a code. */
export function shownChallenge({ id, factor_id, expires_at, created_at, updated_at }: Challenge): AuthenticationChallenge {
  return {
    ...{ object: 'authentication_challenge', id, authentication_factor_id: factor_id },
    ...(expires_at !== null && { expires_at }),
    ...{ created_at, updated_at },
  };
}

function expired(): DomainError {
  return new DomainError('conflict', 'authentication_challenge_expired', 'The challenge has expired.');
}

function challengeIdOf(commandId: string): string {
  return `auth_challenge_${derivedId(commandId, 0)}`;
}

function keyOf(environment: string, id: string): string {
  return `${environment} ${id}`;
}

function nameOf(environment: string, id: string): CodeName {
  return { environment, kind: 'authentication_challenge', id, round: 0 };
}

function nextDay(now: number): number {
  return now - (now % DAY_MS) + DAY_MS;
}
