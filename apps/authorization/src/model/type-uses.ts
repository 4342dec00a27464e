import { Injectable } from '@nestjs/common';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ReadModels, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import type { OrganizationRolesState } from '../domain/organization-roles.decider.ts';
import { ResourceRows } from '../repositories/resource-rows.ts';
import { organizationRolesView } from '../views/organization-roles.view.ts';
import { typeKey } from '../views/resources.view.ts';

/** Rows that are read at once, while nothing live is found. */
const MOST_AT_ONCE = 500;

/**
 * Who uses a type beside the model itself. Rows of what was deleted may be there a while longer, and do not count.
 */
@Injectable()
export class TypeUses {
  private readonly organizationRoles: Table<OrganizationRolesState>;

  constructor(
    private readonly resources: ResourceRows,
    readModels: ReadModels,
  ) {
    this.organizationRoles = readModels.table(tableOf(organizationRolesView));
  }

  async byOrganizationRoles(context: RequestContext, typeId: string): Promise<boolean> {
    return isAny(this.organizationRoles, context, { index: 'resource_type', values: [typeId] }, async (rows) => {
      const ids = rows.map(({ id }) => id);
      return (await this.resources.existingOrganizations(context, ids)).size > 0;
    });
  }

  async byResources(context: RequestContext, typeId: string): Promise<boolean> {
    return isAny(this.resources.table, context, { index: 'type', values: [typeKey(typeId)] }, async (rows) =>
      (await this.resources.live(context, rows)).some((row) => row !== null),
    );
  }
}

/** Whether there is a row of something that lives. */
async function isAny<Row>(
  table: Table<Row>,
  { environment }: RequestContext,
  where: { readonly index: string; readonly values: readonly string[] },
  isAnyLiving: (rows: readonly StoredRow[]) => Promise<boolean>,
): Promise<boolean> {
  for (let after: string | undefined, limit = 1; ; limit = Math.min(4 * limit, MOST_AT_ONCE)) {
    const { rows, hasAfter } = await table.page(environment, { where, order: 'asc', limit, after });
    if (await isAnyLiving(rows)) return true;
    if (!hasAfter) return false;
    after = rows.at(-1)!.id;
  }
}
