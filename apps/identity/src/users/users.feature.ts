import { feature } from '#libs/runtime/src/feature';
import { PasswordKey } from './password-key.ts';
import { PasswordWork } from './password-work.ts';
import { Passwords } from './passwords.ts';
import { userDecider } from './user.decider.ts';
import { usersOfOrganizationsView } from './users-of-organizations.view.ts';
import { Users } from './users.ts';
import { usersView } from './users.view.ts';

export const users = feature({
  deciders: [userDecider],
  views: [usersView, usersOfOrganizationsView],
  providers: [Users, Passwords, PasswordKey, PasswordWork],
});
