import { feature } from '#libs/runtime/src/feature';
import { membershipDecider } from '../domain/membership.decider.ts';
import { MembershipReader } from '../readers/membership-reader.ts';
import { ParentReader } from '../readers/parent-reader.ts';
import { RoleDirectory } from '../readers/role-directory.ts';
import { membershipsView } from '../views/memberships.view.ts';
import { roleDirectoryView } from '../views/role-directory.view.ts';
import { roleMappingsView } from '../views/role-mappings.view.ts';
import { GrantedRoles } from './granted-roles.ts';
import { FollowMappedRoles } from './mapped-roles.reaction.ts';
import { ReplaceDeletedRoles, TakeBackRolesThatMayNotBeGiven } from './membership.reactions.ts';
import { Memberships } from './memberships.ts';

export const memberships = feature({
  deciders: [membershipDecider],
  views: [membershipsView, roleDirectoryView, roleMappingsView],
  providers: [Memberships, MembershipReader, ParentReader, RoleDirectory, GrantedRoles],
  reactions: [ReplaceDeletedRoles, TakeBackRolesThatMayNotBeGiven, FollowMappedRoles],
});
