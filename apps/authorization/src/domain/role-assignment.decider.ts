import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { notFound } from '#libs/platform/src/domain-error';

import type { MembershipEvent } from '#apps/identity/src/domain/membership.decider';
import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import type { AuthorizationModelEvent } from './authorization-model.decider.ts';
import type { OrganizationRolesEvent } from './organization-roles.decider.ts';
import type { ResourceEvent } from './resource.events.ts';

// These types are the storage format: a stored name or shape is never edited.

export type RoleAssignmentEvent = Fact<'role_assignment.created', NewRoleAssignment> | Fact<'role_assignment.deleted', { readonly id: string }>;

/** Ids decide what it means; the texts beside them never change. */
export interface NewRoleAssignment {
  readonly id: string;
  readonly organization_id: string;
  readonly organization_membership_id: string;
  readonly role: AssignedRole;
  readonly resource: AssignedResource;
}

export interface AssignedRole {
  readonly id: string;
  readonly slug: string;
}

export interface AssignedResource {
  readonly id: string;
  readonly external_id: string;
  readonly resource_type_slug: string;
}

/** A role that a membership has on a resource. */
export interface LivingRoleAssignment extends NewRoleAssignment {
  readonly object: 'role_assignment';
  readonly created_at: string;
}

/** Says which of the assignments of this role on this resource was the last. */
interface DeletedRoleAssignment {
  readonly object: 'deleted_role_assignment';
  readonly id: string;
  readonly organization_id: string;
}

export type RoleAssignmentState = LivingRoleAssignment | DeletedRoleAssignment | null;

function evolve(state: RoleAssignmentState, event: RoleAssignmentEvent & { readonly at: string }): RoleAssignmentState {
  switch (event.type) {
    case 'role_assignment.created':
      return { object: 'role_assignment', ...event.data, created_at: event.at };
    case 'role_assignment.deleted':
      return state?.id === event.data.id ? { object: 'deleted_role_assignment', id: state.id, organization_id: state.organization_id } : state;
  }
}

/** One stream for each role that a membership may have on a resource: of two who give it at once, one does. */
export const roleAssignmentDecider: Decider<RoleAssignmentState, RoleAssignmentEvent> = {
  category: 'role_assignment',
  foldVersion: 1,
  initial: null,
  sealed: { 'role_assignment.created': null, 'role_assignment.deleted': null },
  evolve,
  organization: (state) => state?.organization_id,
  toPublicEvent: () => null,
  hangsOn: {
    reaction: 'delete-assignments-of-what-is-gone',
    parents: [
      { ends: 'organization_membership.deleted' satisfies MembershipEvent['type'], index: 'membership' },
      { ends: 'role.deleted' satisfies AuthorizationModelEvent['type'], index: 'role' },
      { ends: 'organization_role.deleted' satisfies OrganizationRolesEvent['type'], index: 'role' },
      { ends: 'resource.deleted' satisfies ResourceEvent['type'], index: 'resource' },
      { ends: 'organization.deleted' satisfies OrganizationEvent['type'], index: 'organization' },
    ],
    keyOf: ({ organization_membership_id, role, resource }: LivingRoleAssignment) => roleAssignmentKey(organization_membership_id, role.id, resource.id),
    end: removeRoleAssignment,
  },
};

type Decide = Decision<RoleAssignmentState, RoleAssignmentEvent>;

export function roleAssignmentKey(membershipId: string, roleId: string, resourceId: string): string {
  return `${membershipId}.${roleId}.${resourceId}`;
}

/** A role that the membership has there already stays as it is. */
export function assignRole(given: Omit<NewRoleAssignment, 'id'>): Decide {
  return (state, context) => {
    const id = context.id('role_assignment');
    if (state?.object === 'role_assignment') return [];
    // A repeated command meets what it made; once that was deleted, it stays deleted.
    if (state?.id === id) throw notFound('Role assignment', id);
    return [{ type: 'role_assignment.created', data: { id, ...given } }];
  };
}

/** Whichever assignment of the role there is. */
export function removeRole(): Decide {
  return (state) => (state?.object === 'role_assignment' ? [{ type: 'role_assignment.deleted', data: { id: state.id } }] : []);
}

/** Nothing happens where another was made since. */
export function removeRoleAssignment(id: string): Decide {
  return (state) => (state?.object === 'role_assignment' && state.id === id ? [{ type: 'role_assignment.deleted', data: { id } }] : []);
}

/** @throws DomainError `entity_not_found` where it is no more */
export function requireRoleAssignment(state: RoleAssignmentState, id: string): LivingRoleAssignment {
  if (state?.object !== 'role_assignment') throw notFound('Role assignment', id);
  return state;
}
