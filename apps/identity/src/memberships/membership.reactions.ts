import type { AuthorizationModelEvent } from '#apps/authorization/src/domain/authorization-model.decider';
import type { OrganizationRolesEvent } from '#apps/authorization/src/domain/organization-roles.decider';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import type { ReadModels, StoredRow } from '#libs/read-models/src/read-models';
import type { Dependents } from '../dependents.ts';
import type { OrganizationEvent } from '../organizations/organization.decider.ts';
import type { UserEvent } from '../users/user.decider.ts';
import {
  dropRole,
  membershipDecider,
  membershipKey,
  recordDeletion,
  type HeldRole,
  type MembershipEvent,
  type StoredMembership,
} from './membership.decider.ts';
import { membershipsOf, membershipsView } from './memberships.view.ts';
import { defaultRole, type RoleDirectory } from './role-directory.ts';
import type { ShownMemberships } from './shown-memberships.ts';

export interface MembershipReactionNeeds {
  readonly dependents: Dependents;
  readonly shown: ShownMemberships;
  readonly roles: RoleDirectory;
  readonly readModels: ReadModels;
}

type Pair = Pick<StoredMembership, 'id' | 'organization_id' | 'user_id'>;

/** Memberships are dead with their organization and with their user; this tells so of each, also of one that was created at the very moment. */
export function deleteMembershipsWithTheirEnds({ dependents, shown, readModels }: MembershipReactionNeeds): Reaction {
  const rows = readModels.table(tableOf(membershipsView));
  const end = (event: RecordedEvent, { id, organization_id, user_id }: Pair): Promise<void> =>
    dependents.decide(event, membershipDecider, membershipKey(organization_id, user_id), recordDeletion(id));
  return {
    name: 'delete-memberships-with-their-ends',
    handles: [
      'organization.deleted' satisfies OrganizationEvent['type'],
      'user.deleted' satisfies UserEvent['type'],
      'organization_membership.created' satisfies MembershipEvent['type'],
    ],
    react: async (event) => {
      if (event.type === 'organization_membership.created') {
        const pair = event.data as Pair;
        if (!(await shown.isHangingOnLiving(event.meta.environment, pair))) await end(event, pair);
        return;
      }
      const { id } = event.data as { readonly id: string };
      const where = membershipsOf(event.type === 'user.deleted' ? { user_id: id } : { organization_id: id });
      await dependents.each(event, rows, where, (row) => end(event, stored(row)));
    },
  };
}

/** Nobody has a deleted role any more; this records what members have instead, also where one was given it at the very moment. */
export function replaceDeletedRoles({ dependents, shown, roles, readModels }: MembershipReactionNeeds): Reaction {
  const rows = readModels.table(tableOf(membershipsView));
  const drop = async (event: RecordedEvent, membership: StoredMembership, roleId: string): Promise<void> => {
    const { environment } = event.meta;
    // What is to be deleted itself needs no other role.
    if (!(await shown.isHangingOnLiving(environment, membership))) return;
    const key = membershipKey(membership.organization_id, membership.user_id);
    await dependents.decide(event, membershipDecider, key, dropRole(membership.id, roleId, defaultRole(environment)));
  };
  return {
    name: 'replace-deleted-roles',
    handles: [
      'role.deleted' satisfies AuthorizationModelEvent['type'],
      'organization_role.deleted' satisfies OrganizationRolesEvent['type'],
      'organization_membership.created' satisfies MembershipEvent['type'],
      'organization_membership.updated' satisfies MembershipEvent['type'],
    ],
    react: async (event) => {
      const { environment, organization } = event.meta;
      const { id, roles: given = [] } = event.data as { readonly id: string; readonly roles?: readonly HeldRole[] };
      if (event.type.endsWith('.deleted')) {
        await dependents.each(event, rows, { index: 'role', values: [id] }, (row) => drop(event, stored(row), id));
        return;
      }
      if (given.every((role) => role.id === defaultRole(environment).id)) return;
      await dependents.knows(event);
      const scope = await roles.inOrganization(environment, organization!);
      for (const role of given.filter((each) => scope.isDeleted(each))) {
        const row = await rows.get(environment, id);
        if (row !== null) await drop(event, stored(row), role.id);
      }
    },
  };
}

function stored({ text }: StoredRow): StoredMembership {
  return JSON.parse(text) as StoredMembership;
}
