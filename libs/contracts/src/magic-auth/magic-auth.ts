import { Const, Id, Optional, Picked, Ref, Text, Time } from '../fields.ts';
import { RadarAttempt } from '../radar/radar.ts';
import { User } from '../users/user.ts';

/** A code by which somebody shows to read the mail of an address, and signs in by that. Events show it without the code. */
export class MagicAuth {
  @Const('magic_auth') object!: 'magic_auth';
  @Id('magic_auth', { doc: 'Identifies it; not a secret.' }) id!: string;
  @Ref(() => User, { doc: 'Who signs in.' }) user_id!: string;
  @Picked(User) email!: string;
  @Time({ doc: 'When the code stops working.' }) expires_at!: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

export class MagicAuthWithCode extends MagicAuth {
  @Text({ doc: 'Six digits, to be sent to the address and to nobody else. They work once.', secret: true, example: '123456' }) code!: string;
}

export class CreatedMagicAuth extends MagicAuthWithCode {
  @Optional()
  @Ref(() => RadarAttempt, { doc: 'The attempt that it was asked for in, to be sent when somebody signs in with the code; absent where nothing was assessed.' })
  radar_auth_attempt_id?: string;
}
