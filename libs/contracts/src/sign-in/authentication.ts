import { Flag, Nested, OneOf, Optional, Ref, Text } from '../fields.ts';
import { Organization } from '../organizations/organization.ts';
import { Session } from '../sessions/session.ts';
import { User } from '../users/user.ts';

export const AUTHENTICATION_METHODS = ['SSO', 'Password', 'Passkey', 'MagicAuth', 'ExternalAuth', 'CrossAppAuth', 'Impersonation', 'MigratedSession'] as const;
export type AuthenticationMethod = (typeof AUTHENTICATION_METHODS)[number];

/** For helpers that keep a session in a cookie and leave it to this API to seal it. */
export class SessionSealing {
  @Flag({ doc: 'Whether the answer is to hold the session, sealed.' }) seal_session!: boolean;
  @Optional() @Text({ doc: 'The key to seal it with: 32 bytes in base64. Not stored.', max: 1_024, secret: true }) cookie_password?: string;
}

/** Somebody is signed in. */
export class Authentication {
  @Nested(() => User, { doc: 'Who.' }) user!: User;
  @Optional() @Ref(() => Organization, { doc: 'The organization that the tokens are for; absent: none.' }) organization_id?: string;
  @Text({ doc: 'Says to your services who this is, and what they may do: a JWT. Verify it with the keys of `/sso/jwks/{client_id}`.' }) access_token!: string;
  @Text({ doc: 'Gets the next access token, once: the answer has another one.' }) refresh_token!: string;
  @Optional() @OneOf(AUTHENTICATION_METHODS, { doc: 'By what the user showed at first who it is.' }) authentication_method?: AuthenticationMethod;
  @Optional() @Text({ doc: 'Where `session` asked for it: the tokens and the user, sealed with its password.' }) sealed_session?: string;
  @Optional() @Ref(() => Session, { doc: 'Where `session` asked for it: the session.' }) sid?: string;
}
