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
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { narrow } from '#libs/event-sourcing/src/deciding/guards/narrowing';
import { mayHang, refuseClosed } from '#libs/event-sourcing/src/deciding/guards/parent-status';
import { EventStore, type Position } from '#libs/event-sourcing/src/log/event-store';
import { Clock } from '#libs/platform/src/clock';
import { AuthorizationSettings } from '#libs/platform/src/config/settings';
import { DomainError, isNotFound, notFound } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { Metrics } from '#libs/platform/src/metrics';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { filteredPage } from '#libs/read-models/src/pages';
import { AccessIndex } from '../access/access-index.ts';
import type { OrganizationIndex } from '../access/organization-index.ts';
import {
  closeResource,
  createResource,
  deleteResource,
  deleteUnusedResource,
  hasDependents,
  nodeOf,
  updateResource,
  type ResourceReference,
  type TypeOfResource,
} from '../domain/resource.decider.ts';
import type { ResourceEvent } from '../domain/resource.events.ts';
import { Reopening } from '../guards/reopening.ts';
import { typeStatus } from '../guards/statuses.ts';
import { undo } from '../guards/undo-resource.ts';
import { ResourceRows, shown } from '../repositories/resource-rows.ts';
import { ResourceTrees, type Carried, type TreeCommand } from '../repositories/resource-trees.ts';
import type { ResourceRow } from '../views/resources.view.ts';
import { parentNamed, typeNamed, type GivenParent, type NamedParent } from './parent-reference.ts';
import { placeStatuses, type Placed } from './place-statuses.ts';
import { filterOf } from './resource-filter.ts';

interface GivenChange extends GivenParent {
  readonly context: RequestContext;
  readonly name?: string;
  readonly description?: string | null;
}

/** What was put somewhere, by which command and where that was recorded. */
interface Recorded {
  readonly resource_type_slug: string;
  readonly commandId: string;
  readonly position: Position;
}

/** How the resource that a request is about is found in the index of its organization. */
type Find = (organization: OrganizationIndex) => ResourceReference;

@Injectable()
export class Resources {
  private readonly crowded;

  constructor(
    private readonly access: AccessIndex,
    private readonly trees: ResourceTrees,
    private readonly rows: ResourceRows,
    private readonly reopening: Reopening,
    private readonly events: EventStore,
    private readonly settings: AuthorizationSettings,
    private readonly clock: Clock,
    private readonly deletions: Deletions,
    metrics: Metrics,
  ) {
    this.crowded = metrics.counter({
      name: 'resources_over_limit_total',
      help: 'Resources that were created although their organization had RESOURCES_PER_TYPE of their type.',
    });
  }

  @Handles(CreateAuthorizationResource)
  async create(operation: CreateAuthorizationResource): Promise<AuthorizationResource> {
    const { context, organization_id, resource_type_slug } = operation;
    const parent = parentNamed(operation);
    const id = createdBy(context);
    const known = new TypeWatch();
    const { facts, position, rows } = await this.reopening.past(context, () =>
      this.trees.transact(context, {
        organizationId: organization_id,
        adds: true,
        decide: (organization) => {
          const type = known.asBefore(typeNamed(organization.model, resource_type_slug));
          if (organization.tree.nodeById(id) === undefined) this.refuseClosed(organization, type);
          return createResource({ ...operation, type, parent: this.referenceOf(organization, parent) });
        },
      }),
    );
    const added = facts.length > 0 ? { data: facts[0]!.data, position } : await this.trees.recordOf(context, organization_id, id, 'resource.created');
    if (added !== null) {
      const count = await this.settle(context, organization_id, {
        ...(added.data as Placed),
        resource_type_slug,
        commandId: context.commandId,
        position: added.position,
      });
      if (facts.length > 0) this.warn(context, resource_type_slug, count);
    }
    return this.present(context, rows.get(id), id);
  }

  @Handles(ListAuthorizationResources)
  async list(query: ListAuthorizationResources): Promise<Serialised<List<AuthorizationResource>>> {
    const { context } = query;
    const { where, isMeant } = await filterOf(query, await this.access.modelOf(context), this.rows);
    return filteredPage(this.rows.table, query, {
      idPrefix: 'authz_resource',
      where,
      textsOf: async (stored) => (await this.rows.live(context, stored)).map((row) => (row === null || !isMeant(row) ? null : shown(row))),
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
    await this.deletions.once({ context, what: 'Resource', id: resource_id }, async () => {
      const { id } = await this.access.ofResource(context, resource_id);
      return this.remove(context, id, () => ({ id: resource_id }), cascade_delete);
    });
  }

  @Handles(DeleteAuthorizationResourceByExternalId)
  async deleteByExternalId(operation: DeleteAuthorizationResourceByExternalId): Promise<void> {
    const { context, organization_id, resource_type_slug, external_id, cascade_delete } = operation;
    const find: Find = ({ model }) => ({ type: typeNamed(model, resource_type_slug), externalId: external_id });
    await this.deletions.once({ context, what: 'Resource', id: external_id }, () => this.remove(context, organization_id, find, cascade_delete));
  }

  private async change(given: GivenChange, organizationId: string, find: Find): Promise<AuthorizationResource> {
    const { context } = given;
    const parent = parentNamed(given);
    const known = new TypeWatch();
    let id = '';
    const { facts, position, rows, isRepeat } = await this.reopening
      .past(context, () =>
        this.trees.transact(context, {
          organizationId,
          changes: (organization) => {
            const node = nodeOf(organization.tree, find(organization));
            id = organization.tree.idOf(node);
            return node;
          },
          decide: (organization, row) => (tree, decision) => {
            const node = tree.nodeById(id);
            const type = node === undefined ? null : organization.model.resourceTypeById(tree.typeIdOf(node));
            const reference = { id };
            const change = { ...given, parent: this.referenceOf(organization, parent) };
            const changed = updateResource(reference, change, type && known.asBefore(type), row!)(tree, decision);
            if (type !== null && changed.some(isMove)) this.refuseClosed(organization, type);
            return changed;
          },
        }),
      )
      .catch((error: unknown) => this.explained(error, context, organizationId, parent));
    const move = facts.find(isMove);
    // Whoever carried it out before may not have looked yet, or have taken it back.
    const moved = isRepeat ? await this.trees.recordOf(context, organizationId, id, 'resource.moved') : move && { data: move.data, position };
    if (moved != null) {
      const { resource_type_id, resource_type_slug } = await this.present(context, rows.get(id), id);
      await this.settle(context, organizationId, {
        ...(moved.data as Move['data']),
        resource_type_id: resource_type_id!,
        resource_type_slug,
        commandId: context.commandId,
        position: moved.position,
      });
    }
    return this.present(context, rows.get(id), id);
  }

  private async remove(context: RequestContext, organizationId: string, find: Find, isCascade: boolean): Promise<Carried> {
    if (isCascade) return this.trees.transact(context, { organizationId, decide: (organization) => deleteResource(find(organization)) });
    // What is assigned on it lies in other streams: whoever deletes it says so first, looks, and only then does it.
    let id = '';
    const isUsed = async (): Promise<boolean> => {
      const organization = await this.access.ofOrganization(context, organizationId);
      const node = id === '' ? nodeOf(organization.tree, find(organization)) : organization.tree.nodeById(id);
      // What becomes of the organization resource is decided below.
      return node !== undefined && node !== organization.tree.root && organization.hasAssignmentsOn(node);
    };
    if (await isUsed()) throw hasDependents();
    const closingIn = ({ closings }: OrganizationIndex, intent: string) => ({ intent, open: closings.of(id).closing });
    return narrow(context, this.clock, {
      isUsed,
      refusal: hasDependents,
      close: async (intent) => {
        const { position } = await this.trees.transact(context, {
          organizationId,
          changes: (organization) => {
            const node = nodeOf(organization.tree, find(organization));
            id = organization.tree.idOf(node);
            return node;
          },
          decide: (organization) => closeResource({ id }, closingIn(organization, intent), this.clock.now()),
        });
        const { closings } = await this.access.ofOrganization(context, organizationId);
        return closings.of(id).closing?.intent === intent ? position : null;
      },
      reached: (position) => this.access.reached(position, context.deadline),
      change: async (intent) => {
        const decide: TreeCommand['decide'] = (organization) => deleteUnusedResource(id, closingIn(organization, intent));
        const removed = await this.trees.transact(context, { organizationId, decide });
        if (removed.facts.length > 0) return removed;
        const { tree } = await this.access.ofOrganization(context, organizationId);
        return tree.nodeById(id) === undefined ? removed : null;
      },
      reopen: (intent) => this.reopening.ofResource(context.environment, organizationId, id, intent),
    });
  }

  /** A type that somebody is about to narrow takes in nothing. @throws DomainError `resource_type_update_in_progress` */
  private refuseClosed(organization: OrganizationIndex, { id, slug }: TypeOfResource): void {
    if (id !== null) refuseClosed([typeStatus(organization, id, true)], this.clock.now(), () => typeChanged(slug));
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
   * How many there are of a type now. What was recorded although its organization was gone, or its type, or what that may hang under, was being taken away is taken back.
   * @throws DomainError `entity_not_found`, `resource_type_update_in_progress`; `service_unavailable` where it cannot be looked at in time
   */
  private async settle(context: RequestContext, organizationId: string, placed: Placed & Recorded): Promise<number> {
    const { id, position, commandId } = placed;
    const own = systemContext(context.environment, this.clock.now());
    const index = await this.access.ofOrganization(context, organizationId).catch(async (error: unknown) => {
      // Nothing else would come across what was made in it.
      if (isNotFound(error)) await this.trees.amend(own, organizationId, id, undo(commandId));
      throw error;
    });
    const [count, statuses] = [index.tree.countOf(placed.resource_type_id), placeStatuses(index, placed)];
    if (await mayHang(this.events, statuses, position)) return count;
    await this.trees.amend(own, organizationId, id, undo(commandId));
    throw typeChanged(placed.resource_type_slug);
  }

  private warn({ receipt }: RequestContext, typeSlug: string, count: number): void {
    const limit = this.settings.RESOURCES_PER_TYPE;
    if (count <= limit) return;
    this.crowded.inc();
    receipt.warning = `authorization_resource_limit_exceeded; ${count} resources of the type ${typeSlug}, which should be at most ${limit}`;
  }

  /** The row that a command left; where it left none, since it was carried out before, the row as it is now. */
  private async present(context: RequestContext, row: ResourceRow | null | undefined, id: string): Promise<ResourceRow> {
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
    if (before !== null && namesOf(before) !== namesOf(type)) throw typeChanged(type.slug);
    return type;
  }
}

type Move = Extract<ResourceEvent, { readonly type: 'resource.moved' }>;

function isMove(fact: ResourceEvent): fact is Move {
  return fact.type === 'resource.moved';
}

function typeChanged(type: string): DomainError {
  return new DomainError('conflict', 'resource_type_update_in_progress', `The type '${type}' was changed meanwhile; nothing happened, try again.`);
}

function namesOf({ id, parents }: TypeOfResource): string {
  return [id, ...parents.map((parent) => parent.id)].join(' ');
}
