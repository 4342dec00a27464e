import { Const, Id, Picked, Ref, Text, Time } from '../fields.ts';
import { User } from '../users/user.ts';

/** By its token, whoever reads the mail of an address sets another password. Events show it without the token. */
export class PasswordReset {
  @Const('password_reset') object!: 'password_reset';
  @Id('password_reset', { doc: 'Identifies it; not a secret.' }) id!: string;
  @Ref(() => User, { doc: 'Whose password it is.' }) user_id!: string;
  @Picked(User) email!: string;
  @Time({ doc: 'When the token stops working.' }) expires_at!: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
}

export class PasswordResetWithToken extends PasswordReset {
  @Text({ doc: 'To be sent to the address and to nobody else. It works once.', secret: true }) password_reset_token!: string;
  @Text({ doc: 'The page of your application (`APPLICATION_URL`) with the token.', secret: true, example: 'https://acme.test/reset-password?token=…' })
  password_reset_url!: string;
}
