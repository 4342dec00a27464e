import { Injectable } from '@nestjs/common';
import { reopenWhatWasLeftClosed, undoWhatMayNotHang } from '#libs/event-sourcing/src/deciding/guards/hanging';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Positions } from '#libs/platform/src/positions';
import { MadeReaction } from '#libs/event-sourcing/src/following/reaction';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { Clock } from '#libs/platform/src/clock';
import { ReadModels } from '#libs/read-models/src/read-models';
import { feature } from '#libs/runtime/src/feature';
import { CLOSED, hangings } from './hangings.ts';
import { ParentRows } from '../repositories/parent-rows.ts';
import { Reopening } from './reopening.ts';
import { ResourceTrees } from '../repositories/resource-trees.ts';

/** Stands in for whoever recorded what may not hang, and died before taking it back. */
@Injectable()
class TakeBackWhatMayNotHang extends MadeReaction {
  constructor(
    events: EventStore,
    readModels: ReadModels,
    positions: Positions,
    clock: Clock,
    parents: ParentRows,
    repository: Repository,
    trees: ResourceTrees,
  ) {
    super(undoWhatMayNotHang('undo-what-may-not-hang', CLOSED, hangings({ parents, repository, trees, clock }), { events, readModels, positions, clock }));
  }
}

/** Stands in for whoever closed something, and died before changing or reopening it. */
@Injectable()
class ReopenWhatWasLeftClosed extends MadeReaction {
  constructor(reopening: Reopening, events: EventStore, clock: Clock) {
    super(reopenWhatWasLeftClosed('reopen-what-was-left-closed', reopening.byThing(), { events, clock }));
  }
}

/** The rules between the streams of this service. */
export const guards = feature({
  providers: [ParentRows, Reopening],
  reactions: [TakeBackWhatMayNotHang, ReopenWhatWasLeftClosed],
});
