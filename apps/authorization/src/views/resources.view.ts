import { AuthorizationResource } from '#libs/contracts/src/authorization-resources/authorization-resource';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import type { Closing } from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { View } from '#libs/event-sourcing/src/views/view';
import type { Index } from '#libs/read-models/src/read-models';
import { organizationResourceId } from '../domain/resource-tree.ts';
import type { ResourceEvent } from '../domain/resource.events.ts';

/** A resource as it is stored: `resource_type_id` stays with us. */
export interface ResourceRow extends AuthorizationResource {
  /** Null for the organization resource. */
  readonly resource_type_id: string | null;
  /** Somebody is about to delete it unless something hangs on it. */
  readonly closing?: Closing;
}

const answerOf = serialiserOf(AuthorizationResource);
const BEHIND_ANSWER = ',"resource_type_id":';

/** A row as it is stored: its answer, and behind that what stays with us. */
export function storedText(row: ResourceRow): string {
  const closing = row.closing === undefined ? '' : `,"closing":${JSON.stringify(row.closing)}`;
  return `${answerOf(row).slice(0, -1)}${BEHIND_ANSWER}${JSON.stringify(row.resource_type_id)}${closing}}`;
}

/** The answer that the stored text of a row begins with. */
export function answerIn(text: string): string {
  return `${text.slice(0, text.lastIndexOf(BEHIND_ANSWER))}}`;
}

/** What is heard of organizations: each has a resource that stands for it. */
type OrganizationEvent =
  | { readonly type: 'organization.created'; readonly data: { readonly id: string; readonly name: string } }
  | { readonly type: 'organization.updated'; readonly data: { readonly name?: string } }
  | { readonly type: 'organization.deleted'; readonly data: { readonly id: string } };

type Heard = ResourceEvent | OrganizationEvent;

/** The value of an index that asks for several things at once; ids hold no space, and what a caller chose comes last. */
export function together(...parts: readonly string[]): string {
  return parts.join(' ');
}

/** A type in an index. The slug of a type that was deleted may be that of another by now. */
export function typeKey(id: string | null): string {
  return id ?? 'organization';
}

const indexes: readonly Index<ResourceRow>[] = [
  { name: 'organization', keys: ({ organization_id }) => [organization_id] },
  { name: 'type', keys: ({ resource_type_id }) => [typeKey(resource_type_id)] },
  { name: 'organization_type', keys: ({ organization_id, resource_type_id }) => [together(organization_id, typeKey(resource_type_id))] },
  { name: 'organization_external_id', keys: ({ organization_id, external_id }) => [together(organization_id, external_id)] },
  { name: 'type_external_id', keys: ({ resource_type_id, external_id }) => [together(typeKey(resource_type_id), external_id)] },
  {
    name: 'organization_type_external_id',
    keys: ({ organization_id, resource_type_id, external_id }) => [together(organization_id, typeKey(resource_type_id), external_id)],
  },
  { name: 'parent', keys: ({ parent_resource_id }) => (parent_resource_id === null ? [] : [parent_resource_id]) },
  {
    name: 'parent_type',
    keys: ({ parent_resource_id, resource_type_id }) => (parent_resource_id === null ? [] : [together(parent_resource_id, typeKey(resource_type_id))]),
  },
  {
    name: 'parent_external_id',
    keys: ({ parent_resource_id, external_id }) => (parent_resource_id === null ? [] : [together(parent_resource_id, external_id)]),
  },
];

/**
 * Every resource whose own deletion was not recorded yet, that of each organization among them; what lies under something deleted lives no more than that.
 * The rows of resources are written with their events; those of organizations follow the log of another service.
 */
export const resourcesView: View<ResourceRow> = {
  name: 'authorization_resources',
  version: 2,
  handles: [
    'resource.created',
    'resource.updated',
    'resource.moved',
    'resource.deleted',
    'resource.closing',
    'resource.reopened',
    'organization.created',
    'organization.updated',
    'organization.deleted',
  ] satisfies readonly Heard['type'][],
  indexes,
  serialise: storedText,
  idsOf: (event) => [isOfOrganization(event.type) ? organizationResourceId(event.meta.organization!) : (event.data as { readonly id: string }).id],
  evolve: (row, { type, data, meta }) => resourceAfter(row, { type, data } as Heard, new Date(meta.at).toISOString()),
};

function isOfOrganization(type: RecordedEvent['type']): boolean {
  return type.startsWith('organization.');
}

/** The row after an event; null where there is none any more. */
export function resourceAfter(row: ResourceRow | null, { type, data }: Heard, at: string): ResourceRow | null {
  switch (type) {
    case 'resource.created':
      return { object: 'authorization_resource', ...data, created_at: at, updated_at: at };
    case 'resource.updated':
    case 'resource.moved':
      return row === null ? null : { ...row, ...data, updated_at: at };
    case 'resource.closing':
      return row === null ? null : { ...row, closing: { intent: data.intent, at } };
    case 'resource.reopened':
      return row?.closing?.intent === data.intent ? opened(row) : row;
    case 'organization.created':
      return {
        object: 'authorization_resource',
        id: organizationResourceId(data.id),
        external_id: data.id,
        resource_type_id: null,
        resource_type_slug: 'organization',
        organization_id: data.id,
        parent_resource_id: null,
        name: data.name,
        description: null,
        created_at: at,
        updated_at: at,
      };
    case 'organization.updated':
      return row === null || data.name === undefined || data.name === row.name ? row : { ...row, name: data.name, updated_at: at };
    case 'resource.deleted':
    case 'organization.deleted':
      return null;
  }
}

function opened({ closing: _, ...row }: ResourceRow): ResourceRow {
  return row;
}
