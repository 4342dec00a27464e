/** What is so, for whoever judges by it who may sign in: shapes alone, no rule. Times are milliseconds since the epoch. */

export type Gate = 'radar_challenge' | 'email_verification_required' | 'mfa_challenge' | 'mfa_enrollment' | 'organization_selection_required';
export type Kind = 'magic_auth' | 'email_verification' | 'radar_challenge' | 'password_reset';
/** By whom, and when. */
export type Use = { readonly by: unknown; readonly at: number } | null;
/** `resetAt`: what began then or before is over; `removed`: the address was proven by somebody who need not have set what was there. */
export type User = { readonly id: string; email: string; isVerified: boolean; password: string | null; isThere: boolean; resetAt: number; removed: Use };
export type Organization = { readonly id: string; isThere: boolean; asksFactor: boolean; readonly members: Map<User, Membership> };
export type Membership = { isActive: boolean };
/** `taken`: by which challenge the code of a half minute was. */
export type Factor = {
  readonly id: string;
  readonly user: User;
  readonly at: number;
  verifiedAt: number | null;
  isThere: boolean;
  readonly taken: Map<number, Challenge>;
};
export type Challenge = { readonly id: string; readonly factor: Factor; readonly until: number; tries: number; use: Use };
export type Code = { readonly id: string; readonly text: string; readonly email: string; readonly at: number; readonly until: number; tries: number; use: Use };
export type Invitation = {
  readonly id: string;
  readonly email: string;
  readonly organization: Organization;
  readonly until: number;
  isRevoked: boolean;
  use: Use;
};
/** One way in, from its first proof on. */
export type Flow = { readonly user: User; readonly proven: string[]; beganAt: number; session: Session | null };
export type Pending = {
  readonly flow: Flow;
  chosen: Organization | null;
  isChallenged: boolean;
  /** Whether a second factor was shown by the client that holds it. */
  holdsFactor: boolean;
  readonly invitation: Invitation | null;
  readonly until: number;
};
/** What a browser or a device stands for; `flow`: null until somebody decides. */
export type Carried = { flow: Flow | 'denied' | null; readonly isOwn: boolean; readonly until: number };
/** `turnedAt`: when each of its refresh tokens was turned; the present one has that number. */
export type Session = {
  readonly flow: Flow;
  readonly at: number;
  readonly organization: Organization | null;
  readonly membership: Membership | null;
  readonly hasFactor: boolean;
  readonly turnedAt: number[];
  present: Organization | null;
  idleUntil: number;
  isEnded: boolean;
};
export type Verdict =
  | { readonly outcome: 'token'; readonly session: Session; readonly organization: Organization | null }
  | { readonly outcome: 'asked'; readonly gate: Gate; readonly pending: Pending }
  | { readonly outcome: 'refused' };
