import { MEMBERSHIP_STATUSES, type MembershipStatus } from '#libs/contracts/src/organization-memberships/organization-membership';
import { primaryView } from '#libs/event-sourcing/src/views/view';
import type { PageRequest } from '#libs/read-models/src/read-models';
import { membershipDecider, membershipKey, type MembershipEvent, type MembershipState, type StoredMembership } from '../domain/membership.decider.ts';

/** Every membership that was not deleted. Private: what it is shown with, its organization, its user and its roles, may have ended or changed since. */
export const membershipsView = primaryView<MembershipState, MembershipEvent, StoredMembership>({
  name: 'organization_memberships',
  noun: 'Organization membership',
  version: 2,
  decider: membershipDecider,
  rowIdOf: ({ id }) => id,
  indexes: [
    { name: 'organization', keys: ({ organization_id, status }) => [`${organization_id} ${status}`] },
    { name: 'user', keys: ({ user_id, status }) => [`${user_id} ${status}`] },
    { name: 'organization_and_user', keys: ({ organization_id, user_id, status }) => [`${membershipKey(organization_id, user_id)} ${status}`] },
    { name: 'role', keys: ({ roles }) => roles.map(({ id }) => id) },
    { name: 'directory', keys: ({ managed_by }) => (managed_by === null ? [] : [managed_by.directory_id]) },
    { name: 'directory_user', keys: ({ managed_by }) => (managed_by === null ? [] : [managed_by.directory_user_id]) },
  ],
  under: { organization: (organization_id) => membershipsOf({ organization_id }), user: (user_id) => membershipsOf({ user_id }) },
  rowOf: (state) => (state?.object === 'organization_membership' ? state : null),
});

/** Those of an organization, of a user, or of the two together, that have any of these statuses. One of the two is given. */
export function membershipsOf(
  of: { readonly organization_id?: string; readonly user_id?: string },
  statuses: readonly MembershipStatus[] = MEMBERSHIP_STATUSES,
): NonNullable<PageRequest['where']> {
  const { organization_id, user_id } = of;
  const [index, key] =
    organization_id === undefined
      ? (['user', user_id!] as const)
      : user_id === undefined
        ? (['organization', organization_id] as const)
        : (['organization_and_user', membershipKey(organization_id, user_id)] as const);
  return { index, values: [...new Set(statuses)].map((status) => `${key} ${status}`) };
}
