import { ROLE_DIRECTORY } from '#libs/contracts/src/roles/role-directory';
import { service } from '#libs/runtime/src/feature';
import { access } from './access/access.feature.ts';
import { assignments } from './assignments/assignments.feature.ts';
import { checks } from './checks/checks.feature.ts';
import { guards } from './guards/guards.feature.ts';
import { model } from './model/model.feature.ts';
import { resources } from './resources/resources.feature.ts';

export const authorization = service('authorization', [model, access, resources, assignments, checks, guards], {
  awaits: [{ ...ROLE_DIRECTORY, handles: ['role.deleted', 'roles.reordered', 'organization_role.deleted'] }],
});
