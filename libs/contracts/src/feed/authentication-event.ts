import { Nested, OneOf, Optional, Text } from '../fields.ts';

/** Why somebody could not show who they are. */
class AuthenticationError {
  @Text({ doc: 'Names the reason.', max: 128, example: 'invalid_credentials' }) code!: string;
  @Text({ doc: 'The reason, for people.', max: 1024 }) message!: string;
}

/** Somebody showed who they are, or tried to. A sign-in may need several of these; only `session.created` says that there is a session. */
export class AuthenticationEvent {
  @OneOf(['email_verification', 'magic_auth', 'mfa', 'password'], { doc: 'By what.' }) type!: 'email_verification' | 'magic_auth' | 'mfa' | 'password';
  @OneOf(['succeeded', 'failed'], { doc: 'Whether it was shown.' }) status!: 'succeeded' | 'failed';
  @Text({ doc: 'The user; null where nobody has the address.', max: 128, nullable: true, example: 'user_01JG8K3M0Q5R7T9V1X3Z5B7D9F' }) user_id!: string | null;
  @Text({ doc: 'The address that was given.', max: 1024, nullable: true, personal: true, example: 'ada@acme.test' }) email!: string | null;
  @Text({ doc: 'Address of the person, as the application or the connection told it.', max: 64, nullable: true, personal: true, example: '192.0.2.1' })
  ip_address!: string | null;
  @Text({ doc: 'Browser of the person.', max: 2048, nullable: true, personal: true, example: 'Mozilla/5.0' }) user_agent!: string | null;
  @Optional() @Nested(() => AuthenticationError, { doc: 'Why it was not shown; absent where it was.' }) error?: AuthenticationError;
}
