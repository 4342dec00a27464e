import { feature } from '#libs/runtime/src/feature';
import { userDecider, type UserEvent } from '../domain/user.decider.ts';
import { EnvironmentPasswordRules } from '../passwords/password-rules.ts';
import { PasswordWork } from '../passwords/password-work.ts';
import { Passwords } from '../passwords/passwords.ts';
import { AddressHolders } from '../readers/address-holders.ts';
import { LAST_SIGN_IN, ShownUsers } from '../readers/shown-users.ts';
import { usersOfOrganizationsView } from '../views/users-of-organizations.view.ts';
import { usersView } from '../views/users.view.ts';
import { InvitedAddresses } from './invited-addresses.ts';
import { PasswordKey } from './password-key.ts';
import { Users } from './users.ts';

export const users = feature({
  deciders: [userDecider],
  views: [usersView, usersOfOrganizationsView],
  providers: [Users, ShownUsers, AddressHolders, InvitedAddresses, Passwords, EnvironmentPasswordRules, PasswordKey, PasswordWork],
  stamps: [{ stamp: LAST_SIGN_IN, endsWith: ['user.deleted' satisfies UserEvent['type']] }],
});
