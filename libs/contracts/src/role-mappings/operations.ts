import { Directory } from '../directories/directory.ts';
import { ListOf, Ref } from '../fields.ts';
import { Command, listOf, Operation, Query, type List } from '../operation.ts';
import { RequestedRoleMapping, RoleMapping } from './role-mapping.ts';

@Operation({
  get: '/admin/directories/{id}/role_mappings',
  owner: 'authorization',
  summary: 'List which roles the groups of a directory give',
  description: 'All of them, in the order in which they were made.',
  answers: listOf(RoleMapping),
})
export class ListRoleMappings extends Query<List<RoleMapping>> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
}

@Operation({
  put: '/admin/directories/{id}/role_mappings',
  owner: 'authorization',
  summary: 'Set which roles the groups of a directory give',
  description:
    'Replaces all of them. Whoever the directory manages a membership of has the roles of their groups in place of those that were given by hand, which come back once no group gives any. Where memberships have one role only, it is the one with the highest priority. They count while the policy of the directory follows memberships and roles.',
  answers: listOf(RoleMapping),
  refuses: ['sub_resource_scoped_role_not_allowed', 'role_mapping_limit_reached'],
  maxBody: 192 * 1024,
})
export class SetRoleMappings extends Command<List<RoleMapping>> {
  @Ref(() => Directory, { doc: 'The directory.' }) id!: string;
  @ListOf(() => RequestedRoleMapping, { doc: 'The roles that its groups give from now on.', maxItems: 500 }) role_mappings!: readonly RequestedRoleMapping[];
}
