import { UserAnswer } from '../email-verification/email-verification.ts';
import { Picked, Ref, Text } from '../fields.ts';
import { Command, created, ok, Operation, Query } from '../operation.ts';
import { User } from '../users/user.ts';
import { PasswordReset, PasswordResetWithToken } from './password-reset.ts';

@Operation({
  post: '/user_management/password_reset',
  owner: 'identity',
  summary: 'Create a token to reset a password with',
  description: 'The token works once, for 60 minutes, and another one takes its place. Three in 60 seconds and 50 a day for an address.',
  answers: created(PasswordResetWithToken),
  refuses: ['entity_not_found', 'email_password_auth_disabled', 'daily_quota_exceeded'],
  emits: ['password_reset.created'],
})
export class CreatePasswordReset extends Command<PasswordResetWithToken> {
  @Picked(User) email!: string;
}

@Operation({
  post: '/user_management/password_reset/confirm',
  owner: 'identity',
  summary: 'Reset a password',
  description:
    'The address is verified by it, and sessions that began before end. A token that was used, has expired, or was replaced is not found; so is one whose user has another address by now.',
  answers: ok(UserAnswer),
  refuses: ['entity_not_found', 'email_password_auth_disabled', 'password_reset_error'],
  emits: ['password_reset.succeeded', 'user.updated'],
})
export class ConfirmPasswordReset extends Command<UserAnswer> {
  @Text({ doc: 'The token that was sent.', min: 1, max: 255, secret: true }) token!: string;
  @Text({ doc: 'At least 10 characters, and not a common one.', max: 1024, secret: true, example: 'ride-a-giraffe-7' }) new_password!: string;
}

@Operation({
  get: '/user_management/password_reset/{id}',
  owner: 'identity',
  summary: 'Get a token to reset a password with',
  description: 'Until another one has taken its place. The setting `readable_codes` of the environment may forbid it.',
  answers: ok(PasswordResetWithToken),
  refuses: ['forbidden'],
})
export class GetPasswordReset extends Query<PasswordResetWithToken> {
  @Ref(() => PasswordReset, { doc: 'The token, by its id.' }) id!: string;
}
