import { AuthorizationResource } from '../authorization-resources/authorization-resource.ts';
import { Flag, ListOf, Nested, OneOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { Group } from '../groups/group.ts';
import { OrganizationMembership } from '../organization-memberships/organization-membership.ts';
import { ResourceReference, RoleAssignmentResource, RoleAssignmentRole } from '../role-assignments/role-assignment.ts';

/** One question: a permission, and the resource that it is asked about. */
export class RequestedAccess {
  @Text({ doc: 'Slug of the permission.', min: 1, max: 128, example: 'documents:read' }) permission_slug!: string;
  @Optional() @Picked(ResourceReference) resource_id?: string;
  @Optional() @Picked(ResourceReference) resource_external_id?: string;
  @Optional() @Picked(ResourceReference) resource_type_slug?: string;
}

/** Whether a membership has a permission on a resource. */
export class AccessCheck {
  @Flag({ doc: 'Whether it has, for whatever reason.' }) authorized!: boolean;
}

/** The answers to several questions, all as of the same moment. */
export class AccessCheckBatch {
  @ListOf(() => AccessCheck, { doc: 'One answer for each question, in the same order.' }) results!: readonly AccessCheck[];
}

const SOURCES = ['organization_role', 'direct', 'group'] as const;
export type AccessSource = (typeof SOURCES)[number];

/** A role that a membership has, and how it comes by it. */
export class AccessChain {
  @Nested(() => RoleAssignmentRole, { doc: 'The role.' }) role!: RoleAssignmentRole;
  @OneOf(SOURCES, {
    doc: 'How the membership comes by the role: as its role in the organization, by an assignment of its own, or by one of a group that it is in.',
  })
  source!: AccessSource;
  @Ref(() => Group, { doc: 'The group; null where the role comes through none.', nullable: true }) group_id!: string | null;
  @Nested(() => RoleAssignmentResource, { doc: 'Where the role was given: the resource itself, or one above it.' }) resource!: RoleAssignmentResource;
  @Flag({ doc: 'Whether that is a resource above the one asked about.' }) inherited!: boolean;
}

const REASONS = ['membership_not_active', 'role_without_permission', 'role_elsewhere'] as const;
export type NearMissReason = (typeof REASONS)[number];

/** A role that would give the permission, were one thing different. */
export class AccessNearMiss {
  @OneOf(REASONS, {
    doc: '`membership_not_active`: the role gives the permission on the resource, once the membership is active. `role_without_permission`: the role applies to the resource, and lacks the permission. `role_elsewhere`: the role has the permission, on a resource that is neither this one nor above it.',
  })
  reason!: NearMissReason;
  @Picked(AccessChain) role!: RoleAssignmentRole;
  @Picked(AccessChain) source!: AccessSource;
  @Picked(AccessChain) group_id!: string | null;
  @Nested(() => RoleAssignmentResource, { doc: 'Where the role was given.' }) resource!: RoleAssignmentResource;
}

/** Why a membership has a permission on a resource, or why not. */
export class AccessExplanation {
  @Flag({ doc: 'What a check would answer.' }) authorized!: boolean;
  @Text({ doc: 'Slug of the permission.', example: 'documents:read' }) permission_slug!: string;
  @Ref(() => AuthorizationResource, { doc: 'The resource that was asked about.' }) resource_id!: string;
  @ListOf(() => AccessChain, { doc: 'Everything that gives the permission, from the resource upwards: at most 100.' }) chains!: readonly AccessChain[];
  @ListOf(() => AccessNearMiss, { doc: 'Where nothing gives it: what nearly does, at most 100; empty otherwise.' }) near_misses!: readonly AccessNearMiss[];
  @Flag({ doc: 'Whether there are more than are listed.' }) has_more!: boolean;
}

/** What a membership has in the whole organization. */
export class OrganizationAccess {
  @ListOf({ text: { max: 128 } }, { doc: 'Ids of the roles that it has, in no order.' }) role_ids!: readonly string[];
  @ListOf({ text: {} }, { doc: 'Slugs of the permissions that any of them gives, in alphabetical order.' }) permissions!: readonly string[];
}

/** What groups of a directory give a membership. */
export class MappedRoles {
  @Ref(() => OrganizationMembership, { doc: 'The membership.' }) organization_membership_id!: string;
  @ListOf({ text: { max: 128 } }, { doc: 'Ids of the roles that its groups give, the one with the highest priority first.' }) role_ids!: readonly string[];
}
