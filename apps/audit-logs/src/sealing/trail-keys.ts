import { Injectable } from '@nestjs/common';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { categoryOf, environmentOf, streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import { type DataKey, type ErasablePurpose, KeyStore } from '#libs/event-sourcing/src/sealing/key-store';
import { timeOfId } from '#libs/platform/src/ids';
import { monthOf, type Month } from '../domain/audit-month.decider.ts';
import { AUDIT_TRAIL } from '../domain/audit-trail.decider.ts';
import { MonthKey, nextMonth } from './month-key.ts';

/** Whose trail it is: an organization, or the environment itself. */
export interface TrailOwner {
  readonly environment: string;
  readonly organization: string;
}

/**
 * The keys of trails. One is stored for each: at first that of the month in which its organization's id was made, later that of the oldest month of which anything is kept. Those of
 * the months after it follow from it, one after the other, so that whoever has it knows nothing of what came before. With it the whole trail is gone.
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

  /** Makes what trails received before these months unreadable, for ever and in every copy of the log. Answers of how many that was not done yet. */
  async advance(environment: string, trails: ReadonlyMap<string, Month>): Promise<number> {
    const owners = [...trails.keys()].map((organization) => ({ environment, organization }));
    const found = await this.keys.findMany(owners.map(purposeOf));
    const later = owners.flatMap((owner) => {
      const stored = found.get(purposeOf(owner));
      if (stored === undefined || stored === 'erased') return [];
      const key = this.trailKey(owner, stored);
      const months = trails.get(owner.organization)! - key.firstMonth;
      return months <= 0 ? [] : [{ purpose: purposeOf(owner), step: stored.step + months, bytes: key.bytesOf(key.firstMonth + months) }];
    });
    await this.keys.advance(...later);
    return later.length;
  }

  private trailKey({ organization }: TrailOwner, stored: DataKey): TrailKey {
    let months = this.derived.get(stored);
    if (months === undefined) this.derived.set(stored, (months = new Map<Month, MonthKey>()));
    return new TrailKey(stored, monthOf(timeOfId(organization)) + stored.step, months);
  }
}

/** The keys of the months of one trail. */
export class TrailKey {
  constructor(
    private readonly stored: DataKey,
    /** Of the stored key: what arrived before cannot be read any more. */
    readonly firstMonth: Month,
    private readonly months: Map<Month, MonthKey>,
  ) {}

  /** Of when an event was received (milliseconds since the epoch). The clock that made the id, or told that a month is over, may have been ahead of the one here. */
  at(time: number): MonthKey {
    return this.ofMonth(Math.max(monthOf(time), this.firstMonth));
  }

  ofMonth(month: Month): MonthKey {
    let key = this.months.get(month);
    if (key === undefined) this.months.set(month, (key = new MonthKey(this.bytesOf(month))));
    return key;
  }

  /** What is stored of a month when it is the oldest. */
  bytesOf(month: Month): Buffer {
    let { bytes } = this.stored;
    for (let each = this.firstMonth; each < month; each++) bytes = nextMonth(bytes);
    return bytes;
  }
}

/** For whoever looks whether everything that the log needs is there. */
export function trailKeyOf({ stream }: Pick<RecordedEvent, 'stream'>): ErasablePurpose | null {
  return categoryOf(stream) === AUDIT_TRAIL ? purposeOf({ environment: environmentOf(stream), organization: streamKeyOf(stream) }) : null;
}

function purposeOf({ environment, organization }: TrailOwner): ErasablePurpose {
  return `trail.${environment}-${organization}`;
}
