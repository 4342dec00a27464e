import type { Authentication } from '#libs/contracts/src/sign-in/authentication';
import type { Authenticate } from '#libs/contracts/src/sign-in/operations';
import type { Factor } from '../../domain/session.decider.ts';
import type { StoredUser } from '../../domain/user.decider.ts';
import type { SignInClient } from '../sign-in-client.ts';

/** What a body may have to have. */
type Field =
  | 'email'
  | 'password'
  | 'code'
  | 'refresh_token'
  | 'pending_authentication_token'
  | 'authentication_challenge_id'
  | 'organization_id'
  | 'radar_challenge_id'
  | 'device_code';

/** A body that has these fields. */
export type Given<Name extends Field = Field> = Authenticate & { readonly [Each in Name]: string };

interface Described<Name extends Field> {
  /** As the body has it; `{vendor}` stands for each word that is taken there. */
  readonly type: string;
  /** Without one of them the request is invalid. */
  readonly needs: readonly Name[];
  readonly needsSecret: boolean;
  /** Whatever is wrong with what it brought is `invalid_grant`, as RFC 6749 has it. */
  readonly isOAuth?: true;
}

/** One way to show who signs in. */
export interface Grant<Name extends Field = Field> extends Described<Name> {
  /** @throws DomainError where nothing is proven: the codes are the grant's own */
  prove(given: Given<Name>, client: SignInClient): Promise<Proof>;
}

/** One way to go on with a session that has begun: no gate is asked. */
export interface RenewingGrant<Name extends Field = Field> extends Described<Name> {
  /** @throws DomainError where the session does not go on: the codes are the grant's own */
  renew(given: Given<Name>, client: SignInClient): Promise<Authentication>;
}

/** What a grant found out. The gates decide what comes of it. */
export interface Proof {
  /** The session that this becomes, or goes on to become. */
  readonly sessionId: string;
  readonly user: StoredUser;
  /** What was proven with this request; null: nothing, something was chosen. */
  readonly factor: Factor | null;
  /** The organization that the user chose, with this request or before. */
  readonly chosen: string | null;
  /** Whether a code is asked for, since something speaks against this sign-in. */
  readonly isChallenged: boolean;
  /**
   * Whether it is the one who asks now that proved the second factor, with this request or the token that it came with. Two who showed the same code go on with one sign-in,
   * and what the one proves says nothing of the other.
   */
  readonly holdsFactor: boolean;
  /** The token that this request came with; null: it is the first. */
  readonly token: string | null;
  /** What is still to be done once the request was decided, whatever came of it. */
  readonly afterwards?: () => Promise<void>;
}
