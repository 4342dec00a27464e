import { Ref, Text } from '../fields.ts';
import { Command, ok, Operation, Query } from '../operation.ts';
import { User } from '../users/user.ts';
import { EmailVerification, EmailVerificationWithCode, UserAnswer } from './email-verification.ts';

@Operation({
  post: '/user_management/users/{id}/email_verification/send',
  owner: 'identity',
  summary: 'Send a code that verifies the address of a user',
  description: 'The code works once, for 10 minutes and five tries, and another one takes its place. Three in 60 seconds and 50 a day for an address.',
  answers: ok(UserAnswer),
  refuses: ['email_already_verified', 'daily_quota_exceeded'],
  emits: ['email_verification.created'],
})
export class SendEmailVerification extends Command<UserAnswer> {
  @Ref(() => User, { doc: 'The user.' }) id!: string;
}

@Operation({
  post: '/user_management/users/{id}/email_verification/confirm',
  owner: 'identity',
  summary: 'Verify the address of a user by a code',
  description:
    'Where it is the first proof of the address, password, factors and sessions of before are removed: somebody else may have set them. To keep the password, sign in with it and go on with the grant for email verification.',
  answers: ok(UserAnswer),
  refuses: [
    'email_previously_verified',
    'email_verification_code_previously_used',
    'email_verification_code_expired',
    'email_verification_code_incorrect',
    'one_time_code_too_many_attempts',
  ],
  emits: ['user.updated'],
})
export class ConfirmEmailVerification extends Command<UserAnswer> {
  @Ref(() => User, { doc: 'The user.' }) id!: string;
  @Text({ doc: 'The code that was sent.', min: 1, max: 64, secret: true, example: '123456' }) code!: string;
}

@Operation({
  get: '/user_management/email_verification/{id}',
  owner: 'identity',
  summary: 'Get a code that verifies an address',
  description: 'Until another one has taken its place. The setting `readable_codes` of the environment may forbid it.',
  answers: ok(EmailVerificationWithCode),
  refuses: ['forbidden'],
})
export class GetEmailVerification extends Query<EmailVerificationWithCode> {
  @Ref(() => EmailVerification, { doc: 'The code, by its id.' }) id!: string;
}
