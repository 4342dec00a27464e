import { Injectable } from '@nestjs/common';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Clock } from '#libs/platform/src/clock';
import { Positions } from '#libs/platform/src/positions';
import { systemContext } from '#libs/platform/src/system-context';
import type { PageRequest, StoredRow, Table } from '#libs/read-models/src/read-models';

/** How long a reaction waits for the rows that the log already tells of. */
const PATIENCE = 10_000;
/** Decided at one time: they share the flushes of the log, and leave room for requests. */
const AT_ONCE = 25;

/** What reactions do to everything that hangs on something: one decision for each, however many they are. */
@Injectable()
export class Dependents {
  constructor(
    private readonly repository: Repository,
    private readonly positions: Positions,
    private readonly clock: Clock,
  ) {}

  /** Work for each row under an index value, as the rows stand after `event`. May be broken off and begun again. */
  async each<Row>(
    event: RecordedEvent,
    table: Table<Row>,
    where: NonNullable<PageRequest['where']>,
    work: (row: StoredRow) => Promise<unknown>,
  ): Promise<void> {
    await this.knows(event);
    for (let after: string | undefined, more = true; more;) {
      const page = await table.page(event.meta.environment, { where, order: 'asc', limit: AT_ONCE, after });
      await Promise.all(page.rows.map(work));
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }

  /** Resolves when rows show everything up to the event. */
  knows({ position }: RecordedEvent): Promise<void> {
    return this.positions.reached(position, this.clock.now() + PATIENCE);
  }

  async decide<State, Event extends Fact>(
    { meta }: RecordedEvent,
    decider: Decider<State, Event>,
    key: string,
    decision: Decision<State, Event>,
  ): Promise<void> {
    await this.repository.transact(decider, systemContext(meta.environment, this.clock.now()), key, decision);
  }
}
