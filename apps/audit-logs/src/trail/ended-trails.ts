import { Injectable, type OnModuleInit } from '@nestjs/common';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import { EnvironmentSweeps } from '#libs/runtime/src/environment-sweeps';
import { AUDIT_TRAIL } from '../domain/audit-trail.decider.ts';
import { TrailReader } from '../readers/trail-reader.ts';
import { ExpiredEvents } from '../retention/expired-events.ts';
import { TrailKeys } from '../sealing/trail-keys.ts';
import { TrailTrees } from '../tree/trail-trees.ts';
import { ENDED } from '../views/audit-trail.view.ts';

/** A trail that was found empty is looked at again so much later: rows that are made anew bring it back. */
const AGAIN = 86_400_000;
const REMEMBERED = 100_000;
const AT_ONCE = 100;

/** Takes the trails of organizations that were deleted: first the key, with which their content is gone in every copy, then the rows, and those of their trees. */
@Injectable()
export class EndedTrails implements OnModuleInit {
  private readonly emptyAt = new BoundedMap<number>(REMEMBERED);

  constructor(
    private readonly reader: TrailReader,
    private readonly keys: TrailKeys,
    private readonly expired: ExpiredEvents,
    private readonly trees: TrailTrees,
    private readonly events: EventStore,
    private readonly sweeps: EnvironmentSweeps,
  ) {}

  onModuleInit(): void {
    this.sweeps.add('audit_trails', async (environment, now, limit) => {
      const ended = await this.sweep(environment, now, limit);
      return ended < limit ? ended + (await this.expired.sweep(environment, now, limit - ended)) : ended;
    });
  }

  /** At most so many rows of an environment; answers how many. */
  async sweep(environment: string, now: number, limit: number): Promise<number> {
    const { rows } = this.reader;
    let swept = 0;
    for (let after: string | undefined, more = true; more && swept < limit;) {
      const ended = await rows.page(environment, { where: { index: 'state', values: [ENDED] }, order: 'asc', limit: AT_ONCE, after });
      for (const { id } of ended.rows) if (swept < limit) swept += await this.sweepOne(environment, id, { now, limit: limit - swept });
      after = ended.rows.at(-1)?.id;
      more = ended.hasAfter;
    }
    return swept;
  }

  private async sweepOne(environment: string, organization: string, { now, limit }: { readonly now: number; readonly limit: number }): Promise<number> {
    if ((this.emptyAt.get(environment, organization) ?? -Infinity) > now - AGAIN) return 0;
    await this.keys.destroy({ environment, organization });
    const page = await this.reader.rows.page(environment, { where: { index: 'organization', values: [organization] }, order: 'asc', limit });
    await this.reader.rows.purge(
      environment,
      page.rows.map(({ id }) => id),
    );
    if (!page.hasAfter) {
      const last = await this.events.last(streamName(AUDIT_TRAIL, environment, organization));
      await this.trees.rows.purge({ environment, organization }, last?.version ?? 0);
      await this.expired.forget(environment, organization);
      this.emptyAt.set(environment, organization, now);
    }
    return page.rows.length;
  }
}
