import { DirectoryGroup } from '../directories/directory-group.ts';
import { Const, Picked, Ref, Text } from '../fields.ts';

/** A role that the people of a directory's group have. */
export class RequestedRoleMapping {
  @Ref(() => DirectoryGroup, { doc: 'The group of the directory.' }) group_id!: string;
  @Text({ doc: 'Slug of the role: one for organizations, of the environment or of the organization.', min: 1, max: 128, example: 'editor' }) role_slug!: string;
}

export class RoleMapping {
  @Const('role_mapping') object!: 'role_mapping';
  @Picked(RequestedRoleMapping) group_id!: string;
  @Picked(RequestedRoleMapping) role_slug!: string;
}
