import { Injectable } from '@nestjs/common';
import { AuthorizationCodes } from '../authorization-codes.ts';
import type { SignInClient } from '../sign-in-client.ts';
import { SignInPeople } from '../sign-in-people.ts';
import { invalidGrant, invalidRequest } from '../sign-in-refusals.ts';
import type { Given, Grant, Proof } from './grant.ts';

/** The code that a browser brought from the pages for signing in. */
@Injectable()
export class AuthorizationCodeGrant implements Grant<'code'> {
  readonly type = 'authorization_code';
  readonly needs = ['code'] as const;
  readonly needsSecret = false;
  readonly isOAuth = true;

  constructor(
    private readonly codes: AuthorizationCodes,
    private readonly people: SignInPeople,
  ) {}

  /** @throws DomainError `invalid_request`, and as `AuthorizationCodes.require` */
  async prove({ context, code, code_verifier }: Given<'code'>, client: SignInClient): Promise<Proof> {
    if (!client.hasSecret && code_verifier === undefined) throw invalidRequest('code_verifier is required.');
    const { session_id: sessionId, user_id, chosen } = await this.codes.require(context, client, code, code_verifier);
    const user = await this.people.withId(context.environment, user_id);
    if (user === null) throw invalidGrant();
    return { sessionId, user, factor: null, chosen, isChallenged: false, holdsFactor: true, token: null };
  }
}
