import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { CreatedMagicAuth, MagicAuthWithCode } from '#libs/contracts/src/magic-auth/magic-auth';
import { CreateMagicAuth, GetMagicAuth } from '#libs/contracts/src/magic-auth/operations';
import { storedEmail } from '#libs/contracts/src/text-formats';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { magicAuthDecider, shownCode } from '../domain/one-time-code.decider.ts';
import { foldedEmail, type StoredUser } from '../domain/user.decider.ts';
import { RadarAttempts } from '../risk/radar-attempts.ts';
import { magicAuthsView } from '../views/one-time-codes.view.ts';
import { AbsentCodes } from './absent-codes.ts';
import { CodePolicies } from './code-policies.ts';
import { CodeRequests } from './code-requests.ts';
import { DeliverableAddresses } from './deliverable-addresses.ts';
import { InvitationTokens, invalidInvitation } from './invitation-tokens.ts';
import { Mailboxes } from './mailboxes.ts';
import { SentCodes, type SentCode } from './sent-codes.ts';

const LIFETIME = 10 * 60_000;

@Injectable()
export class MagicAuths {
  private readonly sent: SentCode<'magic_auth'>;

  constructor(
    private readonly mailboxes: Mailboxes,
    private readonly policies: CodePolicies,
    private readonly requests: CodeRequests,
    private readonly addresses: DeliverableAddresses,
    private readonly invitations: InvitationTokens,
    private readonly absent: AbsentCodes,
    private readonly attempts: RadarAttempts,
    codes: SentCodes,
  ) {
    this.sent = codes.of('magic_auth', magicAuthDecider, magicAuthsView);
  }

  @Handles(CreateMagicAuth)
  async create({ context, email: given, ip_address, user_agent, invitation_token, radar_auth_attempt_id }: CreateMagicAuth): Promise<CreatedMagicAuth> {
    const email = storedEmail(given);
    const { maySignUp } = await this.policies.requireMagicAuth(context);
    const isInvited = invitation_token !== undefined && (await this.requireInvited(context, invitation_token, email));
    if (!(await this.sent.isMade(context))) {
      await this.requests.count(context, 'magic_auth', email, ip_address);
      await this.addresses.require(email, () => this.mailboxes.userOf(context, email));
    }
    const user = await this.userOf(context, email, maySignUp || isInvited);
    const code = await this.sent.create(context, user, LIFETIME);
    const attempt = { email, ipAddress: ip_address ?? null, userAgent: user_agent ?? null, deviceId: null };
    const attemptId = await this.attempts.ofCode(context, attempt, radar_auth_attempt_id ?? null);
    return { ...shownCode(code), code: await this.sent.digits(context, code), ...(attemptId !== null && { radar_auth_attempt_id: attemptId }) };
  }

  @Handles(GetMagicAuth)
  async get({ context, id }: GetMagicAuth): Promise<MagicAuthWithCode> {
    const { code } = await this.sent.read(context, id);
    return { ...shownCode(code), code: await this.sent.digits(context, code) };
  }

  /**
   * Spends a code on a session: the log lets one session have it, whichever replicas are asked. The same session may ask again for 30 s. The address is verified by it. Takes
   * two places among the aggregates that the command asks.
   * @throws DomainError `invalid_one_time_code`, also where nobody has the address; `one_time_code_previously_used`, `one_time_code_expired`,
   *   `one_time_code_too_many_attempts`
   */
  async redeem(
    context: RequestContext,
    { email, code, sessionId }: { readonly email: string; readonly code: string; readonly sessionId: string },
  ): Promise<{ readonly user: StoredUser; readonly magicAuthId: string }> {
    const user = await this.mailboxes.userOf(context, storedEmail(email));
    const redeemed = await this.sent.redeem(context, user, { given: code, by: sessionId, hasPassword: false, mailbox: foldedEmail(email) });
    return { user: redeemed.user, magicAuthId: redeemed.code.id };
  }

  private async userOf(context: RequestContext, email: string, maySignUp: boolean): Promise<StoredUser> {
    try {
      return await this.mailboxes.userOfOrNew(context, email, maySignUp);
    } catch (error) {
      if (error instanceof DomainError && error.code === 'sign_up_not_allowed') await this.absent.ask(context, 'magic_auth', foldedEmail(email));
      throw error;
    }
  }

  /** @throws DomainError `invitation_invalid`, also where it was sent to somebody else */
  private async requireInvited(context: RequestContext, token: string, email: string): Promise<true> {
    try {
      await this.invitations.requireUsable(context, await this.invitations.find(context, token), { email });
    } catch (error) {
      throw error instanceof DomainError && error.code === 'invitation_cannot_be_used_for_email' ? invalidInvitation() : error;
    }
    return true;
  }
}
