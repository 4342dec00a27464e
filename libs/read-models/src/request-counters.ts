import { Injectable } from '@nestjs/common';
import { Clock } from '#libs/platform/src/clock';
import { within } from '#libs/platform/src/deadline';
import { unavailable } from '#libs/platform/src/domain-error';
import { Log } from '#libs/platform/src/log';
import { ShortLived } from './short-lived.ts';

const COLLECTION = 'requests';
/** How long another process may not know of what is counted here, */
const EXCHANGE_EVERY = 50;
/** and how much of the limit that may be: under a flood, time alone would let too many through. */
const PORTION = 0.01;
/** How much of the limit others are taken to have counted since they were heard of: as much as they counted before, beside as many requests here. */
const EXPECTED = 0.05;
/** At limits up to this, each request is counted in the store before it goes on: so few can wait, and one too many would be noticed. */
const EXACT_UP_TO = 100;
const COUNT_TIMEOUT_MS = 250;
/** After the store failed, it is left alone for so long. */
const AWAY = 1_000;
/** Exchanges at one time: with very many keys, others hear of them later. */
const AT_ONCE = 16;
/** An entry outlives its window by what clocks may differ. */
const KEPT = 10_000;

/** A window of fixed length, in milliseconds since the epoch, and how many requests it may have. */
export interface CountedWindow {
  readonly start: number;
  readonly length: number;
  readonly limit: number;
}

/** The requests with one key in one window. */
interface Counter {
  readonly id: string;
  readonly window: CountedWindow;
  here: number;
  /** Of these, how many the store was told of. */
  told: number;
  elsewhere: number;
  /** How many there were here when the others were heard of last, and how many of theirs came with each of ours before that. */
  hereWhenHeard: number;
  elsewherePerHere: number;
  isAsking: boolean;
}

/**
 * Counts requests for all processes together. Each judges by what it counted itself and by what it last heard of the others, so that nobody waits for the
 * store; while that is away, each counts for itself.
 */
@Injectable()
export class RequestCounters {
  /** The present window of each length. */
  private readonly windows = new Map<number, { readonly start: number; readonly counters: Map<string, Counter> }>();
  private readonly changed = new Set<Counter>();
  private timer: NodeJS.Timeout | null = null;
  private asking = 0;
  private awayUntil = 0;
  private isAway = false;

  constructor(
    private readonly store: ShortLived,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Counts a request, or what else `amount` says; answers how many the window has had. */
  add(key: string, window: CountedWindow, amount = 1): number | Promise<number> {
    const counter = this.counterOf(key, window);
    counter.here += amount;
    const total = counter.here + counter.elsewhere;
    // Nobody has to hear of what is refused here.
    if (total > window.limit || performance.now() < this.awayUntil) return total;
    if (window.limit <= EXACT_UP_TO) return this.addExactly(counter, total, amount);
    this.changed.add(counter);
    if (counter.here - counter.told >= window.limit * PORTION && this.asking < AT_ONCE) void this.exchange(counter);
    else this.timer ??= setTimeout(() => void this.exchangeAll(), EXCHANGE_EVERY).unref();
    return total + expectedElsewhere(counter);
  }

  private counterOf(key: string, window: CountedWindow): Counter {
    const { start, length } = window;
    let present = this.windows.get(length);
    if (present?.start !== start) this.windows.set(length, (present = { start, counters: new Map() }));
    let counter = present.counters.get(key);
    if (counter === undefined) {
      counter = { id: `${key} ${length} ${start}`, window, here: 0, told: 0, elsewhere: 0, hereWhenHeard: 0, elsewherePerHere: 0, isAsking: false };
      present.counters.set(key, counter);
    }
    return counter;
  }

  private async addExactly(counter: Counter, total: number, amount: number): Promise<number> {
    counter.told += amount;
    return (await this.tell(counter, amount)) ?? total;
  }

  private async exchangeAll(): Promise<void> {
    const counters = this.changed.values();
    const work = async (): Promise<void> => {
      for (const counter of counters) await this.exchange(counter);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    this.timer = this.changed.size === 0 ? null : setTimeout(() => void this.exchangeAll(), EXCHANGE_EVERY).unref();
  }

  private async exchange(counter: Counter): Promise<void> {
    if (counter.isAsking) return;
    this.changed.delete(counter);
    const news = counter.here - counter.told;
    if (news === 0 || this.isOver(counter.window) || performance.now() < this.awayUntil) return;
    counter.isAsking = true;
    counter.told += news;
    await this.tell(counter, news);
    counter.isAsking = false;
    if (counter.here > counter.told) this.changed.add(counter);
  }

  /** Null where the store did not answer. Whether it has counted nobody knows; taking it for counted refuses nobody too early. */
  private async tell(counter: Counter, requests: number): Promise<number | null> {
    const { id, window, told } = counter;
    this.asking++;
    try {
      const counted = this.store.add(COLLECTION, id, requests, window.start + window.length + KEPT);
      const total = await within(counted, COUNT_TIMEOUT_MS, () => unavailable('The store of counters does not answer.'));
      hear(counter, total - told);
      if (this.isAway) this.log.info('Requests are counted for all processes again.');
      this.isAway = false;
      return total;
    } catch (error) {
      if (!this.isAway) this.log.warn('Requests are counted for this process alone while the store of counters is away.', { error });
      this.isAway = true;
      this.awayUntil = performance.now() + AWAY;
      return null;
    } finally {
      this.asking--;
    }
  }

  private isOver({ start, length }: CountedWindow): boolean {
    return this.clock.now() >= start + length;
  }
}

function hear(counter: Counter, elsewhere: number): void {
  const { here, hereWhenHeard } = counter;
  if (here > hereWhenHeard) counter.elsewherePerHere = Math.max(0, elsewhere - counter.elsewhere) / (here - hereWhenHeard);
  counter.elsewhere = Math.max(counter.elsewhere, elsewhere);
  counter.hereWhenHeard = here;
}

/** What others have counted since, as far as it can be guessed: at many times the limit they count much of it in the time that an answer takes. */
function expectedElsewhere({ here, hereWhenHeard, elsewherePerHere, window }: Counter): number {
  return Math.min((here - hereWhenHeard) * elsewherePerHere, window.limit * EXPECTED);
}
