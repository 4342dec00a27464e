import { Injectable } from '@nestjs/common';
import type { Authentication, AuthenticationMethod } from '#libs/contracts/src/sign-in/authentication';
import type { SessionMethod } from '#libs/contracts/src/sessions/session';
import type { RequestContext } from '#libs/platform/src/request-context';
import { Stamps } from '#libs/read-models/src/stamps';
import type { StoredMembership } from '../domain/membership.decider.ts';
import type { StoredSession } from '../domain/session.decider.ts';
import { toPublicUser, type StoredUser } from '../domain/user.decider.ts';
import { LAST_SIGN_IN } from '../readers/last-sign-ins.ts';
import { AccessTokens } from './access-tokens.ts';
import { RefreshFamilies, type ReadFamily } from './refresh-families.ts';

const METHODS: Partial<Readonly<Record<SessionMethod, AuthenticationMethod>>> = { password: 'Password', magic_code: 'MagicAuth', sso: 'SSO' };

/** Somebody is signed in: all that is said of it. */
interface SignedIn {
  readonly user: StoredUser;
  readonly session: StoredSession;
  /** Of the organization that the tokens are for. */
  readonly membership: StoredMembership | null;
  readonly claims: Awaited<ReturnType<AccessTokens['claims']>>;
  readonly read: ReadFamily;
  /** Of the refresh token. */
  readonly generation: number;
}

/** Answers who is signed in, with tokens. */
@Injectable()
export class Authentications {
  constructor(
    private readonly tokens: AccessTokens,
    private readonly families: RefreshFamilies,
    private readonly stamps: Stamps,
  ) {}

  async answer(context: RequestContext, { user, session, membership, claims, read, generation }: SignedIn): Promise<Authentication> {
    const times = { authenticatedAt: Date.parse(session.created_at), sessionEnd: Date.parse(session.expires_at) };
    const method = METHODS[session.auth_method];
    const [last = null] = await this.stamps.latest(LAST_SIGN_IN, context.environment, [user.id]);
    return {
      user: { ...toPublicUser(user), last_sign_in_at: last ?? session.created_at },
      ...(membership !== null && { organization_id: membership.organization_id }),
      access_token: await this.tokens.signed(context, claims, times),
      refresh_token: this.families.present(read, generation),
      ...(method !== undefined && { authentication_method: method }),
    };
  }
}
