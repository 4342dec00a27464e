import { Injectable } from '@nestjs/common';
import { AuthorizationResource } from '#libs/contracts/src/authorization-resources/authorization-resource';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { isNotFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import { AccessIndex } from '../access/access-index.ts';
import { organizationResourceId } from '../domain/resource-tree.ts';
import { resourcesView, together, typeKey, type ResourceRow } from '../views/resources.view.ts';

const textOf = serialiserOf(AuthorizationResource);

/** More than there are between a resource and its organization. */
const MAX_LEVELS = 10;
/** Rows that one external id may have: of what was deleted and is not swept yet, and of what lives. */
const MAX_NAMESAKES = 100;

/** What the API shows of a row. */
export function shown(row: ResourceRow): string {
  return textOf(row);
}

/**
 * Resources as they are told to callers: from rows, of which some are there although something above them was deleted. An organization is asked for as the log
 * has it, whatever its row says.
 */
@Injectable()
export class ResourceRows {
  readonly table: Table<ResourceRow>;

  constructor(
    private readonly access: AccessIndex,
    private readonly views: ReadYourWrites,
    readModels: ReadModels,
  ) {
    this.table = readModels.table(tableOf(resourcesView));
  }

  /** Null where it never was, or is no more. */
  async byId(context: RequestContext, id: string): Promise<ResourceRow | null> {
    return this.found(context, async () => [await this.table.get(context.environment, id)]);
  }

  /** Null where it never was, or is no more. `typeId`: null for the organization resource. */
  async byExternalId(context: RequestContext, organizationId: string, typeId: string | null, externalId: string): Promise<ResourceRow | null> {
    const values = [together(organizationId, typeKey(typeId), externalId)];
    // What was deleted with its parents may still be there, and another may have taken its external id.
    return this.found(context, async () => {
      const { rows } = await this.table.page(context.environment, {
        where: { index: 'organization_type_external_id', values },
        order: 'desc',
        limit: MAX_NAMESAKES,
      });
      return rows;
    });
  }

  /** Resolves once a list shows the resources of organizations that were created before it was asked for; all of them, or one. */
  async showOrganizations({ environment, deadline }: RequestContext, organizationId: string | null): Promise<void> {
    if (organizationId !== null && (await this.table.get(environment, organizationResourceId(organizationId))) !== null) return;
    await this.views.waitForHead(deadline);
  }

  /** The rows with null for what is dead: by itself, by what it hangs under, or with its organization. */
  async live(context: RequestContext, stored: readonly StoredRow<ResourceRow>[]): Promise<readonly (ResourceRow | null)[]> {
    const rows = stored.map(contentOf);
    const organizations = await this.existingOrganizations(
      context,
      rows.map(({ organization_id }) => organization_id),
    );
    const candidates = rows.filter(({ organization_id }) => organizations.has(organization_id));
    const live = await this.hanging(context.environment, candidates);
    const doubtful = candidates.filter((row) => !live.has(row));
    // What was moved while its ancestors were being read seems to hang under nothing.
    if (doubtful.length > 0) {
      const again = await this.table.getMany(
        context.environment,
        doubtful.map(({ id }) => id),
      );
      const moved = again.flatMap((row) => (row === null ? [] : [contentOf(row)]));
      const found = new Map([...(await this.hanging(context.environment, moved))].map((row) => [row.id, row]));
      return rows.map((row) => (live.has(row) ? row : organizations.has(row.organization_id) ? (found.get(row.id) ?? null) : null));
    }
    return rows.map((row) => (live.has(row) ? row : null));
  }

  /** Those of the named organizations that were not deleted. */
  async existingOrganizations(context: RequestContext, named: readonly string[]): Promise<ReadonlySet<string>> {
    const ids = [...new Set(named)];
    const lives = await Promise.all(ids.map((id) => this.isLive(context, id)));
    return new Set(ids.filter((_, index) => lives[index]));
  }

  private async found(context: RequestContext, look: () => Promise<readonly (StoredRow<ResourceRow> | null)[]>): Promise<ResourceRow | null> {
    // An organization that another service has just told of has no row here yet.
    return this.views.retryAtHead(context.deadline, async () => {
      const stored = (await look()).filter((row) => row !== null);
      return (await this.live(context, stored)).find((row) => row !== null) ?? null;
    });
  }

  private async isLive(context: RequestContext, organizationId: string): Promise<boolean> {
    try {
      await this.access.requireOrganization(context, organizationId);
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  /** Those from which the organization resource is reached. */
  private async hanging(environment: string, rows: readonly ResourceRow[]): Promise<ReadonlySet<ResourceRow>> {
    const parents = new Map<string, string | null>();
    const live = new Set<ResourceRow>();
    let open = rows.map((row) => ({ row, above: row.parent_resource_id }));
    // Rows that are read one after another may seem to hang under each other.
    for (let level = 0; open.length > 0 && level < MAX_LEVELS; level++) {
      const missing = [...new Set(open.map(({ row, above }) => (isTop(row, above) ? null : above)).filter((id) => id !== null))].filter(
        (id) => !parents.has(id),
      );
      const found = await this.table.getMany(environment, missing);
      missing.forEach((id, index) => parents.set(id, found[index] == null ? null : contentOf(found[index]).parent_resource_id));
      open = open.flatMap(({ row, above }) => {
        if (isTop(row, above)) {
          live.add(row);
          return [];
        }
        const next = parents.get(above!) ?? null;
        return next === null ? [] : [{ row, above: next }];
      });
    }
    return live;
  }
}

/** The organization resource needs no row to hang something under. */
function isTop({ organization_id }: ResourceRow, above: string | null): boolean {
  return above === null || above === organizationResourceId(organization_id);
}
