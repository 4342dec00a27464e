import { Injectable } from '@nestjs/common';
import type { AuthorizationResource } from '#libs/contracts/src/authorization-resources/authorization-resource';
import {
  CreateAuthorizationResource,
  DeleteAuthorizationResource,
  DeleteAuthorizationResourceByExternalId,
  GetAuthorizationResource,
  GetAuthorizationResourceByExternalId,
  ListAuthorizationResources,
  UpdateAuthorizationResource,
  UpdateAuthorizationResourceByExternalId,
} from '#libs/contracts/src/authorization-resources/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import { Deletions } from '#libs/event-sourcing/src/deletions';
import { Clock } from '#libs/platform/src/clock';
import { AuthorizationSettings } from '#libs/platform/src/config/settings';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import { derivedId, timeOfId } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { pageOfShown } from '#libs/read-models/src/pages';
import { ReadModels } from '#libs/read-models/src/read-models';
import { AccessIndex } from '../access/access-index.ts';
import type { OrganizationIndex } from '../access/organization-index.ts';
import { authorizationDeletionsView } from '../authorization-deletions.view.ts';
import { createResource, deleteResource, nodeOf, updateResource, type ResourceReference, type TypeOfResource } from './resource.decider.ts';
import { filterOf } from './resource-filter.ts';
import { parentNamed, typeNamed, type GivenParent, type NamedParent } from './parent-reference.ts';
import { ResourceRows, shown } from './resource-rows.ts';
import { ResourceTrees } from './resource-trees.ts';
import type { ResourceRow } from './resources.view.ts';

interface GivenChange extends GivenParent {
  readonly context: RequestContext;
  readonly name?: string;
  readonly description?: string | null;
}

/** A command that was given this short a time ago has not been carried out and what it made deleted. */
const UNREPEATED = 200;

/** How the resource that a request is about is found in the index of its organization. */
type Find = (organization: OrganizationIndex) => ResourceReference;

@Injectable()
export class Resources {
  private readonly crowded;
  private readonly deletions: Deletions;

  constructor(
    private readonly access: AccessIndex,
    private readonly trees: ResourceTrees,
    private readonly rows: ResourceRows,
    private readonly settings: AuthorizationSettings,
    private readonly clock: Clock,
    readModels: ReadModels,
    metrics: Metrics,
  ) {
    this.deletions = new Deletions(readModels, authorizationDeletionsView);
    this.crowded = metrics.counter({
      name: 'resources_over_limit_total',
      help: 'Resources that were created although their organization had RESOURCES_PER_TYPE of their type.',
    });
  }

  @Handles(CreateAuthorizationResource)
  async create(operation: CreateAuthorizationResource): Promise<AuthorizationResource> {
    const { context, organization_id, resource_type_slug } = operation;
    const parent = parentNamed(operation);
    await this.refuseRevival(context);
    const known = new TypeWatch();
    const { facts, rows } = await this.trees.transact(context, {
      organizationId: organization_id,
      adds: true,
      decide: (organization) => {
        const type = known.asBefore(typeNamed(organization.model, resource_type_slug));
        return createResource({ ...operation, type, parent: this.referenceOf(organization, parent) });
      },
    });
    const id = createdBy(context);
    if (facts.length > 0) await this.settle(operation, id);
    return this.present(context, rows.get(id), id);
  }

  @Handles(ListAuthorizationResources)
  async list(query: ListAuthorizationResources): Promise<Serialised<List<AuthorizationResource>>> {
    const { context } = query;
    const { where, isMeant } = await filterOf(query, await this.access.modelOf(context), this.rows);
    return pageOfShown(this.rows.table, query, {
      idPrefix: 'authz_resource',
      where,
      textsOf: async (stored) => (await this.rows.living(context, stored)).map((row) => (row === null || !isMeant(row) ? null : shown(row))),
    });
  }

  @Handles(GetAuthorizationResource)
  async get({ context, resource_id }: GetAuthorizationResource): Promise<Serialised<AuthorizationResource>> {
    const row = await this.rows.byId(context, resource_id);
    if (row === null) throw notFound('Resource', resource_id);
    return new Serialised(shown(row));
  }

  @Handles(GetAuthorizationResourceByExternalId)
  async getByExternalId(query: GetAuthorizationResourceByExternalId): Promise<Serialised<AuthorizationResource>> {
    const { context, organization_id, resource_type_slug, external_id } = query;
    await this.access.requireOrganization(context, organization_id);
    const type = typeNamed(await this.access.modelOf(context), resource_type_slug);
    const row = await this.rows.byExternalId(context, organization_id, type.id, external_id);
    if (row === null) throw notFound('Resource', external_id);
    return new Serialised(shown(row));
  }

  @Handles(UpdateAuthorizationResource)
  async update(operation: UpdateAuthorizationResource): Promise<AuthorizationResource> {
    const { context, resource_id } = operation;
    const { id } = await this.access.ofResource(context, resource_id);
    return this.change(operation, id, () => ({ id: resource_id }));
  }

  @Handles(UpdateAuthorizationResourceByExternalId)
  async updateByExternalId(operation: UpdateAuthorizationResourceByExternalId): Promise<AuthorizationResource> {
    const { organization_id, resource_type_slug, external_id } = operation;
    return this.change(operation, organization_id, ({ model }) => ({ type: typeNamed(model, resource_type_slug), externalId: external_id }));
  }

  @Handles(DeleteAuthorizationResource)
  async delete({ context, resource_id, cascade_delete }: DeleteAuthorizationResource): Promise<void> {
    await this.deletions.once(context, async () => {
      const { id } = await this.access.ofResource(context, resource_id);
      await this.remove(context, id, () => ({ id: resource_id }), cascade_delete);
    });
  }

  @Handles(DeleteAuthorizationResourceByExternalId)
  async deleteByExternalId(operation: DeleteAuthorizationResourceByExternalId): Promise<void> {
    const { context, organization_id, resource_type_slug, external_id, cascade_delete } = operation;
    const find: Find = ({ model }) => ({ type: typeNamed(model, resource_type_slug), externalId: external_id });
    await this.deletions.once(context, () => this.remove(context, organization_id, find, cascade_delete));
  }

  private async change(given: GivenChange, organizationId: string, find: Find): Promise<AuthorizationResource> {
    const { context } = given;
    const parent = parentNamed(given);
    const known = new TypeWatch();
    let id = '';
    const { rows } = await this.trees
      .transact(context, {
        organizationId,
        changes: (organization) => {
          const node = nodeOf(organization.tree, find(organization));
          id = organization.tree.idOf(node);
          return node;
        },
        decide: (organization, row) => {
          const { tree, model } = organization;
          const node = tree.nodeById(id);
          const type = node === undefined ? null : model.resourceTypeById(tree.typeIdOf(node));
          const reference = { id };
          return updateResource(reference, { ...given, parent: this.referenceOf(organization, parent) }, type && known.asBefore(type), row!);
        },
      })
      .catch((error: unknown) => this.explained(error, context, organizationId, parent));
    return this.present(context, rows.get(id), id);
  }

  private async remove(context: RequestContext, organizationId: string, find: Find, isCascade: boolean): Promise<void> {
    await this.trees.transact(context, {
      organizationId,
      decide: (organization) => {
        const reference = find(organization);
        return deleteResource(reference, isCascade, organization.hasAssignmentsOn(nodeOf(organization.tree, reference)));
      },
    });
  }

  /** @throws DomainError `entity_not_found` for a type that does not exist */
  private referenceOf({ model }: OrganizationIndex, parent: NamedParent | null): ResourceReference | null {
    if (parent === null || 'id' in parent) return parent;
    return { type: typeNamed(model, parent.typeSlug), externalId: parent.externalId };
  }

  /** What is not in the tree may be of another organization: who moves a resource there is told that it cannot be done. */
  private async explained(error: unknown, context: RequestContext, organizationId: string, parent: NamedParent | null): Promise<never> {
    if (parent !== null && 'id' in parent && error instanceof DomainError && error.details.entity_id === parent.id) {
      const row = await this.rows.byId(context, parent.id);
      if (row !== null && row.organization_id !== organizationId)
        throw new DomainError('invalid', 'bad_request', 'The parent belongs to another organization than the resource.');
    }
    throw error;
  }

  /**
   * A repeated command meets what it made; once that was deleted, which the tree does not remember, it stays deleted.
   * @throws DomainError `entity_not_found`
   */
  private async refuseRevival(context: RequestContext): Promise<void> {
    if (this.clock.now() - timeOfId(context.commandId) < UNREPEATED) return;
    const id = createdBy(context);
    if ((await this.rows.table.hasHeld(context.environment, id)) && (await this.rows.byId(context, id)) === null) throw notFound('Resource', id);
  }

  /**
   * What was recorded although its organization or its type had just been deleted is ended at once: nobody else would come across it.
   * @throws DomainError `entity_not_found`
   */
  private async settle({ context, organization_id, resource_type_slug }: CreateAuthorizationResource, id: string): Promise<void> {
    try {
      const { tree, model } = await this.access.ofOrganization(context, organization_id);
      const type = typeNamed(model, resource_type_slug);
      const [count, limit] = [tree.countOf(type.id), this.settings.RESOURCES_PER_TYPE];
      if (count <= limit) return;
      this.crowded.inc();
      context.receipt.warning = `authorization_resource_limit_exceeded; ${count} resources of the type ${type.slug}, which should be at most ${limit}`;
    } catch (error) {
      // It is recorded, whatever else cannot be asked for in time.
      if (!(error instanceof DomainError) || error.kind === 'unavailable') return;
      await this.trees.record(systemContext(context.environment, this.clock.now()), organization_id, [{ type: 'resource.deleted', data: { id } }]);
      throw error;
    }
  }

  /** The row that a command left; where it left none, since it was carried out before, the row as it is now. */
  private async present(context: RequestContext, row: ResourceRow | null | undefined, id: string): Promise<AuthorizationResource> {
    const found = row ?? (await this.rows.byId(context, id));
    if (found === null) throw notFound('Resource', id);
    return found;
  }
}

/** The id of what a command creates. */
function createdBy({ commandId }: RequestContext): string {
  return `authz_resource_${derivedId(commandId, 0)}`;
}

/** Sees to it that a command that is tried again is decided by the same type. */
class TypeWatch {
  private before: TypeOfResource | null = null;

  /** @throws DomainError `resource_type_update_in_progress` */
  asBefore(type: TypeOfResource): TypeOfResource {
    const { before } = this;
    this.before = type;
    if (before !== null && namesOf(before) !== namesOf(type))
      throw new DomainError('conflict', 'resource_type_update_in_progress', `The type '${type.slug}' was changed meanwhile; nothing happened, try again.`);
    return type;
  }
}

function namesOf({ id, parents }: TypeOfResource): string {
  return [id, ...parents.map((parent) => parent.id)].join(' ');
}
