import { createHash, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Naming } from '#libs/event-sourcing/src/log/naming';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ShortLived } from '#libs/read-models/src/short-lived';
import { ShortLivedValues } from '#libs/read-models/src/short-lived-values';
import type { SignInClient } from './sign-in-client.ts';
import { invalidGrant, invalidRequest } from './sign-in-refusals.ts';

const COLLECTION = 'authorization_codes';
const LIFETIME_MS = 10 * 60_000;

/** A sign-in that a browser has been through, as far as its client comes to fetch it. */
export interface Authorization {
  readonly client_id: string;
  readonly session_id: string;
  readonly user_id: string;
  /** The organization that the user chose; null: none. */
  readonly chosen: string | null;
}

interface Stored extends Authorization {
  readonly environment: string;
  /** S256 (RFC 7636): the only method that there is. Null: the client sent none. */
  readonly code_challenge: string | null;
}

/** Codes that a browser carries to its application. A code names its session, which begins once: the log makes it single use. */
@Injectable()
export class AuthorizationCodes {
  private readonly entries: ShortLivedValues<Stored>;

  constructor(
    private readonly secrets: ShownSecrets,
    private readonly naming: Naming,
    private readonly clock: Clock,
    store: ShortLived,
  ) {
    this.entries = new ShortLivedValues(store, COLLECTION);
  }

  /** A repeated command answers the same one. */
  async issue(context: RequestContext, authorization: Authorization, code_challenge: string | null): Promise<string> {
    const code = (await this.secrets.of(context, 'authorization_code')).toString('base64url');
    const stored: Stored = { ...authorization, code_challenge, environment: context.environment };
    await this.entries.put(this.keyOf(code), stored, this.clock.now() + LIFETIME_MS);
    return code;
  }

  /**
   * What a code stands for, once the client has shown that it is the one that began: by the verifier wherever there was a challenge, its secret or not.
   * @throws DomainError `invalid_grant`, `invalid_request`, `code_challenge_not_found`
   */
  async require({ environment }: RequestContext, { id, hasSecret }: SignInClient, code: string, verifier: string | undefined): Promise<Authorization> {
    const stored = (await this.entries.get(this.keyOf(code)))?.value;
    if (stored?.environment !== environment || stored.client_id !== id) throw invalidGrant();
    const { code_challenge: challenge, environment: _, ...authorization } = stored;
    if (challenge === null) {
      if (verifier !== undefined) throw new DomainError('invalid', 'code_challenge_not_found', 'The sign-in began without a code challenge.');
      if (!hasSecret) throw invalidRequest('client_secret is required.');
    } else if (verifier === undefined) {
      throw invalidRequest('code_verifier is required.');
    } else if (!isVerifiedBy(challenge, verifier)) {
      throw invalidGrant();
    }
    return authorization;
  }

  /** Whoever reads the store learns no code. */
  private keyOf(code: string): string {
    return this.naming.keyOf(COLLECTION, code);
  }
}

function isVerifiedBy(challenge: string, verifier: string): boolean {
  const [expected, shown] = [Buffer.from(challenge), Buffer.from(createHash('sha256').update(verifier).digest('base64url'))];
  return expected.length === shown.length && timingSafeEqual(expected, shown);
}
