import { Injectable } from '@nestjs/common';
import { purposeOf } from '#libs/event-sourcing/src/sealing/holders';
import { KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { Clock } from '#libs/platform/src/clock';
import { derivedId, newCommandId } from '#libs/platform/src/ids';
import { holderOfDirectoryUser } from '../domain/directory-user.decider.ts';

/** By how many came within so long it is told how many come next, in milliseconds. */
const WINDOW_MS = 100;
/** Keys are prepared for as many as come while one flush is on its way. */
const MOST_PREPARED = 64;
/** An id says when somebody was made: nobody gets one that is older. */
const KEPT_MS = 1_000;

interface Prepared {
  readonly id: string;
  readonly at: number;
}

class Stock {
  prepared: Prepared[] = [];
  isFilling = false;
  windowBegan = 0;
  inWindow = 0;
  /** How many are to be at hand. */
  wanted = 0;
}

/**
 * Ids for people who are about to be made, whose keys are durable already. A key has to be on disk before what it seals, so whoever came alone would wait for two flushes of the disk, one
 * after the other: while many come, the keys of those who come next are flushed together, while others are written. What nobody takes is a key that seals nothing.
 */
@Injectable()
export class PreparedPeople {
  /** By environment. */
  private readonly stocks = new Map<string, Stock>();

  constructor(
    private readonly keys: KeyStore,
    private readonly clock: Clock,
  ) {}

  /** An id that nobody has. Its key is made where it is needed, unless it is at hand. */
  next(environment: string): string {
    let stock = this.stocks.get(environment);
    if (stock === undefined) this.stocks.set(environment, (stock = new Stock()));
    const now = this.clock.now();
    count(stock, now);
    while (stock.prepared.length > 0 && stock.prepared[0]!.at < now - KEPT_MS) stock.prepared.shift();
    const next = stock.prepared.shift();
    if (!stock.isFilling && stock.prepared.length < stock.wanted / 2) void this.fill(environment, stock, now);
    return next?.id ?? newId(now);
  }

  private async fill(environment: string, stock: Stock, now: number): Promise<void> {
    stock.isFilling = true;
    const fresh = Array.from({ length: stock.wanted - stock.prepared.length }, (): Prepared => ({ id: newId(now), at: now }));
    try {
      await Promise.all(fresh.map(({ id }) => this.keys.obtain(purposeOf(holderOfDirectoryUser(id), environment))));
      stock.prepared.push(...fresh);
    } catch {
      // Whoever is made meanwhile meets the same, and says so.
    } finally {
      stock.isFilling = false;
    }
  }
}

function newId(now: number): string {
  return `directory_user_${derivedId(newCommandId(now), 0)}`;
}

function count(stock: Stock, now: number): void {
  const passed = now - stock.windowBegan;
  if (passed >= WINDOW_MS) {
    stock.wanted = passed < 2 * WINDOW_MS && stock.inWindow > 1 ? Math.min(MOST_PREPARED, stock.inWindow) : 0;
    stock.windowBegan = now;
    stock.inWindow = 0;
  }
  stock.inWindow += 1;
}
