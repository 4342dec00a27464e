import { Injectable } from '@nestjs/common';
import { EventStore, type Position } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { timeOfId } from '#libs/platform/src/ids';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { monthOf, type Month } from '../domain/audit-month.decider.ts';
import { AUDIT_TRAIL, type AuditTrailEvent } from '../domain/audit-trail.decider.ts';
import { Retention } from '../readers/retention.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { TrailKeys } from '../sealing/trail-keys.ts';
import { LIVING, rowIdOf } from '../views/audit-trail.view.ts';
import { DoubtedClock } from './believed-time.ts';

/** Between two rounds through all trails: so much later a row goes at most. */
const ROUND_EVERY = 3_600_000;
/** So often it is looked whether rows that were taken were made anew, and keys put back from an older backup. */
const LOOKED_AGAIN = 86_400_000;
const TRAILS_AT_ONCE = 200;
const ROWS_AT_ONCE = 500;
const REMEMBERED = 100_000;

/** How far the rows of a trail are taken, in the order of its leaves. */
export interface Taken {
  /** The next leaf. */
  readonly leaf: number;
  /** Rows of the first and the last that went: where one of them is there again, all were made anew. */
  readonly first: string;
  readonly last: string;
}

/** What is known of a trail. */
interface Known {
  readonly taken: Taken | null;
  /** When its next event was received; null where it has none left. */
  readonly next: number | null;
  /** Of the stored key, or later than that of one that there is not. */
  readonly month: Month;
  readonly lookedAt: number;
}

/** A round through the trails of an environment. */
interface Round {
  readonly startedAt: number;
  /** The trail up to which it has come; null when it is done. */
  after: string | undefined | null;
}

/**
 * Takes what retention has ended: rows, in the order of arrival, which the log has; and of months that have passed as a whole the keys, with which what lies in the log cannot be
 * read any more. What was taken by a process that was killed is taken again.
 */
@Injectable()
export class ExpiredEvents {
  private readonly known = new BoundedMap<Known>(REMEMBERED);
  private readonly rounds = new Map<string, Round>();
  private readonly clock: DoubtedClock;
  private readonly progress: Table<Taken>;

  constructor(
    private readonly reader: TrailReader,
    private readonly retention: Retention,
    private readonly keys: TrailKeys,
    private readonly events: EventStore,
    readModels: ReadModels,
  ) {
    this.clock = DoubtedClock.of(readModels);
    this.progress = readModels.table({ name: 'audit_retention', indexes: [], guard: 'none', rebuildable: false, isMadeAnew: true });
  }

  /** At most so many rows of an environment; answers how many. */
  async sweep(environment: string, now: number, limit: number): Promise<number> {
    const believed = await this.clock.believed(now);
    const round = this.roundAt(environment, believed);
    let swept = 0;
    while (round.after !== null && swept < limit) {
      const page = await this.reader.rows.page(environment, {
        where: { index: 'state', values: [LIVING] },
        order: 'asc',
        limit: TRAILS_AT_ONCE,
        after: round.after,
      });
      const trails = [...(round.after === undefined ? [environment] : []), ...page.rows.map(({ id }) => id)];
      const months = new Map<string, Month>();
      for (const organization of trails) {
        const since = await this.retention.since({ environment, organization }, believed);
        // Nothing was received before there was somebody to receive it for.
        if (timeOfId(organization) >= since) continue;
        swept += await this.takeRows({ environment, organization }, { since, now: believed, limit: limit - swept });
        if (swept >= limit) break;
        const month = monthOf(since);
        const known = this.known.get(environment, organization);
        if (known !== undefined && known.month < month) months.set(organization, month);
      }
      await this.keys.advance(environment, months);
      for (const [organization, month] of months) this.known.set(environment, organization, { ...this.known.get(environment, organization)!, month });
      // Where the limit was reached, this page is gone through once more: what is done takes no time.
      if (swept < limit) round.after = page.hasAfter ? page.rows.at(-1)!.id : null;
    }
    return swept;
  }

  /** Of a trail that has ended. */
  async forget(environment: string, organization: string): Promise<void> {
    this.known.delete(environment, organization);
    await this.progress.purge(environment, [organization]);
  }

  private roundAt(environment: string, now: number): Round {
    const round = this.rounds.get(environment);
    if (round !== undefined && (round.after !== null || Math.abs(now - round.startedAt) < ROUND_EVERY)) return round;
    const next: Round = { startedAt: now, after: undefined };
    this.rounds.set(environment, next);
    return next;
  }

  /** Rows of events that were received before `since`. */
  private async takeRows(
    { environment, organization }: { readonly environment: string; readonly organization: string },
    { since, now, limit }: { readonly since: number; readonly now: number; readonly limit: number },
  ): Promise<number> {
    let known = this.known.get(environment, organization);
    if (known === undefined || Math.abs(now - known.lookedAt) > LOOKED_AGAIN)
      known = { taken: await this.takenOf(environment, organization), next: 0, month: 0, lookedAt: now };
    let rows = 0;
    for (; known.next !== null && known.next < since && rows < limit;) {
      const some = await this.nextOf({ environment, organization }, known.taken?.leaf ?? 0, { since, count: Math.min(ROWS_AT_ONCE, limit - rows) });
      const ids = some.expired.map(({ data }) => rowIdOf(data.id));
      let { taken }: Known = known;
      if (ids.length > 0) {
        await this.reader.rows.purge(environment, ids);
        taken = { leaf: (taken?.leaf ?? 0) + ids.length, first: taken?.first ?? ids[0]!, last: ids.at(-1)! };
        await this.progress.write([{ environment, id: organization, position: '', revision: 0, text: JSON.stringify(taken) }]);
      }
      rows += ids.length;
      known = { ...known, taken, next: some.next };
      if (ids.length === 0) break;
    }
    this.known.set(environment, organization, known);
    return rows;
  }

  /** How far it was, unless the rows were made anew since. */
  private async takenOf(environment: string, organization: string): Promise<Taken | null> {
    const row = await this.progress.get(environment, organization);
    if (row === null) return null;
    const taken = contentOf(row);
    return (await this.reader.rows.presentAmong(environment, [taken.first, taken.last])).size > 0 ? null : taken;
  }

  /** The next events from a leaf on whose time has passed and whose rows are written; and when the one behind them was received. */
  private async nextOf(
    { environment, organization }: { readonly environment: string; readonly organization: string },
    leaf: number,
    { since, count }: { readonly since: number; readonly count: number },
  ): Promise<{ readonly expired: readonly Recorded<AuditTrailEvent>[]; readonly next: number | null }> {
    const stream = streamName(AUDIT_TRAIL, environment, organization);
    const shown: Position = await this.reader.rows.checkpoint();
    const size = (await this.events.last(stream))?.version ?? 0;
    const last = Math.min(leaf + count + 1, size);
    if (last <= leaf) return { expired: [], next: null };
    const records = ((await this.events.readBackwards(stream, last - leaf, last)) as readonly Recorded<AuditTrailEvent>[]).toReversed();
    const kept = records.findIndex(({ meta, position }) => meta.at >= since || position > shown);
    const expired = records.slice(0, Math.min(kept === -1 ? records.length : kept, count));
    return { expired, next: records[expired.length]?.meta.at ?? null };
  }
}
