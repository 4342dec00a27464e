import { Injectable } from '@nestjs/common';
import type { UserAnswer } from '#libs/contracts/src/email-verification/email-verification';
import { Handles } from '#libs/contracts/src/handles';
import { ConfirmPasswordReset, CreatePasswordReset, GetPasswordReset } from '#libs/contracts/src/password-reset/operations';
import type { PasswordResetWithToken } from '#libs/contracts/src/password-reset/password-reset';
import { storedEmail } from '#libs/contracts/src/text-formats';
import { mayHaveRun } from '#libs/event-sourcing/src/deciding/repeats';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { isOfUser, passwordResetDecider, shownReset, type StoredCode } from '../domain/one-time-code.decider.ts';
import { requireUser, resetPassword, userDecider, type StoredUser } from '../domain/user.decider.ts';
import { EnvironmentPasswordRules } from '../passwords/password-rules.ts';
import { Passwords } from '../passwords/passwords.ts';
import { passwordResetsView } from '../views/one-time-codes.view.ts';
import { ApplicationLinks } from './application-links.ts';
import { CodePolicies } from './code-policies.ts';
import { CodeRequests } from './code-requests.ts';
import { Mailboxes } from './mailboxes.ts';
import { idInToken } from './one-time-codes.ts';
import { SentCodes, type SentCode } from './sent-codes.ts';
import { ShownUsers } from '../readers/shown-users.ts';

const LIFETIME = 60 * 60_000;

@Injectable()
export class PasswordResets {
  private readonly sent: SentCode<'password_reset'>;

  constructor(
    private readonly repository: Repository,
    private readonly mailboxes: Mailboxes,
    private readonly policies: CodePolicies,
    private readonly passwords: Passwords,
    private readonly rules: EnvironmentPasswordRules,
    private readonly requests: CodeRequests,
    private readonly links: ApplicationLinks,
    private readonly users: ShownUsers,
    private readonly clock: Clock,
    codes: SentCodes,
  ) {
    this.sent = codes.of('password_reset', passwordResetDecider, passwordResetsView);
  }

  @Handles(CreatePasswordReset)
  async create({ context, email: given }: CreatePasswordReset): Promise<PasswordResetWithToken> {
    const email = storedEmail(given);
    await this.policies.requirePasswords(context);
    if (!(await this.sent.isMade(context))) await this.requests.count(context, 'password_reset', email);
    const user = await this.mailboxes.userOf(context, email);
    if (user === null) throw notFound('User', email);
    return this.shown(context, await this.sent.create(context, user, LIFETIME));
  }

  @Handles(GetPasswordReset)
  async get({ context, id }: GetPasswordReset): Promise<PasswordResetWithToken> {
    return this.shown(context, (await this.sent.read(context, id)).code);
  }

  @Handles(ConfirmPasswordReset)
  async confirm({ context, token, new_password }: ConfirmPasswordReset): Promise<UserAnswer> {
    await this.policies.requirePasswords(context);
    const { code, user } = await this.named(context, token);
    const password = await this.stored(context, user, new_password);
    const { id, email, expires_at, created_at, credentials_version } = code;
    const reset = { id, email, expires_at, created_at, ...(credentials_version !== undefined && { credentials_version }) };
    const { state } = await this.repository.transact(userDecider, context, user.id, resetPassword(user.id, reset, password));
    return { user: await this.users.one(context.environment, requireUser(state, user.id)) };
  }

  /**
   * What a token names, found by it alone. A command that comes again finds its own.
   * @throws DomainError `entity_not_found` where it is no token, or of no use any more; it quotes what is no secret of it
   */
  private async named(context: RequestContext, token: string): Promise<{ readonly code: StoredCode<'password_reset'>; readonly user: StoredUser }> {
    const id = idInToken('password_reset', token);
    if (id === null) throw notFound('Password reset', 'unknown token');
    const found = await this.sent.find(context, id);
    if (found === null || !(await this.sent.isToken(context, found.code, token))) throw notFound('Password reset', id);
    const isDead = Date.parse(found.code.expires_at) <= this.clock.now() || !isOfUser(found.code, found.user);
    if (isDead && !mayHaveRun(context)) throw notFound('Password reset', id);
    return found;
  }

  /** @throws DomainError `password_reset_error` with an item for each thing that is wrong with the password */
  private async stored(context: RequestContext, { email }: StoredUser, password: string) {
    try {
      return (await this.passwords.stored({ password }, context.deadline, await this.rules.of(context, email)))!;
    } catch (error) {
      if (!(error instanceof DomainError && error.code === 'password_strength_error')) throw error;
      const errors = error.details.errors?.map((item) => ({ ...item, field: 'new_password' }));
      throw new DomainError('invalid', 'password_reset_error', error.message, { errors });
    }
  }

  private async shown(context: RequestContext, code: StoredCode<'password_reset'>): Promise<PasswordResetWithToken> {
    const token = await this.sent.token(context, code);
    return { ...shownReset(code), password_reset_token: token, password_reset_url: this.links.passwordReset(token) };
  }
}
