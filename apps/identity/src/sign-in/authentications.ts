import { Injectable } from '@nestjs/common';
import type { Authentication, AuthenticationMethod } from '#libs/contracts/src/sign-in/authentication';
import type { SessionMethod } from '#libs/contracts/src/sessions/session';
import type { RequestContext } from '#libs/platform/src/request-context';
import type { StoredMembership } from '../domain/membership.decider.ts';
import type { StoredSession } from '../domain/session.decider.ts';
import { type StoredUser } from '../domain/user.decider.ts';
import { AccessTokens } from './access-tokens.ts';
import { RefreshFamilies, type ReadFamily } from './refresh-families.ts';
import { ShownUsers } from '../readers/shown-users.ts';

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
    private readonly users: ShownUsers,
  ) {}

  async answer(context: RequestContext, { user, session, membership, claims, read, generation }: SignedIn): Promise<Authentication> {
    const times = { authenticatedAt: Date.parse(session.created_at), sessionEnd: Date.parse(session.expires_at) };
    const method = METHODS[session.auth_method];
    const shown = await this.users.one(context.environment, user);
    // The time of this sign-in is stored a moment later.
    const last_sign_in_at = shown.last_sign_in_at !== null && shown.last_sign_in_at > session.created_at ? shown.last_sign_in_at : session.created_at;
    return {
      user: { ...shown, last_sign_in_at },
      ...(membership !== null && { organization_id: membership.organization_id }),
      access_token: await this.tokens.signed(context, claims, times),
      refresh_token: this.families.present(read, generation),
      ...(method !== undefined && { authentication_method: method }),
    };
  }
}
