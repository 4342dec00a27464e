import { Injectable } from '@nestjs/common';
import { DomainError } from '#libs/platform/src/domain-error';
import { ContinuedSignIns } from '../continued-sign-ins.ts';
import { PendingAuthentications, proofOf } from '../pending-authentications.ts';
import type { SignInClient } from '../sign-in-client.ts';
import { SignInPeople } from '../sign-in-people.ts';
import type { Given, Grant, Proof } from './grant.ts';

/** The organization that somebody chose who is a member of several. */
@Injectable()
export class OrganizationSelectionGrant implements Grant<'organization_id' | 'pending_authentication_token'> {
  readonly type = 'urn:{vendor}:oauth:grant-type:organization-selection';
  readonly needs = ['organization_id', 'pending_authentication_token'] as const;
  readonly needsSecret = true;

  constructor(
    private readonly continued: ContinuedSignIns,
    private readonly pending: PendingAuthentications,
    private readonly people: SignInPeople,
  ) {}

  /** @throws DomainError `invalid_pending_authentication_token`, `invalid_organization_id` */
  async prove(
    { context, organization_id, pending_authentication_token: token }: Given<'organization_id' | 'pending_authentication_token'>,
    client: SignInClient,
  ): Promise<Proof> {
    const { pending, user, begun } = await this.continued.require(context, client, token);
    if ((await this.people.membership(context, user.id, organization_id)) === null)
      throw new DomainError('invalid', 'invalid_organization_id', 'The user is no active member of this organization.');
    // Where the session has begun, nothing is chosen any more.
    if (begun !== null) await this.pending.choose(token, organization_id);
    return { ...proofOf(pending, token), user, factor: null, chosen: organization_id };
  }
}
