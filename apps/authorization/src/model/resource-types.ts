import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { CreateResourceType, DeleteResourceType, GetResourceType, ListResourceTypes, UpdateResourceType } from '#libs/contracts/src/resource-types/operations';
import { ResourceType } from '#libs/contracts/src/resource-types/resource-type';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { narrow } from '#libs/event-sourcing/src/deciding/guards/narrowing';
import { Clock } from '#libs/platform/src/clock';
import type { DomainError } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { Positions } from '#libs/platform/src/positions';
import type { RequestContext } from '#libs/platform/src/request-context';
import { AccessIndex } from '../access/access-index.ts';
import { byId, resourceTypeBySlug, toPublicResourceType, type AuthorizationModel, type ModelDecision } from '../domain/authorization-model.decider.ts';
import {
  closeForDeletion,
  closeForUpdate,
  createResourceType,
  deleteResourceType,
  takesParentsAway,
  typeInUse,
  updateResourceType,
} from '../domain/resource-types.decider.ts';
import { Reopening } from '../guards/reopening.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import { listedBy, present } from '../views/listed.ts';
import { TypeUses } from './type-uses.ts';

/** What is taken from a type, or the type itself, unless it is used. */
interface NarrowedType {
  readonly close: (intent: Parameters<typeof closeForDeletion>[0]) => ModelDecision;
  readonly isUsed: () => Promise<boolean>;
  readonly refusal: () => DomainError;
  readonly change: (intent: string) => ModelDecision;
  /** Whether the change was recorded before. */
  readonly isDone: (model: AuthorizationModel) => boolean;
}

@Injectable()
export class ResourceTypes {
  constructor(
    private readonly models: AuthorizationModels,
    private readonly uses: TypeUses,
    private readonly access: AccessIndex,
    private readonly positions: Positions,
    private readonly reopening: Reopening,
    private readonly clock: Clock,
    private readonly deletions: Deletions,
  ) {}

  @Handles(CreateResourceType)
  async create(operation: CreateResourceType): Promise<ResourceType> {
    const { context } = operation;
    const id = `resource_type_${derivedId(context.commandId, 0)}`;
    const { resource_types } = await this.models.transact(context, createResourceType(operation));
    return toPublicResourceType(present(byId(resource_types, id), 'Resource type', id));
  }

  @Handles(ListResourceTypes)
  async list(query: ListResourceTypes): Promise<Serialised<List<ResourceType>>> {
    const { resource_types, ended_ids } = await this.models.of(query.context.environment);
    return listedBy(query, { idPrefix: 'resource_type', of: ResourceType, all: resource_types.map(toPublicResourceType), endedIds: ended_ids });
  }

  @Handles(GetResourceType)
  async get({ context, slug }: GetResourceType): Promise<ResourceType> {
    return this.models.found(context, (model) => toPublicResourceType(resourceTypeBySlug(model, slug)));
  }

  @Handles(UpdateResourceType)
  async update({ context, slug, name, description, parent_type_slugs }: UpdateResourceType): Promise<ResourceType> {
    const given = { name, description, parent_type_slugs };
    const { id, isNarrower } = await this.models.found(context, (model) => ({
      id: resourceTypeBySlug(model, slug).id,
      isNarrower: takesParentsAway(model, slug, given),
    }));
    if (!isNarrower) return toPublicResourceType(resourceTypeBySlug(await this.models.transact(context, updateResourceType(slug, given, null)), slug));
    const { state } = await this.narrowed(context, id, {
      close: (intent) => closeForUpdate(given, intent),
      isUsed: () => this.uses.byResources(context, id),
      refusal: () => typeInUse(`There are resources of the type '${slug}', so no parent type can be taken from it.`),
      change: (intent) => updateResourceType(slug, given, intent),
      isDone: (after) => !takesParentsAway(after, slug, given),
    });
    return toPublicResourceType(resourceTypeBySlug(state!, slug));
  }

  @Handles(DeleteResourceType)
  async delete({ context, slug }: DeleteResourceType): Promise<void> {
    await this.deletions.once({ context, what: 'Resource type', id: slug }, async () => {
      const { id } = await this.models.found(context, (model) => resourceTypeBySlug(model, slug));
      return this.narrowed(context, id, {
        close: closeForDeletion,
        isUsed: async () => (await this.uses.byOrganizationRoles(context, id)) || (await this.uses.byResources(context, id)),
        refusal: () => typeInUse(`There are roles or resources of the type '${slug}'.`),
        change: (intent) => deleteResourceType(id, intent),
        isDone: ({ resource_types }) => byId(resource_types, id) === undefined,
      });
    });
  }

  /** What may use a type, or hang it under another, lies in other streams: whoever takes something away says so first, looks, and only then does it. */
  private async narrowed(
    context: RequestContext,
    id: string,
    { close, isUsed, refusal, change, isDone }: NarrowedType,
  ): ReturnType<AuthorizationModels['decide']> {
    // Nobody is kept waiting for what can be told at once.
    if (await isUsed()) throw refusal();
    return narrow(context, this.clock, {
      isUsed,
      refusal,
      close: async (intent) => {
        const { state, position } = await this.models.decide(context, close({ id, intent, now: this.clock.now() }));
        return state?.closings?.[id]?.intent === intent ? position : null;
      },
      reached: async (position) => {
        await Promise.all([this.positions.reached(position, context.deadline), this.access.reached(position, context.deadline)]);
      },
      change: async (intent) => {
        const decided = await this.models.decide(context, change(intent));
        return decided.facts.length > 0 || isDone(decided.state!) ? decided : null;
      },
      reopen: (intent) => this.reopening.ofType(context.environment, id, intent),
    });
  }
}
