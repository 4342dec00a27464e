import type { AuthorizationResource } from '#libs/contracts/src/authorization-resources/authorization-resource';
import type { Fact } from '#libs/event-sourcing/src/deciding/decider';
import type { ClosingEvent } from '#libs/event-sourcing/src/deciding/guards/closings.decider';

// These types are the storage format: a stored name or shape is never edited.

export type ResourceEvent =
  | Fact<'resource.created', NewResource>
  | Fact<'resource.updated', ResourceChanges>
  | Fact<'resource.moved', { readonly id: string; readonly parent_resource_id: string }>
  | Fact<'resource.deleted', { readonly id: string }>
  /** Somebody is about to delete the resource unless something hangs on it. */
  | ClosingEvent<'resource'>;

/** `parent_resource_id` is never null: roots hang under the organization resource, which no event creates. */
interface NewResource extends Pick<AuthorizationResource, 'id' | 'organization_id' | 'external_id' | 'resource_type_slug' | 'name' | 'description'> {
  readonly resource_type_id: string;
  readonly parent_resource_id: string;
}

/** What changed, as it is from now on. */
interface ResourceChanges extends Partial<Pick<AuthorizationResource, 'name' | 'description'>> {
  readonly id: string;
}
