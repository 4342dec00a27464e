import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import type { Position, RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { Clock } from '#libs/platform/src/clock';
import type { Positions } from '#libs/platform/src/positions';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import type { ResourceEvent } from '../domain/resource.events.ts';
import type { ResourceRows } from '../repositories/resource-rows.ts';
import type { ResourceTrees } from '../repositories/resource-trees.ts';

interface Needs {
  readonly trees: ResourceTrees;
  readonly rows: ResourceRows;
  readonly positions: Positions;
  readonly clock: Clock;
}

/** How many ends are recorded at once. */
const BATCH = 500;

/**
 * What hung under a deleted resource died with it; this tells so of each, one level at a time: the event of a child makes it tell of the grandchildren. Asked
 * again, it finds nothing left to tell of.
 */
export function deleteResourcesUnderDeleted(needs: Needs): Reaction {
  return {
    name: 'delete-resources-under-deleted',
    handles: ['resource.deleted' satisfies ResourceEvent['type']],
    react: (event) => recordEnds(needs, event, 'parent', idIn(event)),
  };
}

export function deleteResourcesWhenOrganizationDeleted(needs: Needs): Reaction {
  return {
    name: 'delete-resources-when-organization-deleted',
    handles: ['organization.deleted'],
    react: (event) => recordEnds(needs, event, 'organization', idIn(event)),
  };
}

async function recordEnds({ trees, rows, positions, clock }: Needs, { meta, position }: RecordedEvent, index: string, value: string): Promise<void> {
  const { environment } = meta;
  const context = (): RequestContext => systemContext(environment, clock.now());
  // Nothing is put under what is dead; what was put there before has its row when the views have come so far.
  const left = async (upTo: Position): Promise<readonly string[]> => {
    await positions.reached(upTo > position ? upTo : position, context().deadline);
    const page = await rows.table.page(environment, { where: { index, values: [value] }, order: 'asc', limit: BATCH });
    // The organization resource is told of by its organization.
    return page.rows.filter(({ text }) => !isOrganizationResource(text)).map(({ id }) => id);
  };
  while (await trees.recordEnds(context(), meta.organization!, left));
}

function isOrganizationResource(text: string): boolean {
  return (JSON.parse(text) as { readonly parent_resource_id: string | null }).parent_resource_id === null;
}

function idIn({ data }: RecordedEvent): string {
  return (data as { readonly id: string }).id;
}
