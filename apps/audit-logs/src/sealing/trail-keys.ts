import { Injectable } from '@nestjs/common';
import { type DataKey, type ErasablePurpose, KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { timeOfId } from '#libs/platform/src/ids';
import { monthOf, type Month } from '../domain/audit-month.decider.ts';
import { MonthKey, nextMonth } from './month-key.ts';

/** Whose trail it is: an organization, or the environment itself. */
export interface TrailOwner {
  readonly environment: string;
  readonly organization: string;
}

/**
 * The keys of trails. One is stored for each, that of the month in which its organization's id was made; those of later months follow from it, one after the other, so that whoever
 * has a later one knows nothing of what came before. With the stored key the whole trail is gone.
 */
@Injectable()
export class TrailKeys {
  /** Forgotten with the stored keys, which the store keeps for a minute. */
  private readonly derived = new WeakMap<DataKey, Map<Month, MonthKey>>();

  constructor(private readonly keys: KeyStore) {}

  /** Made at its first use. @throws KeyDestroyed */
  async obtain(owner: TrailOwner): Promise<TrailKey> {
    return this.trailKey(owner, await this.keys.obtain(purposeOf(owner)));
  }

  /** Null: it was destroyed, and what it sealed is gone. @throws KeyMissing */
  async find(owner: TrailOwner): Promise<TrailKey | null> {
    const found = await this.keys.find(purposeOf(owner));
    return found === 'erased' ? null : this.trailKey(owner, found);
  }

  async destroy(owner: TrailOwner): Promise<void> {
    const purpose = purposeOf(owner);
    if (!(await this.keys.erasedAmong([purpose])).has(purpose)) await this.keys.destroy(purpose);
  }

  private trailKey({ organization }: TrailOwner, stored: DataKey): TrailKey {
    let months = this.derived.get(stored);
    if (months === undefined) this.derived.set(stored, (months = new Map<Month, MonthKey>()));
    return new TrailKey(stored, firstMonth(organization), months);
  }
}

/** The keys of the months of one trail. */
export class TrailKey {
  constructor(
    private readonly stored: DataKey,
    readonly firstMonth: Month,
    private readonly months: Map<Month, MonthKey>,
  ) {}

  /** Of when an event was received (milliseconds since the epoch). The clock that made the id may have been ahead of the one here. */
  at(time: number): MonthKey {
    return this.ofMonth(Math.max(monthOf(time), this.firstMonth));
  }

  ofMonth(month: Month): MonthKey {
    let key = this.months.get(month);
    if (key === undefined) {
      let bytes = this.stored.bytes;
      for (let each = this.firstMonth; each < month; each++) bytes = nextMonth(bytes);
      this.months.set(month, (key = new MonthKey(bytes)));
    }
    return key;
  }
}

function firstMonth(id: string): Month {
  return monthOf(timeOfId(id));
}

function purposeOf({ environment, organization }: TrailOwner): ErasablePurpose {
  return `trail.${environment}-${organization}`;
}
