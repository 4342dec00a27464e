import { Nested, Optional, partial, Picked, Ref } from '../fields.ts';
import { AuthenticationMethods } from '../environment-settings/environment-settings.ts';
import { Command, ok, Operation, Query } from '../operation.ts';
import { Organization } from '../organizations/organization.ts';
import { AuthenticationPolicy } from './authentication-policy.ts';

class AuthenticationMethodsChange extends partial(AuthenticationMethods) {}

@Operation({
  get: '/admin/organizations/{organization_id}/authentication_policy',
  owner: 'identity',
  summary: 'Get the authentication policy of an organization',
  answers: ok(AuthenticationPolicy),
})
export class GetAuthenticationPolicy extends Query<AuthenticationPolicy> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
}

@Operation({
  patch: '/admin/organizations/{organization_id}/authentication_policy',
  owner: 'identity',
  summary: 'Change the authentication policy of an organization',
  description: 'What is absent stays. Who changed what is recorded.',
  answers: ok(AuthenticationPolicy),
})
export class UpdateAuthenticationPolicy extends Command<AuthenticationPolicy> {
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Optional() @Nested(() => AuthenticationMethodsChange, { doc: 'The ways that it lets its members sign in.' }) methods?: AuthenticationMethodsChange;
  @Optional() @Picked(AuthenticationPolicy) sso?: AuthenticationPolicy['sso'];
  @Optional() @Picked(AuthenticationPolicy) mfa?: AuthenticationPolicy['mfa'];
  @Optional() @Picked(AuthenticationPolicy) jit_membership?: boolean;
  @Optional() @Picked(AuthenticationPolicy) invitations?: AuthenticationPolicy['invitations'];
}
