import type { OrganizationMembership } from '#libs/contracts/src/organization-memberships/organization-membership';
import { effectiveRoles } from '#libs/contracts/src/roles/effective-roles.decider';
import type { NewPublicEvent, Decider, Decision, Fact, Folded } from '#libs/event-sourcing/src/deciding/decider';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import type { OrganizationEvent } from './organization.decider.ts';
import type { UserEvent } from './user.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type MembershipEvent =
  | Fact<'organization_membership.created', MembershipCreated>
  | Fact<'organization_membership.updated', MembershipUpdated>
  | Fact<'organization_membership.deleted', { readonly id: string }>;

/** A role by its id: another role of the same slug is another role. */
export interface HeldRole {
  readonly id: string;
  readonly slug: string;
}

/** The person of a directory who decides about a membership. */
export interface ManagedBy {
  readonly directory_id: string;
  readonly directory_user_id: string;
}

interface MembershipCreated extends Pick<OrganizationMembership, 'id' | 'organization_id' | 'user_id' | 'status' | 'directory_managed' | 'custom_attributes'> {
  readonly roles: readonly HeldRole[];
  /** The invitation that it began with. */
  readonly invitation_id?: string;
  /** Absent: nobody, it is managed by hand. */
  readonly managed_by?: ManagedBy | null;
}

/** What changed, as it is from now on. */
interface MembershipUpdated {
  readonly id: string;
  readonly status?: 'active' | 'inactive';
  readonly roles?: readonly HeldRole[];
  /** Where a creation found it inactive: the id that the creation would have given. By this, its repetition is told from another creation. */
  readonly created_again?: string;
  /** Null: by hand from now on. */
  readonly managed_by?: ManagedBy | null;
  /** Where the status is what its directory says; absent: somebody chose it. */
  readonly status_by?: 'directory';
  /** What the groups give that the person who manages it is in, the role with the highest priority first. */
  readonly mapped_roles?: readonly HeldRole[];
}

/** One stream per organization and user: each time the user joins, another membership begins in it. */
export type MembershipState = StoredMembership | DeletedMembership | null;

/** Everything but what belongs to the organization and the user. The roles may include some that are deleted by now. */
export interface StoredMembership extends Omit<OrganizationMembership, 'organization_name'> {
  /** Those that were given by hand. */
  readonly roles: readonly HeldRole[];
  /** Those that groups of a directory give: while there are any, they are what the membership has. None where it is managed by hand. */
  readonly mapped_roles: readonly HeldRole[];
  readonly created_again?: string;
  readonly invitation_id?: string;
  /** Since which version of the stream the status is what it is: what began while it was active another time knows a lower one. */
  readonly status_version: number;
  /** The link to the directory; `directory_managed` says whether there is one. */
  readonly managed_by: ManagedBy | null;
  readonly status_by: 'directory' | null;
}

/** The last one that was. */
interface DeletedMembership extends Pick<OrganizationMembership, 'id' | 'organization_id'> {
  readonly object: 'deleted_organization_membership';
}

function evolve(state: MembershipState, event: Folded<MembershipEvent>): MembershipState {
  if (event.type === 'organization_membership.created') {
    const managed_by = event.data.managed_by ?? null;
    const link = { managed_by, directory_managed: managed_by !== null, status_by: null, mapped_roles: [] };
    return { object: 'organization_membership', ...event.data, ...link, created_at: event.at, updated_at: event.at, status_version: event.version };
  }
  if (state?.object !== 'organization_membership' || state.id !== event.data.id) return state;
  switch (event.type) {
    case 'organization_membership.updated': {
      const { status, status_by = null, managed_by = state.managed_by, mapped_roles = state.mapped_roles } = event.data;
      const link = { managed_by, directory_managed: managed_by !== null, mapped_roles: managed_by === null ? [] : mapped_roles };
      const since = status === undefined ? { status_by: state.status_by } : { status_by, status_version: event.version };
      return { ...state, ...event.data, ...link, ...since, updated_at: event.at };
    }
    case 'organization_membership.deleted':
      return { object: 'deleted_organization_membership', id: state.id, organization_id: state.organization_id };
  }
}

/** As events show it: its roles by their slugs. */
function toPublicEvent(event: MembershipEvent, before: MembershipState, after: MembershipState): NewPublicEvent | null {
  const shown = event.type === 'organization_membership.deleted' ? before : after;
  if (shown?.object !== 'organization_membership') return null;
  const slugs = shownRoles(shown);
  if (event.type === 'organization_membership.updated' && isOfMappedRolesAlone(event.data) && before?.object === 'organization_membership')
    // What was given by hand already is no news.
    if (
      slugs.map(({ slug }) => slug).join() ===
      shownRoles(before)
        .map(({ slug }) => slug)
        .join()
    )
      return null;
  const {
    roles: _roles,
    mapped_roles: _mapped,
    created_again: _,
    invitation_id: _invitation,
    status_version: _version,
    managed_by: _link,
    status_by: _by,
    ...membership
  } = shown;
  return { payload: { ...membership, role: slugs[0], roles: slugs }, names: [event.type] };
}

function shownRoles({ roles, mapped_roles }: StoredMembership): readonly { readonly slug: string }[] {
  return effectiveRoles({ manual: roles, mapped: mapped_roles }, () => false, roles[0]!).map(({ slug }) => ({ slug }));
}

function isOfMappedRolesAlone({ id: _, mapped_roles, ...others }: MembershipUpdated): boolean {
  return mapped_roles !== undefined && Object.keys(others).length === 0;
}

export const membershipDecider: Decider<MembershipState, MembershipEvent> = {
  category: 'organization_membership',
  foldVersion: 4,
  initial: null,
  sealed: { 'organization_membership.created': null, 'organization_membership.updated': null, 'organization_membership.deleted': null },
  evolve,
  organization: (state) => state?.organization_id,
  toPublicEvent,
  hangsOn: {
    reaction: 'delete-memberships-with-their-ends',
    parents: [
      { ends: 'organization.deleted' satisfies OrganizationEvent['type'], index: 'organization', category: 'organization', field: 'organization_id' },
      { ends: 'user.deleted' satisfies UserEvent['type'], index: 'user', category: 'user', field: 'user_id' },
    ],
    begins: ['organization_membership.created'],
    keyOf: ({ organization_id, user_id }: StoredMembership) => membershipKey(organization_id, user_id),
    end: recordDeletion,
  },
};

type Decide = Decision<MembershipState, MembershipEvent>;

/** The key of the stream; both are ids of what lives. */
export function membershipKey(organizationId: string, userId: string): string {
  return `${organizationId}.${userId}`;
}

interface NewMembership {
  readonly organization_id: string;
  readonly user_id: string;
  /** At least one. */
  readonly roles: readonly HeldRole[];
}

/** A user whose membership is inactive comes back into it. */
export function createMembership({ organization_id, user_id, roles }: NewMembership): Decide {
  return (state, context) => {
    const id = context.id('om');
    if (state?.object === 'organization_membership') {
      if (state.id === id || state.created_again === id) return [];
      if (state.status === 'active') throw alreadyMember(organization_id, user_id);
      refusePending(state, 'reactivate');
      return [{ type: 'organization_membership.updated', data: { id: state.id, status: 'active', roles, created_again: id } }];
    }
    // A repeated command meets what it made; once that was deleted, it stays deleted.
    if (state?.id === id) throw notFound('Organization membership', id);
    const born = { id, organization_id, user_id, status: 'active', roles, directory_managed: false, custom_attributes: {} } as const;
    return [{ type: 'organization_membership.created', data: born }];
  };
}

interface InvitedMember extends NewMembership {
  readonly invitation_id: string;
}

/** A user who was invited is a pending member. Nothing where they are a member of any kind. */
export function inviteMember(invited: InvitedMember): Decide {
  return (state, context) => (state?.object === 'organization_membership' ? [] : [created(context.id('om'), 'pending', invited)]);
}

/** Whoever accepts an invitation is a member from now on, with the roles of the pending membership where there is one. Who is suspended stays so. */
export function joinByInvitation(invited: InvitedMember): Decide {
  return (state, context) => {
    if (state?.object !== 'organization_membership') return [created(context.id('om'), 'active', invited)];
    return state.status === 'pending' ? [{ type: 'organization_membership.updated', data: { id: state.id, status: 'active' } }] : [];
  };
}

/** Nobody accepted the invitation, and nobody will. */
export function endPendingMembership(invitationId: string): Decide {
  return (state) => {
    if (state?.object !== 'organization_membership' || state.status !== 'pending' || state.invitation_id !== invitationId) return [];
    return [{ type: 'organization_membership.deleted', data: { id: state.id } }];
  };
}

function created(id: string, status: 'active' | 'pending', { organization_id, user_id, roles, invitation_id }: InvitedMember): MembershipEvent {
  const born = { id, organization_id, user_id, status, roles, directory_managed: false, custom_attributes: {}, invitation_id };
  return { type: 'organization_membership.created', data: born };
}

interface ManagedMember extends NewMembership {
  readonly managed_by: ManagedBy;
}

/**
 * A person of a directory is a member: begins as one, or what there is becomes theirs, with its id and its roles. What a directory suspended is active again; whom
 * somebody suspended by hand stays so. Nothing where another person manages the membership.
 */
export function manageMembership({ organization_id, user_id, roles, managed_by }: ManagedMember): Decide {
  return (state, context) => {
    if (state?.object !== 'organization_membership') {
      const id = context.id('om');
      // A repeated command meets what it made; once that was deleted, it stays deleted.
      if (state?.id === id) return [];
      const born = { id, organization_id, user_id, status: 'active', roles, directory_managed: true, custom_attributes: {}, managed_by } as const;
      return [{ type: 'organization_membership.created', data: born }];
    }
    if (state.managed_by !== null && !isSamePerson(state.managed_by, managed_by)) return [];
    const isBack = state.status === 'pending' || (state.status === 'inactive' && state.status_by === 'directory');
    const change = { ...(state.managed_by === null && { managed_by }), ...(isBack && ({ status: 'active', status_by: 'directory' } as const)) };
    return updated(state.id, change);
  };
}

/** What there is becomes that of a person of a directory who is not active there, and is suspended. Nothing where there is no membership, or it is another's. */
export function suspendMembership(managed_by: ManagedBy): Decide {
  return (state) => {
    if (state?.object !== 'organization_membership') return [];
    if (state.managed_by !== null && !isSamePerson(state.managed_by, managed_by)) return [];
    const isSuspended = state.status === 'inactive';
    return updated(state.id, {
      ...(state.managed_by === null && { managed_by }),
      ...(!isSuspended && ({ status: 'inactive', status_by: 'directory' } as const)),
    });
  };
}

/** From now on `to` manages what `from` did: null for nobody, so it is managed by hand. Nothing where `from` does not. */
export function handOver(from: ManagedBy, to: ManagedBy | null): Decide {
  return (state) =>
    state?.object === 'organization_membership' && state.managed_by !== null && isSamePerson(state.managed_by, from)
      ? [{ type: 'organization_membership.updated', data: { id: state.id, managed_by: to } }]
      : [];
}

/** Whom its directory no longer has is a member no longer. Nothing where another person manages the membership, or nobody. */
export function endManagedMembership(managed_by: ManagedBy): Decide {
  return (state) =>
    state?.object === 'organization_membership' && state.managed_by !== null && isSamePerson(state.managed_by, managed_by)
      ? [{ type: 'organization_membership.deleted', data: { id: state.id } }]
      : [];
}

function updated(id: string, change: Omit<MembershipUpdated, 'id'>): readonly MembershipEvent[] {
  return Object.keys(change).length === 0 ? [] : [{ type: 'organization_membership.updated', data: { id, ...change } }];
}

function isSamePerson(one: ManagedBy, other: ManagedBy): boolean {
  return one.directory_user_id === other.directory_user_id;
}

export function setRoles(id: string, roles: readonly HeldRole[]): Decide {
  return (state) => (sameRoles(requireMembership(state, id).roles, roles) ? [] : [{ type: 'organization_membership.updated', data: { id, roles } }]);
}

/** What groups of a directory give from now on. Nothing where it is managed by hand: then nothing is given. */
export function setMappedRoles(id: string, roles: readonly HeldRole[]): Decide {
  return (state) => {
    if (state?.object !== 'organization_membership' || state.id !== id || state.managed_by === null || sameRoles(state.mapped_roles, roles)) return [];
    return [{ type: 'organization_membership.updated', data: { id, mapped_roles: roles } }];
  };
}

/** The role is no more. A membership without any other has `fallback` from now on; one that lives no longer, or never had the role, stays as it is. */
export function dropRole(id: string, roleId: string, fallback: HeldRole): Decide {
  return (state) => {
    if (state?.object !== 'organization_membership' || state.id !== id || !state.roles.some((role) => role.id === roleId)) return [];
    return [
      {
        type: 'organization_membership.updated',
        data: { id, roles: effectiveRoles({ manual: state.roles, mapped: [] }, (role) => role.id === roleId, fallback) },
      },
    ];
  };
}

/** Takes back that these roles were given, with what came with them; where others were given since, they stay. */
export function takeRolesBack(id: string, given: readonly HeldRole[], before: Pick<StoredMembership, 'roles' | 'status'>): Decide {
  return (state) => {
    if (state?.object !== 'organization_membership' || state.id !== id || !sameRoles(state.roles, given)) return [];
    const change = {
      ...(before.status === 'inactive' && state.status === 'active' && { status: before.status }),
      ...(!sameRoles(state.roles, before.roles) && { roles: before.roles }),
    };
    return Object.keys(change).length === 0 ? [] : [{ type: 'organization_membership.updated', data: { id, ...change } }];
  };
}

export function deactivate(id: string): Decide {
  return (state) => {
    const membership = requireMembership(state, id);
    refusePending(membership, 'deactivate');
    return membership.status === 'inactive' ? [] : [{ type: 'organization_membership.updated', data: { id, status: 'inactive' } }];
  };
}

export function reactivate(id: string): Decide {
  return (state) => {
    const membership = requireMembership(state, id);
    refusePending(membership, 'reactivate');
    return membership.status === 'active' ? [] : [{ type: 'organization_membership.updated', data: { id, status: 'active' } }];
  };
}

export function deleteMembership(id: string): Decide {
  return (state) => {
    if (state?.object === 'deleted_organization_membership' && state.id === id) return [];
    requireMembership(state, id);
    return [{ type: 'organization_membership.deleted', data: { id } }];
  };
}

/** What follows where it hangs on something that is gone. */
export function recordDeletion(id: string): Decide {
  return (state) => (state?.object === 'organization_membership' && state.id === id ? [{ type: 'organization_membership.deleted', data: { id } }] : []);
}

/** @throws DomainError `entity_not_found` where it never was or is no more, also where the user has joined again since */
function requireMembership(state: MembershipState, id: string): StoredMembership {
  if (state?.object !== 'organization_membership' || state.id !== id) throw notFound('Organization membership', id);
  return state;
}

export function sameRoles(one: readonly HeldRole[], other: readonly HeldRole[]): boolean {
  return one.length === other.length && one.every(({ id }, index) => id === other[index]!.id);
}

function alreadyMember(organizationId: string, userId: string): DomainError {
  const message = `The user '${userId}' is already a member of the organization '${organizationId}'.`;
  return new DomainError('conflict', 'user_already_organization_member', message);
}

function refusePending({ id, status }: StoredMembership, what: 'deactivate' | 'reactivate'): void {
  if (status !== 'pending') return;
  throw new DomainError('conflict', `cannot_${what}_pending_organization_membership`, `The membership '${id}' waits for its user to accept an invitation.`);
}
