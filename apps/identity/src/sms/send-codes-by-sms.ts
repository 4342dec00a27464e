import { setTimeout as pause } from 'node:timers/promises';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { Log } from '#libs/platform/src/log';
import { Metrics } from '#libs/platform/src/metrics';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { AuthenticationChallenges } from '../authentication-factors/authentication-challenges.ts';
import { phoneNumberOf } from '../authentication-factors/phone-numbers.ts';
import { TextMessages } from '../authentication-factors/text-messages.ts';
import { authenticationFactorDecider, isLastChallenge, isRemoved, type AuthenticationFactorEvent } from '../domain/authentication-factor.decider.ts';
import type { StoredSettings } from '../domain/environment-settings.decider.ts';
import type { StoredUser } from '../domain/user.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { usersView } from '../views/users.view.ts';
import { SmsTransport, type Outcome, type Text } from './sms-transport.ts';
import { textOf } from './sms-texts.ts';

type FactorChallenged = FactOf<AuthenticationFactorEvent, 'authentication_factor.challenged'>;

/** How old a text is when others wait for it no more, and it goes on beside them: so none is behind by more, however many webhooks take nearly as long. */
const PATIENCE = 1_000;
/** So many texts of one environment are on their way, or wait for its webhook. */
const WAITING = 200;
/** Between two tries; the last one goes on for as long as the code is of use. */
const PAUSES = [500, 1_000, 2_000, 5_000, 10_000, 30_000];
const LONGEST = PAUSES.at(-1)!;
/** How long a process that ends waits for what is on its way. */
const ARRIVING = 5_000;

/** Of those that wait, taken up in one go. */
const PAGE = 100;
/** Before another look for them, where that failed. */
const AWAY = 1_000;

/** Where the log has a text that waits: its words are personal, and stand nowhere else. */
interface Waiting {
  readonly stream: string;
  readonly version: number;
}

interface Due {
  readonly text: Text;
  readonly way: StoredSettings['sms'];
}

/**
 * Sends each code to its number, at least once, again and again for as long as it is of use. Each environment has a receiver of its own: one that is slow or away holds up
 * no other. What waits for it is written down before the log goes on without it, so that whoever follows next takes it up where this process ends meanwhile.
 */
@Injectable()
export class SendCodesBySms implements Reaction<FactorChallenged>, OnModuleDestroy {
  readonly name = 'send-codes-by-sms';
  readonly handles = ['authentication_factor.challenged'] as const;
  private readonly users: Table<StoredUser>;
  private readonly rows: Table<Waiting>;
  /** By event; each says whether it is over, or this process ends first. */
  private readonly sendings = new Map<string, Promise<boolean>>();
  /** How many there are, by environment. */
  private readonly waiting = new Map<string, number>();
  private readonly underWay = new Set<Promise<Outcome>>();
  private readonly stopping = new AbortController();
  private readonly outcomes;

  constructor(
    private readonly texts: TextMessages,
    private readonly challenges: AuthenticationChallenges,
    private readonly environments: EnvironmentSettingsReader,
    private readonly repository: Repository,
    private readonly events: EventStore,
    private readonly transport: SmsTransport,
    private readonly clock: Clock,
    private readonly log: Log,
    metrics: Metrics,
    readModels: ReadModels,
  ) {
    this.users = readModels.table(tableOf(usersView));
    this.rows = readModels.table({ name: `reaction-${this.name}-waiting`, indexes: [], guard: 'none', rebuildable: false });
    this.outcomes = metrics.counter({
      name: 'texts_total',
      help: 'Texts that a webhook took (sent), will never take (refused), did not take while they were of use (unsent), or that nobody waited for any more (late).',
      labels: ['outcome'],
    });
    for (const outcome of ['sent', 'refused', 'unsent', 'late']) this.outcomes.inc({ outcome }, 0);
  }

  /** What is on its way arrives; what waits for a webhook that is away is left to whoever follows next. */
  async onModuleDestroy(): Promise<void> {
    this.stopping.abort();
    await Promise.race([Promise.allSettled(this.underWay), pause(ARRIVING, undefined, { ref: false })]);
  }

  begin(): void {
    void this.takeUp();
  }

  async react(event: Recorded<FactorChallenged>): Promise<void> {
    const before = this.waiting.get(event.meta.environment) ?? 0;
    let sending = this.sendings.get(event.id);
    if (sending === undefined) {
      if (before >= WAITING) return void this.end(event, 'unsent', 'too_many_wait');
      sending = this.sendingOf(event);
      if (before === 0 && (await this.isOverSoon(event, sending))) return;
    }
    await this.keep(event, sending);
  }

  /** @throws what it failed with meanwhile */
  private async isOverSoon(event: Recorded<FactorChallenged>, sending: Promise<boolean>): Promise<boolean> {
    const patience = new AbortController();
    const isOver = await Promise.race([sending, paused(this.patienceFor(event), patience.signal).then(() => false)]);
    patience.abort();
    return isOver;
  }

  /** Until it is over the next one who follows takes it up. */
  private async keep(event: Recorded<FactorChallenged>, sending: Promise<boolean>): Promise<void> {
    const { id, stream, version } = event;
    const text = JSON.stringify({ stream, version } satisfies Waiting);
    await this.rows.write([{ environment: SYSTEM_ENVIRONMENT, id, position: '', revision: 0, text }]);
    this.forgetOnceOver(event, sending);
  }

  private forgetOnceOver(event: Pick<Recorded<FactorChallenged>, 'id' | 'meta'>, sending: Promise<boolean>): void {
    void sending
      .then(async (isOver) => {
        if (isOver) await this.rows.purge(SYSTEM_ENVIRONMENT, [event.id]);
      })
      .catch((error: unknown) => this.failed(event, error));
  }

  private async takeUp(): Promise<void> {
    for (const { signal } = this.stopping; !signal.aborted; await paused(AWAY, signal))
      try {
        return await this.takeUpWaiting();
      } catch (error) {
        this.log.warn('Texts that waited cannot be looked for now, and are looked for again.', { error });
      }
  }

  private async takeUpWaiting(): Promise<void> {
    for (let after: string | undefined, more = true; more;) {
      const page = await this.rows.page(SYSTEM_ENVIRONMENT, { order: 'asc', limit: PAGE, after });
      for (const row of page.rows) {
        const { stream, version } = contentOf(row);
        const [event] = (await this.events.readBackwards(stream, 1, version)) as unknown as Recorded<FactorChallenged>[];
        // The log was put back to before it.
        if (event?.id !== row.id) await this.rows.purge(SYSTEM_ENVIRONMENT, [row.id]);
        else if (!this.sendings.has(event.id)) this.forgetOnceOver(event, this.sendingOf(event));
      }
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }

  private sendingOf(event: Recorded<FactorChallenged>): Promise<boolean> {
    const { environment } = event.meta;
    this.waiting.set(environment, (this.waiting.get(environment) ?? 0) + 1);
    const sending = this.send(event).finally(() => {
      this.sendings.delete(event.id);
      this.left(environment);
    });
    this.sendings.set(event.id, sending);
    // Whoever waits for it hears of it, and nobody may yet.
    sending.catch(() => {});
    return sending;
  }

  /** A clock that is behind that of whoever recorded it lets nobody wait for longer. */
  private patienceFor({ meta }: Recorded<FactorChallenged>): number {
    return Math.min(PATIENCE, Math.max(0, meta.at + PATIENCE - this.clock.now()));
  }

  /** False where this process ends first. */
  private async send(event: Recorded<FactorChallenged>): Promise<boolean> {
    const { signal } = this.stopping;
    for (let tries = 0; !signal.aborted; tries++) {
      const due = await this.due(event);
      if (due === null) return this.end(event, tries === 0 ? 'late' : 'unsent');
      const outcome = await this.attempt(due);
      if (outcome.outcome === 'sent') return this.end(event, 'sent');
      if (outcome.outcome === 'refused') return this.end(event, 'refused', outcome.reason);
      if (tries === 0) this.warn('A text was not taken by the webhook of the environment, and is sent again.', event, outcome.reason);
      await paused(pauseAfter(tries, outcome), signal);
    }
    return false;
  }

  private async attempt({ text, way }: Due): Promise<Outcome> {
    const sending = this.transport.send(text, way);
    this.underWay.add(sending);
    return sending.finally(() => this.underWay.delete(sending));
  }

  /** Null where nobody waits for it: the code was used, has expired, or another one was asked for; its factor or user is gone; or texts are off. */
  private async due({ id, data, meta: { environment } }: Recorded<FactorChallenged>): Promise<Due | null> {
    if (Date.parse(data.expires_at) <= this.clock.now()) return null;
    const factor = await this.repository.load(authenticationFactorDecider, environment, data.id);
    if (factor?.object !== 'authentication_factor' || factor.phone_number === null || !isLastChallenge(factor, data.challenge_id)) return null;
    const challenge = await this.challenges.find(environment, data.challenge_id);
    if (challenge === null || challenge.verified !== null) return null;
    const row = factor.user_id === null ? null : await this.users.get(environment, factor.user_id);
    const user = row === null ? null : contentOf(row);
    if (factor.user_id !== null && (user === null || isRemoved(factor, user))) return null;
    const number = await phoneNumberOf(factor.phone_number);
    const way = await this.texts.wayTo({ environment }, number);
    if (way === null) return null;
    const name = await this.environments.shownName({ environment });
    const code = await this.challenges.digits({ environment }, challenge);
    const text = textOf(code, { template: data.sms_template, locale: user?.locale ?? null, name });
    return { text: { id: `sms_${id}`, environment, to: number.number, country: number.country!, text, code, expires_at: data.expires_at }, way };
  }

  private end(event: Recorded<FactorChallenged>, outcome: 'sent' | 'refused' | 'unsent' | 'late', reason?: string): true {
    this.outcomes.inc({ outcome });
    if (outcome === 'refused') this.warn('A text was refused by the webhook of the environment, and is not sent again.', event, reason);
    if (outcome === 'unsent') this.warn('A text was not sent while its code was of use.', event, reason);
    return true;
  }

  /** After it was waited for, nobody else hears of it. */
  private failed({ id, meta: { environment } }: Pick<Recorded<FactorChallenged>, 'id' | 'meta'>, error: unknown): void {
    this.outcomes.inc({ outcome: 'unsent' });
    this.log.error('A text could not be sent.', { environment, event: id, error });
  }

  private warn(sentence: string, { id, meta: { environment } }: Recorded<FactorChallenged>, reason?: string): void {
    this.log.warn(sentence, { environment, event: id, ...(reason !== undefined && { reason }) });
  }

  private left(environment: string): void {
    const others = this.waiting.get(environment)! - 1;
    if (others === 0) this.waiting.delete(environment);
    else this.waiting.set(environment, others);
  }
}

function pauseAfter(tries: number, { wait = 0 }: Exclude<Outcome, { readonly outcome: 'sent' }>): number {
  return Math.max(PAUSES[tries] ?? LONGEST, Math.min(wait, LONGEST));
}

function paused(milliseconds: number, signal: AbortSignal): Promise<void> {
  return pause(milliseconds, undefined, { signal }).catch(() => {});
}
