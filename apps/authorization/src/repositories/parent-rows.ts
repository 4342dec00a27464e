import { Injectable } from '@nestjs/common';
import { seedsOf } from '#libs/contracts/src/roles/seeds';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { contentOf, ReadModels, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import type { AuthorizationModel, StoredResourceType } from '../domain/authorization-model.decider.ts';
import type { OrganizationRolesState } from '../domain/organization-roles.decider.ts';
import { organizationResourceId } from '../domain/resource-tree.ts';
import { groupsView, membershipsView, type StoredGroup, type StoredMembership } from '../views/access.views.ts';
import { authorizationModelsView } from '../views/authorization-models.view.ts';
import { organizationRolesView } from '../views/organization-roles.view.ts';
import { resourcesView, type ResourceRow } from '../views/resources.view.ts';

/** Something that others hang on, and whether it is there and allows it. */
interface Parent {
  readonly id: string;
  readonly allows: boolean;
}

/** Parsed rows that are kept: of models, which may be large and seldom change. */
const KEPT = 100;

/** What others hang on, as rows have it: for reactions, which have waited for them. No organization is loaded into memory for that. */
@Injectable()
export class ParentRows {
  private readonly models: Table<AuthorizationModel>;
  private readonly organizationRoles: Table<OrganizationRolesState>;
  private readonly resources: Table<ResourceRow>;
  private readonly memberships: Table<StoredMembership>;
  private readonly groups: Table<StoredGroup>;
  private readonly parsed = new Map<string, { readonly position: string; readonly value: unknown }>();

  constructor(readModels: ReadModels) {
    this.models = readModels.table(tableOf(authorizationModelsView));
    this.organizationRoles = readModels.table(tableOf(organizationRolesView));
    this.resources = readModels.table(tableOf(resourcesView));
    this.memberships = readModels.table(tableOf(membershipsView));
    this.groups = readModels.table(tableOf(groupsView));
  }

  /** A role of the environment or of the organization. */
  async role(environment: string, organizationId: string, id: string): Promise<Parent> {
    const [own, model] = await Promise.all([this.organizationRoles.get(environment, organizationId), this.models.get(environment, environment)]);
    const shared = model === null ? seedsOf(environment).roles : this.valueOf<AuthorizationModel>(environment, model).roles;
    const custom = own === null ? [] : this.valueOf<OrganizationRolesState>(environment, own).roles;
    return { id, allows: [...custom, ...shared].some((role) => role.id === id) };
  }

  async resource(environment: string, id: string): Promise<Parent> {
    return { id, allows: (await this.resources.get(environment, id)) !== null };
  }

  /** By the resource that stands for it. */
  async organization(environment: string, id: string): Promise<Parent> {
    return { id, allows: (await this.resources.get(environment, organizationResourceId(id))) !== null };
  }

  async membership(environment: string, id: string): Promise<Parent> {
    return { id, allows: (await this.memberships.get(environment, id)) !== null };
  }

  async group(environment: string, id: string): Promise<Parent> {
    return { id, allows: (await this.groups.get(environment, id)) !== null };
  }

  async type(environment: string, id: string): Promise<Parent> {
    return { id, allows: (await this.typeWithId(environment, id)) !== null };
  }

  /** The type of a resource that hangs under another: whether it may. What hangs under something that is gone is dead with it. */
  async place(environment: string, id: string, parentId: string): Promise<readonly Parent[]> {
    const [row, above] = await Promise.all([this.resources.get(environment, id), this.resources.get(environment, parentId)]);
    if (row === null) return [];
    const { resource_type_id } = contentOf(row);
    const type = await this.typeWithId(environment, resource_type_id!);
    const parentType = above === null ? undefined : contentOf(above).resource_type_id;
    const allows = type !== null && (parentType === undefined || type.parents.some((parent) => parent.id === parentType));
    return [{ id: resource_type_id!, allows }];
  }

  private async typeWithId(environment: string, id: string): Promise<StoredResourceType | null> {
    const row = await this.models.get(environment, environment);
    return (row === null ? [] : this.valueOf<AuthorizationModel>(environment, row).resource_types).find((type) => type.id === id) ?? null;
  }

  private valueOf<Value>(environment: string, { id, position, text }: StoredRow): Value {
    const key = `${environment} ${id}`;
    const kept = this.parsed.get(key);
    if (kept?.position === position) return kept.value as Value;
    const value = JSON.parse(text) as Value;
    this.parsed.delete(key);
    this.parsed.set(key, { position, value });
    if (this.parsed.size > KEPT) this.parsed.delete(this.parsed.keys().next().value!);
    return value;
  }
}
