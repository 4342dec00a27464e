import { feature } from '#libs/runtime/src/feature';
import { GivenRoles } from './given-roles.ts';
import { membershipDecider } from './membership.decider.ts';
import { ReplaceDeletedRoles, TakeBackRolesThatMayNotBeGiven } from './membership.reactions.ts';
import { MembershipReader } from './membership-reader.ts';
import { Memberships } from './memberships.ts';
import { membershipsView } from './memberships.view.ts';
import { RoleDirectory } from './role-directory.ts';
import { roleDirectoryView } from './role-directory.view.ts';

export const memberships = feature({
  deciders: [membershipDecider],
  views: [membershipsView, roleDirectoryView],
  providers: [Memberships, MembershipReader, RoleDirectory, GivenRoles],
  reactions: [ReplaceDeletedRoles, TakeBackRolesThatMayNotBeGiven],
});
