import { Const, Flag, Id, Nested, OneOf, Optional, Ref, Text, Time, without } from '../fields.ts';
import { User } from '../users/user.ts';

/** `webauthn` is among those that are shown only. */
export const FACTOR_TYPES = ['totp', 'sms', 'generic_otp', 'webauthn'] as const;

/** How an authenticator app shows the factor. */
export class TotpFactor {
  @Text({ doc: 'Your application, as the authenticator app shows it.', min: 1, max: 255, personal: true, example: 'Acme' }) issuer!: string;
  @Text({ doc: 'The person, as the authenticator app shows them.', min: 1, max: 255, personal: true, example: 'ada@acme.test' }) user!: string;
}

/** A factor with what the authenticator app needs. It cannot be shown again. */
export class EnrolledTotpFactor extends TotpFactor {
  @Text({ doc: 'The secret in base 32, to be typed in.', secret: true }) secret!: string;
  @Text({ doc: 'A QR code of `uri`: a data URL of a PNG.', secret: true }) qr_code!: string;
  @Text({ doc: 'Everything together: an `otpauth` URI.', secret: true }) uri!: string;
}

export class SmsFactor {
  @Text({ doc: 'The number that codes are sent to, as E.164 writes it.', max: 16, personal: true, example: '+4915112345678' }) phone_number!: string;
}

/** Something that a person has beside a password, or a mailbox: it counts once it was verified. */
export class AuthenticationFactor {
  @Const('authentication_factor') object!: 'authentication_factor';
  @Id('auth_factor', { doc: 'Identifies the factor; not a secret.' }) id!: string;
  @OneOf(FACTOR_TYPES, { doc: 'What it is.' }) type!: (typeof FACTOR_TYPES)[number];
  @Optional() @Ref(() => User, { doc: 'Whose it is; absent: your application knows.' }) user_id?: string;
  @Optional() @Nested(() => TotpFactor, { doc: 'Of type `totp`.' }) totp?: TotpFactor;
  @Optional() @Nested(() => SmsFactor, { doc: 'Of type `sms`.' }) sms?: SmsFactor;
  @Time({ doc: 'When it was enrolled.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

export class EnrolledAuthenticationFactor extends without(AuthenticationFactor, 'totp') {
  @Optional() @Nested(() => EnrolledTotpFactor, { doc: 'Of type `totp`.' }) totp?: EnrolledTotpFactor;
}

/** A factor is to be proven: five codes may be tried. */
export class AuthenticationChallenge {
  @Const('authentication_challenge') object!: 'authentication_challenge';
  @Id('auth_challenge', { doc: 'Identifies the challenge; not a secret.' }) id!: string;
  @Optional() @Time({ doc: 'When its code stops working; absent for `totp`, whose codes come and go.' }) expires_at?: string;
  @Ref(() => AuthenticationFactor, { doc: 'The factor.' }) authentication_factor_id!: string;
  @Optional()
  @Text({ doc: 'Of type `generic_otp`, in the answer that creates it: six digits for you to deliver to the person.', secret: true, example: '123456' })
  code?: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

export class AuthenticationChallengeVerification {
  @Nested(() => AuthenticationChallenge, { doc: 'The challenge.' }) challenge!: AuthenticationChallenge;
  @Flag({ doc: 'Whether the code was right.' }) valid!: boolean;
}

export class UserAuthenticationFactor {
  @Nested(() => EnrolledAuthenticationFactor, { doc: 'The factor, which counts once it was verified.' }) authentication_factor!: EnrolledAuthenticationFactor;
  @Nested(() => AuthenticationChallenge, { doc: 'A challenge to verify it by.' }) authentication_challenge!: AuthenticationChallenge;
}
