import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import type { AssignedResource, AssignedRole } from './role-assignment.decider.ts';

import type { GroupEvent } from '#apps/identity/src/domain/group.decider';
import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import type { AuthorizationModelEvent } from './authorization-model.decider.ts';
import type { OrganizationRolesEvent } from './organization-roles.decider.ts';
import type { ResourceEvent } from './resource.events.ts';

// These types are the storage format: a stored name or shape is never edited.

export type GroupRoleAssignmentEvent =
  Fact<'group_role_assignment.created', NewGroupRoleAssignment> | Fact<'group_role_assignment.deleted', { readonly id: string }>;

/** Ids decide what it means; the texts beside them never change. */
export interface NewGroupRoleAssignment {
  readonly id: string;
  readonly organization_id: string;
  readonly group_id: string;
  readonly role: AssignedRole;
  readonly resource: AssignedResource;
}

/** A role that a group has on a resource. */
export interface LivingGroupRoleAssignment extends NewGroupRoleAssignment {
  readonly object: 'group_role_assignment';
  readonly created_at: string;
}

/** Says which of the assignments of this role on this resource was the last. */
interface DeletedGroupRoleAssignment {
  readonly object: 'deleted_group_role_assignment';
  readonly id: string;
  readonly organization_id: string;
}

export type GroupRoleAssignmentState = LivingGroupRoleAssignment | DeletedGroupRoleAssignment | null;

function evolve(state: GroupRoleAssignmentState, event: GroupRoleAssignmentEvent & { readonly at: string }): GroupRoleAssignmentState {
  switch (event.type) {
    case 'group_role_assignment.created':
      return { object: 'group_role_assignment', ...event.data, created_at: event.at };
    case 'group_role_assignment.deleted':
      return state?.id === event.data.id ? { object: 'deleted_group_role_assignment', id: state.id, organization_id: state.organization_id } : state;
  }
}

/** One stream for each role that a group may have on a resource: of two who give it at once, one does. */
export const groupRoleAssignmentDecider: Decider<GroupRoleAssignmentState, GroupRoleAssignmentEvent> = {
  category: 'group_role_assignment',
  foldVersion: 1,
  initial: null,
  sealed: { 'group_role_assignment.created': null, 'group_role_assignment.deleted': null },
  evolve,
  organization: (state) => state?.organization_id,
  toPublicEvent: () => null,
  hangsOn: {
    reaction: 'delete-assignments-of-what-is-gone',
    parents: [
      { ends: 'group.deleted' satisfies GroupEvent['type'], index: 'group' },
      { ends: 'role.deleted' satisfies AuthorizationModelEvent['type'], index: 'role' },
      { ends: 'organization_role.deleted' satisfies OrganizationRolesEvent['type'], index: 'role' },
      { ends: 'resource.deleted' satisfies ResourceEvent['type'], index: 'resource' },
      { ends: 'organization.deleted' satisfies OrganizationEvent['type'], index: 'organization' },
    ],
    keyOf: ({ group_id, role, resource }: LivingGroupRoleAssignment) => groupRoleAssignmentKey(group_id, role.id, resource.id),
    end: removeGroupRoleAssignment,
  },
};

type Decide = Decision<GroupRoleAssignmentState, GroupRoleAssignmentEvent>;

export function groupRoleAssignmentKey(groupId: string, roleId: string, resourceId: string): string {
  return `${groupId}.${roleId}.${resourceId}`;
}

/** Of what one command asks for, `ordinal` counts: each has an id of its own. */
export function assignGroupRole(given: Omit<NewGroupRoleAssignment, 'id'>): Decide {
  return (state, context) => {
    const id = context.id('gra');
    if (state?.object === 'group_role_assignment') {
      if (state.id !== id) throw duplicate(given);
      return [];
    }
    // A repeated command meets what it made; once that was deleted, it stays deleted.
    if (state?.id === id) throw notFound('Group role assignment', id);
    return [{ type: 'group_role_assignment.created', data: { id, ...given } }];
  };
}

/** As one of the set that the group is to have: what is there stays. `ordinal`: its place in what the command asks for. */
export function keepGroupRole(given: Omit<NewGroupRoleAssignment, 'id'>, ordinal: number): Decide {
  return (state, context) => {
    if (state?.object === 'group_role_assignment') return [];
    const id = context.id('gra', ordinal);
    // Deleted by somebody else since this very command made it.
    if (state?.id === id) return [];
    return [{ type: 'group_role_assignment.created', data: { id, ...given } }];
  };
}

/** Whichever assignment of the role there is. */
export function removeGroupRole(): Decide {
  return (state) => (state?.object === 'group_role_assignment' ? [{ type: 'group_role_assignment.deleted', data: { id: state.id } }] : []);
}

/** Nothing happens where another was made since. */
export function removeGroupRoleAssignment(id: string): Decide {
  return (state) => (state?.object === 'group_role_assignment' && state.id === id ? [{ type: 'group_role_assignment.deleted', data: { id } }] : []);
}

/** @throws DomainError `entity_not_found` where it is no more, or another by now */
export function requireGroupRoleAssignment(state: GroupRoleAssignmentState, id: string): LivingGroupRoleAssignment {
  if (state?.object !== 'group_role_assignment' || state.id !== id) throw notFound('Group role assignment', id);
  return state;
}

function duplicate({ role, resource }: Omit<NewGroupRoleAssignment, 'id'>): DomainError {
  const message = `The group already has the role '${role.slug}' on this resource.`;
  return new DomainError('conflict', 'duplicate_group_role_assignment', message, {
    errors: [{ code: 'duplicate_group_role_assignment', field: 'role_slug', message }],
    entity_id: resource.id,
  });
}
