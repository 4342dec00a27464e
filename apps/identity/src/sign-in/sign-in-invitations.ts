import { Injectable } from '@nestjs/common';
import type { Authenticate } from '#libs/contracts/src/sign-in/operations';
import { passOver } from '#libs/event-sourcing/src/deciding/repository';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { InvitationAcceptance } from '../codes/invitation-acceptance.ts';
import { InvitationTokens, invalidInvitation } from '../codes/invitation-tokens.ts';
import type { StoredInvitation } from '../domain/invitation.decider.ts';
import type { StoredUser } from '../domain/user.decider.ts';

/** Invitations that people sign in with. None is used up before the session begins. */
@Injectable()
export class SignInInvitations {
  constructor(
    private readonly tokens: InvitationTokens,
    private readonly acceptance: InvitationAcceptance,
  ) {}

  /**
   * Asked before anything is compared, so that a wrong invitation spends no code; null where none is shown.
   * @throws DomainError `invitation_invalid`, `invitation_cannot_be_used_for_email`
   */
  async shown({ context, invitation_token: token, email }: Authenticate): Promise<StoredInvitation | null> {
    const found = token === undefined ? null : await this.tokens.find(context, token);
    return token === undefined ? null : this.tokens.requireUsable(context, found, { email });
  }

  /**
   * By whoever signs in. Takes three places among the aggregates that the command asks.
   * @throws DomainError as `shown`
   */
  async accept(context: RequestContext, id: string, user: StoredUser): Promise<void> {
    const found = await this.tokens.withId(context, id);
    const invitation = await this.tokens.requireUsable(context, found, { email: user.email ?? '', userId: user.id });
    if (invitation.state === 'accepted') {
      for (let place = 0; place < 3; place++) passOver(context);
      return;
    }
    try {
      await this.acceptance.accept(context, invitation, user.id);
    } catch (error) {
      throw error instanceof DomainError && error.kind !== 'unavailable' ? invalidInvitation() : error;
    }
  }
}
