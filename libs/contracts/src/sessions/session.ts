import { Const, Id, OneOf, Optional, Ref, Text, Time } from '../fields.ts';
import { Environment } from '../environments/environment.ts';
import { Organization } from '../organizations/organization.ts';
import { User } from '../users/user.ts';

/** How a session can have begun, as it is shown. */
export const SESSION_METHODS = [
  'password',
  'magic_code',
  'sso',
  'oauth',
  'passkey',
  'external_auth',
  'cross_app_auth',
  'impersonation',
  'migrated_session',
  'unknown',
] as const;
export type SessionMethod = (typeof SESSION_METHODS)[number];

const SESSION_STATUSES = ['active', 'expired', 'revoked'] as const;

/** Somebody is signed in, in one browser or device, until the session expires or is ended. */
export class Session {
  @Const('session') object!: 'session';
  @Id('session', { doc: 'Identifies the session; access tokens name it as `sid`.' }) id!: string;
  @Ref(() => User, { doc: 'Who is signed in.' }) user_id!: string;
  @Optional() @Ref(() => Organization, { doc: 'The organization that the user chose; absent: none.' }) organization_id?: string;
  @OneOf(SESSION_METHODS, { doc: 'By what the user showed at first who it is.' }) auth_method!: SessionMethod;
  @OneOf(SESSION_STATUSES, { doc: 'Whether it still is one.' }) status!: (typeof SESSION_STATUSES)[number];
  @Text({ doc: 'Address of the person, as the application or the connection told it.', max: 64, nullable: true, personal: true, example: '192.0.2.1' })
  ip_address!: string | null;
  @Text({ doc: 'Browser of the person.', max: 2048, nullable: true, personal: true, example: 'Mozilla/5.0' }) user_agent!: string | null;
  @Time({ doc: 'When it ends whatever happens.' }) expires_at!: string;
  @Time({ doc: 'When it was ended; null: it was not.', nullable: true }) ended_at!: string | null;
  @Time({ doc: 'When it began.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

/** Where a session belongs. */
export class SessionEnvironment {
  @Ref(() => Environment, { doc: 'The environment.' }) environment_id!: string;
}
