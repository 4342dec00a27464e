import { deletionsView } from '#libs/event-sourcing/src/deciding/deletions';
import type { GroupEvent } from './groups/group.decider.ts';
import type { MembershipEvent } from './memberships/membership.decider.ts';
import type { OrganizationEvent } from './organizations/organization.decider.ts';
import type { UserEvent } from './users/user.decider.ts';

export const identityDeletionsView = deletionsView('identity', [
  'organization.deleted' satisfies OrganizationEvent['type'],
  'organization_domain.deleted' satisfies OrganizationEvent['type'],
  'user.deleted' satisfies UserEvent['type'],
  'organization_membership.deleted' satisfies MembershipEvent['type'],
  'group.deleted' satisfies GroupEvent['type'],
  'group.member_removed' satisfies GroupEvent['type'],
]);
