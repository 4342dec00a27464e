import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { AddRadarListEntry, RemoveRadarListEntry } from '#libs/contracts/src/radar/operations';
import type { RadarListAction, RadarListAnswer, RadarListType } from '#libs/contracts/src/radar/radar';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { CurrentStates, type CurrentStatesOf } from '#libs/event-sourcing/src/following/current-states';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { addToList, removeFromList, riskListDecider, type RiskListState } from '../domain/risk-list.decider.ts';
import { listableValues, listedValue, type KnownOfAttempt } from './list-entries.ts';

/** Of a digest, what names the part of the lists that it is in: 256 parts, all of which stay in memory. */
const PART_LENGTH = 2;

/** The first that an attempt has on each list; null: nothing. */
export type Listed = Readonly<Record<RadarListAction, RadarListType | null>>;

/** Whom an environment lets in, and whom it keeps out. */
@Injectable()
export class RiskLists {
  private readonly parts: CurrentStatesOf<RiskListState>;

  constructor(
    private readonly repository: Repository,
    private readonly deletions: Deletions,
    private readonly naming: Naming,
    private readonly current: CurrentStates,
  ) {
    this.parts = current.of(riskListDecider, (state) => state);
  }

  @Handles(AddRadarListEntry)
  async add({ context, type, action, entry }: AddRadarListEntry): Promise<RadarListAnswer> {
    if (type === 'country') throw new DomainError('invalid', 'invalid_radar_list_entry', 'No attempt says its country, so an entry of it would match nothing.');
    const digest = this.digestOf(type, listedValue(type, entry));
    await this.repository.transact(riskListDecider, context, partOf(digest), addToList({ digest, type, action }));
    return { message: 'The entry is on the list.' };
  }

  @Handles(RemoveRadarListEntry)
  async remove({ context, type, action, entry }: RemoveRadarListEntry): Promise<void> {
    const digest = this.digestOf(type, listedValue(type, entry));
    await this.deletions.once({ context, what: 'Radar list entry', id: entry }, () =>
      this.repository.transact(riskListDecider, context, partOf(digest), removeFromList({ digest, type, action }, entry)),
    );
  }

  /** As the lists stand at the end of the log. @throws DomainError `service_unavailable` past the deadline */
  async find({ environment, deadline }: RequestContext, known: KnownOfAttempt): Promise<Listed> {
    await this.current.headReached(deadline);
    let allow: RadarListType | null = null;
    let block: RadarListType | null = null;
    for (const [type, value] of listableValues(known)) {
      const digest = this.digestOf(type, value);
      const part = this.parts.get(environment, partOf(digest));
      const actions = (part instanceof Promise ? await part : part)[digest] ?? [];
      if (actions.includes('allow')) allow ??= type;
      if (actions.includes('block')) block ??= type;
    }
    return { allow, block };
  }

  private digestOf(type: RadarListType, value: string): string {
    return this.naming.keyOf('risk list', type, value);
  }
}

function partOf(digest: string): string {
  return digest.slice(0, PART_LENGTH);
}
