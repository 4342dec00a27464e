import { Const, Id, Nested, Picked, Ref, Text, Time } from '../fields.ts';
import { User } from '../users/user.ts';

/** A code by which a user shows to read the mail of their address. Events show it without the code. */
export class EmailVerification {
  @Const('email_verification') object!: 'email_verification';
  @Id('email_verification', { doc: 'Identifies it; not a secret.' }) id!: string;
  @Ref(() => User, { doc: 'Whose address it is.' }) user_id!: string;
  @Picked(User) email!: string;
  @Time({ doc: 'When the code stops working.' }) expires_at!: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

export class EmailVerificationWithCode extends EmailVerification {
  @Text({ doc: 'Six digits, to be sent to the address and to nobody else. They work once.', secret: true, example: '123456' }) code!: string;
}

/** The user whom a request was about. */
export class UserAnswer {
  @Nested(() => User, { doc: 'The user.' }) user!: User;
}
