import { OneOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { PageQuery } from '../pages.ts';
import { User } from '../users/user.ts';
import {
  AuthenticationChallenge,
  AuthenticationChallengeVerification,
  AuthenticationFactor,
  EnrolledAuthenticationFactor,
  TotpFactor,
  UserAuthenticationFactor,
} from './authentication-factor.ts';

const ENROLLED_TYPES = ['totp', 'sms', 'generic_otp'] as const;
const SHOWN_ONCE = 'Secret, QR code and URI are shown in this answer only; the same request again, with the same `Idempotency-Key`, answers the same.';

@Operation({
  post: '/auth/factors/enroll',
  owner: 'identity',
  summary: 'Enrol a factor',
  description: `\`totp\` needs \`totp_issuer\` and \`totp_user\`, \`sms\` a \`phone_number\` of a country that the settings of the environment name. ${SHOWN_ONCE}`,
  answers: created(EnrolledAuthenticationFactor),
  refuses: ['sms_not_available', 'verified_phone_number_exists'],
})
export class EnrollAuthenticationFactor extends Command<EnrolledAuthenticationFactor> {
  @OneOf(ENROLLED_TYPES, { doc: 'What the person has: an authenticator app, a telephone, or a way of your own to receive codes.' })
  type!: (typeof ENROLLED_TYPES)[number];
  @Optional() @Picked(TotpFactor, 'issuer') totp_issuer?: string;
  @Optional() @Picked(TotpFactor, 'user') totp_user?: string;
  @Optional()
  @Text({
    doc: 'The number of type `sms`, as E.164 writes it; blanks and signs between its digits are left out.',
    min: 1,
    max: 40,
    personal: true,
    example: '+4915112345678',
  })
  phone_number?: string;
  @Optional() @Ref(() => User, { doc: 'Whose it is: then it counts at sign-in, once it was verified.' }) user_id?: string;
}

@Operation({
  get: '/auth/factors/{id}',
  owner: 'identity',
  summary: 'Get a factor',
  answers: ok(AuthenticationFactor),
})
export class GetAuthenticationFactor extends Query<AuthenticationFactor> {
  @Ref(() => AuthenticationFactor, { doc: 'The factor.' }) id!: string;
}

@Operation({
  delete: '/auth/factors/{id}',
  owner: 'identity',
  summary: 'Delete a factor',
  description: 'It counts no more, from the next sign-in on.',
  answers: empty(204),
})
export class DeleteAuthenticationFactor extends Command<void> {
  @Ref(() => AuthenticationFactor, { doc: 'The factor.' }) id!: string;
}

@Operation({
  post: '/auth/factors/{id}/challenge',
  owner: 'identity',
  summary: 'Challenge a factor',
  description:
    'Of `sms` a code is sent to the number; it works for 10 minutes, or until another one is asked for. Three are sent to a number in an hour, five to a user in a day. Of `generic_otp` the answer has the code, for you to deliver: it works for 10 minutes. Challenges of `totp` can be verified for a day.',
  answers: created(AuthenticationChallenge),
  refuses: ['sms_not_available', 'verified_phone_number_exists', 'daily_quota_exceeded'],
})
export class ChallengeAuthenticationFactor extends Command<AuthenticationChallenge> {
  @Ref(() => AuthenticationFactor, { doc: 'The factor.' }) id!: string;
  @Optional()
  @Text({
    doc: 'Of type `sms`: the text to send, with `{{code}}` where the code is to stand. Absent: words of this product, in the language of the user.',
    min: 8,
    max: 160,
    visible: true,
    pattern: /\{\{code\}\}/,
    personal: true,
    example: 'Your code for Acme is {{code}}.',
  })
  sms_template?: string;
}

@Operation({
  post: '/auth/challenges/{id}/verify',
  owner: 'identity',
  summary: 'Verify a challenge',
  description:
    'A wrong code is answered with `valid: false`. Five may be tried for a challenge, ten a minute and a hundred wrong ones a day for a factor; none works twice. A factor counts from its first verification on.',
  answers: created(AuthenticationChallengeVerification),
  refuses: [
    'authentication_challenge_previously_verified',
    'authentication_challenge_expired',
    'one_time_code_too_many_attempts',
    'verified_phone_number_exists',
  ],
})
export class VerifyAuthenticationChallenge extends Command<AuthenticationChallengeVerification> {
  @Ref(() => AuthenticationChallenge, { doc: 'The challenge.' }) id!: string;
  @Text({ doc: 'What the person typed in.', min: 1, max: 64, secret: true, example: '123456' }) code!: string;
}

@Operation({
  post: '/user_management/users/{user_id}/auth_factors',
  owner: 'identity',
  summary: 'Enrol a factor of a user',
  description: `With a challenge to verify it by, here or in a sign-in that asked for it. ${SHOWN_ONCE}`,
  answers: created(UserAuthenticationFactor),
})
export class EnrollUserAuthenticationFactor extends Command<UserAuthenticationFactor> {
  @Ref(() => User, { doc: 'The user.' }) user_id!: string;
  @OneOf(['totp'], { doc: 'What the person has: an authenticator app.' }) type!: 'totp';
  @Optional()
  @Text({ doc: 'Your application, as the authenticator app shows it. Absent: the name in the settings of the environment.', max: 255, example: 'Acme' })
  totp_issuer?: string;
  @Optional()
  @Text({ doc: 'The person, as the authenticator app shows them. Absent: the address of the user.', max: 255, personal: true, example: 'ada@acme.test' })
  totp_user?: string;
  @Optional()
  @Text({ doc: 'A secret of the person from elsewhere, in base 32: 80 bits or more. Absent: a new one.', max: 128, secret: true })
  totp_secret?: string;
}

@Operation({
  get: '/user_management/users/{user_id}/auth_factors',
  owner: 'identity',
  summary: 'List the factors of a user',
  answers: listOf(AuthenticationFactor),
})
export class ListUserAuthenticationFactors extends PageQuery<AuthenticationFactor> {
  @Ref(() => User, { doc: 'The user.' }) user_id!: string;
}
