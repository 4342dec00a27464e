import { AUDIT_TRAIL_VIEW } from '#libs/contracts/src/audit-logs/audit-trail-view';
import { ORGANIZATIONS_OF_DIRECTORIES } from '#libs/contracts/src/directories/organizations-of-directories';
import { service } from '#libs/runtime/src/feature';
import { apiKeys } from './api-keys/api-keys.feature.ts';
import { authenticationFactors } from './authentication-factors/authentication-factors.feature.ts';
import { authenticationPolicies } from './authentication-policies/authentication-policies.feature.ts';
import { browserAddresses } from './browser-addresses/browser-addresses.feature.ts';
import { codes } from './codes/codes.feature.ts';
import { directoryLinks } from './directory-links/directory-links.feature.ts';
import { environmentSettings } from './environment-settings/environment-settings.feature.ts';
import { environments } from './environments/environments.feature.ts';
import { groups } from './groups/groups.feature.ts';
import { invitations } from './invitations/invitations.feature.ts';
import { jwtTemplates } from './jwt-templates/jwt-templates.feature.ts';
import { mail } from './mail/mail.feature.ts';
import { memberships } from './memberships/memberships.feature.ts';
import { organizations } from './organizations/organizations.feature.ts';
import { risk } from './risk/risk.feature.ts';
import { signIn } from './sign-in/sign-in.feature.ts';
import { sms } from './sms/sms.feature.ts';
import { tokenKeys } from './token-keys/token-keys.feature.ts';
import { widgets } from './widgets/widgets.feature.ts';
import { users } from './users/users.feature.ts';

const features = [
  environments,
  environmentSettings,
  tokenKeys,
  authenticationFactors,
  authenticationPolicies,
  browserAddresses,
  jwtTemplates,
  organizations,
  users,
  memberships,
  groups,
  apiKeys,
  codes,
  invitations,
  directoryLinks,
  widgets,
  mail,
  sms,
  risk,
  signIn,
];

export const identity = service('identity', features, {
  awaits: [
    { ...AUDIT_TRAIL_VIEW, handles: ['organization.deleted'] },
    { ...ORGANIZATIONS_OF_DIRECTORIES, handles: ['organization.deleted', 'organization_domain.created', 'organization_domain.deleted'] },
  ],
});
