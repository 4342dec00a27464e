import { Injectable } from '@nestjs/common';
import { tableOf } from '#libs/event-sourcing/src/view';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { resourcesView, typeKey, type ResourceRow } from '../resources/resources.view.ts';
import type { OrganizationRolesState } from './organization-roles.decider.ts';
import { organizationRolesView } from './organization-roles.view.ts';

/** Who uses a type beside the model itself. Best effort: whoever begins to at the same moment has something of a type that is dead, and that counts for nothing. */
@Injectable()
export class TypeUses {
  private readonly organizationRoles: Table<OrganizationRolesState>;
  private readonly resources: Table<ResourceRow>;

  constructor(readModels: ReadModels) {
    this.organizationRoles = readModels.table(tableOf(organizationRolesView));
    this.resources = readModels.table(tableOf(resourcesView));
  }

  async byOrganizationRoles(environment: string, typeId: string): Promise<boolean> {
    return isAnyOf(this.organizationRoles, environment, { index: 'resource_type', values: [typeId] });
  }

  async byResources(environment: string, typeId: string): Promise<boolean> {
    return isAnyOf(this.resources, environment, { index: 'type', values: [typeKey(typeId)] });
  }
}

async function isAnyOf<Row>(table: Table<Row>, environment: string, where: { readonly index: string; readonly values: readonly string[] }): Promise<boolean> {
  const { rows } = await table.page(environment, { where, order: 'asc', limit: 1 });
  return rows.length > 0;
}
