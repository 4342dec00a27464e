import { Const, Flag, Nested, OneOf, Ref, Time } from '../fields.ts';
import { AuthenticationMethods } from '../environment-settings/environment-settings.ts';
import { Organization } from '../organizations/organization.ts';

/** How the members of an organization have to sign in. */
export class AuthenticationPolicy {
  @Const('authentication_policy') object!: 'authentication_policy';
  @Ref(() => Organization, { doc: 'The organization.' }) organization_id!: string;
  @Nested(() => AuthenticationMethods, { doc: 'The ways that it lets its members sign in; of these, those that the environment has.' })
  methods!: AuthenticationMethods;
  @OneOf(['optional', 'required'], { doc: 'Whether members have to sign in through the identity provider of the organization.' }) sso!: 'optional' | 'required';
  @OneOf(['inherit', 'required'], { doc: 'Whether members need a second factor: as the environment has it, or always.' }) mfa!: 'inherit' | 'required';
  @Flag({ doc: 'Whether somebody who comes through its identity provider becomes a member.' }) jit_membership!: boolean;
  @OneOf(['allowed', 'blocked'], { doc: 'Whether invitations to it are sent; those that are out go on working.' }) invitations!: 'allowed' | 'blocked';
  @Time({ doc: 'When it was changed last; null: never.', nullable: true }) updated_at!: string | null;
}
