import { Injectable } from '@nestjs/common';
import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import type { FactOf, Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { Positions } from '#libs/platform/src/positions';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import type { Position } from '#libs/event-sourcing/src/log/event-store';
import { Clock } from '#libs/platform/src/clock';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { contentOf, type StoredRow } from '#libs/read-models/src/read-models';
import type { ResourceEvent } from '../domain/resource.events.ts';
import { ResourceRows } from '../repositories/resource-rows.ts';
import { ResourceTrees } from '../repositories/resource-trees.ts';
import type { ResourceRow } from '../views/resources.view.ts';

type ResourceDeleted = FactOf<ResourceEvent, 'resource.deleted'>;
type OrganizationDeleted = FactOf<OrganizationEvent, 'organization.deleted'>;

/** How many ends are recorded at once. */
const BATCH = 500;

/** Records the end of what dies with something: asked again, it finds nothing left to record. */
@Injectable()
abstract class DeleteResources<Event extends ResourceDeleted | OrganizationDeleted> implements Reaction<Event> {
  abstract readonly name: string;
  abstract readonly handles: readonly Event['type'][];
  /** What finds those that hang on it. */
  protected abstract readonly index: 'parent' | 'organization';

  constructor(
    private readonly trees: ResourceTrees,
    private readonly rows: ResourceRows,
    private readonly positions: Positions,
    private readonly clock: Clock,
  ) {}

  async react({ data, meta, position }: Recorded<Event>): Promise<void> {
    const where = { index: this.index, values: [data.id] };
    // Nothing is put under what is dead; what was put there before has its row when the views have come so far.
    const left = async (upTo: Position): Promise<readonly string[]> => {
      await this.positions.reached(upTo > position ? upTo : position, this.context(meta.environment).deadline);
      const page = await this.rows.table.page(meta.environment, { where, order: 'asc', limit: BATCH });
      return page.rows.filter(isNoOrganization).map(({ id }) => id);
    };
    while (await this.trees.recordEnds(this.context(meta.environment), meta.organization!, left));
  }

  private context(environment: string): RequestContext {
    return systemContext(environment, this.clock.now());
  }
}

/** One level at a time: the event of a child makes it record the grandchildren. */
@Injectable()
export class DeleteResourcesUnderDeleted extends DeleteResources<ResourceDeleted> {
  readonly name = 'delete-resources-under-deleted';
  readonly handles = ['resource.deleted'] as const;
  protected readonly index = 'parent';
}

@Injectable()
export class DeleteResourcesOfDeletedOrganization extends DeleteResources<OrganizationDeleted> {
  readonly name = 'delete-resources-when-organization-deleted';
  readonly handles = ['organization.deleted'] as const;
  protected readonly index = 'organization';
}

/** The resource that stands for an organization is recorded by its organization. */
function isNoOrganization(row: StoredRow<ResourceRow>): boolean {
  return contentOf(row).parent_resource_id !== null;
}
