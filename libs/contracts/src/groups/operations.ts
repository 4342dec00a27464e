import { ListOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { arrayOf, Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { OrganizationMembership, OrganizationMembershipWithUser } from '../organization-memberships/organization-membership.ts';
import { Organization } from '../organizations/organization.ts';
import { PageQuery } from '../pages.ts';
import { Group } from './group.ts';

const MEMBERSHIP_ID = { text: { min: 1, max: 128 } } as const;

@Operation({
  post: '/organizations/{organization_id}/groups',
  owner: 'identity',
  summary: 'Create a group',
  answers: created(Group),
  emits: ['group.created'],
})
export class CreateGroup extends Command<Group> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Picked(Group) name!: string;
  @Optional() @Picked(Group) description?: string | null;
}

@Operation({ get: '/organizations/{organization_id}/groups', owner: 'identity', summary: 'List the groups of an organization', answers: listOf(Group) })
export class ListGroups extends PageQuery<Group> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Optional()
  @Text({ doc: 'Beginnings of words, in upper or lower case and in any order: each begins one of the first 8 words of the name.', min: 1, max: 256 })
  search?: string;
}

@Operation({ get: '/organizations/{organization_id}/groups/{group_id}', owner: 'identity', summary: 'Get a group', answers: ok(Group) })
export class GetGroup extends Query<Group> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Ref(() => Group, { doc: 'The group.', sameOrganization: true }) group_id!: string;
}

@Operation({
  patch: '/organizations/{organization_id}/groups/{group_id}',
  owner: 'identity',
  summary: 'Update a group',
  description: 'What is absent stays; null clears the description.',
  answers: ok(Group),
  emits: ['group.updated'],
})
export class UpdateGroup extends Command<Group> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Ref(() => Group, { doc: 'The group.', sameOrganization: true }) group_id!: string;
  @Optional() @Picked(Group) name?: string;
  @Optional() @Picked(Group) description?: string | null;
}

@Operation({
  delete: '/organizations/{organization_id}/groups/{group_id}',
  owner: 'identity',
  summary: 'Delete a group',
  description: 'Its role assignments are gone with it; no event tells of each member.',
  answers: empty(204),
  emits: ['group.deleted'],
})
export class DeleteGroup extends Command<void> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Ref(() => Group, { doc: 'The group.', sameOrganization: true }) group_id!: string;
}

@Operation({
  post: '/organizations/{organization_id}/groups/{group_id}/organization-memberships',
  owner: 'identity',
  summary: 'Add a membership to a group',
  description: 'One that is in the group already stays in it.',
  answers: ok(Group),
  refuses: ['group_membership_limit_exceeded'],
  emits: ['group.member_added'],
})
export class AddGroupMember extends Command<Group> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Ref(() => Group, { doc: 'The group.', sameOrganization: true }) group_id!: string;
  @Ref(() => OrganizationMembership, { doc: 'The membership, of the same organization.', sameOrganization: true }) organization_membership_id!: string;
}

@Operation({
  get: '/organizations/{organization_id}/groups/{group_id}/organization-memberships',
  owner: 'identity',
  summary: 'List the memberships in a group',
  answers: listOf(OrganizationMembershipWithUser),
})
export class ListGroupMembers extends PageQuery<OrganizationMembershipWithUser> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Ref(() => Group, { doc: 'The group.', sameOrganization: true }) group_id!: string;
}

@Operation({
  patch: '/organizations/{organization_id}/groups/{group_id}/organization-memberships',
  owner: 'identity',
  summary: 'Add memberships to a group and remove others',
  description:
    'All of it or nothing, at most 100 memberships together. One that is to be added and is in the group already stays in it; one that is to be removed and is not in it stays out.',
  answers: ok(Group),
  refuses: ['group_membership_limit_exceeded', 'entity_not_found'],
  emits: ['group.member_added', 'group.member_removed'],
})
export class UpdateGroupMembers extends Command<Group> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Ref(() => Group, { doc: 'The group.', sameOrganization: true }) group_id!: string;
  @Optional() @ListOf(MEMBERSHIP_ID, { doc: 'Memberships of the organization to add.', maxItems: 100 }) add?: readonly string[];
  @Optional() @ListOf(MEMBERSHIP_ID, { doc: 'Memberships of the organization to remove.', maxItems: 100 }) remove?: readonly string[];
}

@Operation({
  delete: '/organizations/{organization_id}/groups/{group_id}/organization-memberships/{organization_membership_id}',
  owner: 'identity',
  summary: 'Remove a membership from a group',
  answers: empty(204),
  emits: ['group.member_removed'],
})
export class RemoveGroupMember extends Command<void> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Ref(() => Group, { doc: 'The group.', sameOrganization: true }) group_id!: string;
  @Ref(() => OrganizationMembership, { doc: 'The membership.', sameOrganization: true }) organization_membership_id!: string;
}

/** Services that know groups by their ids ask for what people are shown of them. */
@Operation({
  internal: true,
  owner: 'identity',
  summary: 'Find groups by their ids',
  description: 'Answers in the order of the ids; those that are gone are left out.',
  answers: arrayOf(Group),
})
export class FindGroups extends Query<readonly Group[]> {
  @ListOf({ text: { max: 128 } }, { doc: 'The groups.', maxItems: 100 }) ids!: readonly string[];
}
