import { Injectable } from '@nestjs/common';
import type { EmailVerificationWithCode, UserAnswer } from '#libs/contracts/src/email-verification/email-verification';
import { ConfirmEmailVerification, GetEmailVerification, SendEmailVerification } from '#libs/contracts/src/email-verification/operations';
import { Handles } from '#libs/contracts/src/handles';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { emailVerificationDecider, shownCode, type StoredCode } from '../domain/one-time-code.decider.ts';
import { type StoredUser } from '../domain/user.decider.ts';
import { emailVerificationsView } from '../views/one-time-codes.view.ts';
import { usersView } from '../views/users.view.ts';
import { CodeRequests } from './code-requests.ts';
import { SentCodes, type SentCode } from './sent-codes.ts';
import { ShownUsers } from '../readers/shown-users.ts';

const LIFETIME = 10 * 60_000;

/** What the confirmation of an address calls what sign-in calls otherwise. */
const CONFIRMATION_CODES: Readonly<Record<string, string>> = {
  invalid_one_time_code: 'email_verification_code_incorrect',
  one_time_code_previously_used: 'email_verification_code_previously_used',
  one_time_code_expired: 'email_verification_code_expired',
};

@Injectable()
export class EmailVerifications {
  private readonly sent: SentCode<'email_verification'>;
  private readonly users: Table<StoredUser>;

  constructor(
    private readonly requests: CodeRequests,
    private readonly shown: ShownUsers,
    codes: SentCodes,
    readModels: ReadModels,
  ) {
    this.sent = codes.of('email_verification', emailVerificationDecider, emailVerificationsView);
    this.users = readModels.table(tableOf(usersView));
  }

  @Handles(SendEmailVerification)
  async send({ context, id }: SendEmailVerification): Promise<UserAnswer> {
    const user = contentOf(await this.users.require(context, id));
    if (!(await this.sent.isMade(context))) {
      if (user.email_verified) throw new DomainError('conflict', 'email_already_verified', 'The email is verified already.');
      await this.create(context, user);
    }
    return { user: await this.shown.one(context.environment, user) };
  }

  @Handles(ConfirmEmailVerification)
  async confirm({ context, id, code }: ConfirmEmailVerification): Promise<UserAnswer> {
    const user = contentOf(await this.users.require(context, id));
    try {
      const confirmed = await this.redeem(context, { userId: id, code, redeemedBy: context.commandId, hasPassword: false });
      return { user: await this.shown.one(context.environment, confirmed) };
    } catch (error) {
      throw asConfirmationError(error, user);
    }
  }

  @Handles(GetEmailVerification)
  async get({ context, id }: GetEmailVerification): Promise<EmailVerificationWithCode> {
    const { code } = await this.sent.read(context, id);
    return { ...shownCode(code), code: await this.sent.digits(context, code) };
  }

  /**
   * Another code for the address of a user. Takes one place among the aggregates that the command asks.
   * @throws DomainError `rate_limit_exceeded`, `daily_quota_exceeded`
   */
  async create(context: RequestContext, user: StoredUser): Promise<StoredCode<'email_verification'>> {
    await this.requests.count(context, 'email_verification', user.email ?? '');
    return this.sent.create(context, user, LIFETIME);
  }

  /**
   * The code that works, where there is one, or else another: a sign-in that is tried again needs no further mail.
   * @throws DomainError as `create`
   */
  async current(context: RequestContext, user: StoredUser): Promise<StoredCode<'email_verification'>> {
    return (await this.sent.working(context, user)) ?? this.create(context, user);
  }

  /**
   * Spends a code on a session, or on the command that confirms an address; as `MagicAuths.redeem`.
   * @throws DomainError as that
   */
  async redeem(
    context: RequestContext,
    { userId, code, redeemedBy, hasPassword }: { readonly userId: string; readonly code: string; readonly redeemedBy: string; readonly hasPassword: boolean },
  ): Promise<StoredUser> {
    const row = await this.users.find(context, userId);
    return (await this.sent.redeem(context, row === null ? null : contentOf(row), { given: code, by: redeemedBy, hasPassword })).user;
  }
}

/** Where the address is verified, a code is of no use, whether it is right or not. */
function asConfirmationError(error: unknown, { email_verified }: StoredUser): unknown {
  const code = error instanceof DomainError ? CONFIRMATION_CODES[error.code] : undefined;
  if (code === undefined) return error;
  const { kind, message } = error as DomainError;
  const isUseless = email_verified && code !== 'email_verification_code_previously_used';
  return isUseless ? new DomainError('conflict', 'email_previously_verified', 'The email is verified already.') : new DomainError(kind, code, message);
}
