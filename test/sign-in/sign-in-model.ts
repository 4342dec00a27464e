import type {
  Carried,
  Challenge,
  Code,
  Factor,
  Flow,
  Gate,
  Invitation,
  Kind,
  Membership,
  Organization,
  Pending,
  Session,
  Use,
  User,
  Verdict,
} from './facts.ts';

/** Who gets a token for what, as the documents have it: facts in memory, and the rules of signing in. It knows nothing of how the product keeps to them. */

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** Of a session: at the longest, and left alone. */
const LONGEST = 30 * DAY;
const IDLE = 7 * DAY;
/** A client that heard no answer, and tabs that refresh at once, may ask again for so long. */
export const REPEATED = 30_000;
const TRIES = 5;
/** So often a refresh token turns in that time at most. */
const TURNS = 8;
export const LIFETIMES = { code: 10 * MINUTE, reset: 60 * MINUTE, pending: 10 * MINUTE, challenge: DAY, authorization: 10 * MINUTE, device: 5 * MINUTE };

type Step = Pick<Pending, 'chosen' | 'isChallenged' | 'holdsFactor' | 'invitation'>;

const REFUSED: Verdict = { outcome: 'refused' };

export class SignInModel {
  now = 0;
  readonly users: User[] = [];
  readonly organizations: Organization[] = [];
  readonly factors: Factor[] = [];
  readonly sessions: Session[] = [];
  /** The last of each kind and user: another one voids it. */
  readonly codes = new Map<string, Code>();

  /** `invitation`: undefined where the token is none. */
  password(email: string, password: string, isProgram: boolean, invitation: Invitation | null): Verdict {
    const user = this.userWith(email);
    if (!this.isInvited(invitation, email) || user === undefined || user.password !== password) return REFUSED;
    return this.proceed(this.flowOf(user), 'password', { chosen: null, isChallenged: isProgram, holdsFactor: false, invitation });
  }

  magicCode(email: string, text: string, isProgram: boolean, invitation: Invitation | null): Verdict {
    const user = this.userWith(email);
    if (!this.isInvited(invitation, email) || user === undefined) return REFUSED;
    const flow = (this.codeOf('magic_auth', user)?.use?.by as Flow | undefined) ?? this.flowOf(user);
    if (!this.redeem('magic_auth', user, text, flow)) return REFUSED;
    return this.proceed(flow, 'magic_auth', { chosen: null, isChallenged: isProgram, holdsFactor: false, invitation });
  }

  /** The codes that are asked for beside something else; `id`: of the one that is meant. */
  askedCode(kind: 'email_verification' | 'radar_challenge', pending: Pending, text: string, id?: string): Verdict {
    if (!this.goesOn(pending) || !this.redeem(kind, pending.flow.user, text, pending.flow, id)) return REFUSED;
    if (kind === 'radar_challenge') pending.isChallenged = false;
    return this.proceed(pending.flow, kind === 'radar_challenge' ? null : kind, pending, pending);
  }

  /** `step`: the half minute that the code is of; null: none. */
  secondFactor(pending: Pending, challenge: Challenge, step: number | null): Verdict {
    const { flow } = pending;
    if (!this.goesOn(pending) || !this.isThere(challenge.factor) || challenge.factor.user !== flow.user) return REFUSED;
    const counting = this.counting(flow.user, flow.session?.at ?? flow.beganAt);
    if ((counting.length > 0 && !counting.includes(challenge.factor)) || !this.verify(challenge, step, flow)) return REFUSED;
    pending.holdsFactor = true;
    return this.proceed(flow, 'mfa', pending, pending);
  }

  organization(pending: Pending, organization: Organization): Verdict {
    const { flow } = pending;
    if (!this.goesOn(pending) || this.member(flow.user, organization) === null) return REFUSED;
    if (flow.session === null) pending.chosen = organization;
    return this.proceed(flow, null, { ...pending, chosen: organization }, pending);
  }

  /** An authorization code whose verifier was shown, or a device code. */
  carried({ flow, isOwn, until }: Carried, isProven: boolean): Verdict {
    if (!isOwn || !isProven || flow === null || flow === 'denied' || this.now >= until || this.isOver(flow)) return REFUSED;
    return this.proceed(flow, null, { chosen: null, isChallenged: false, holdsFactor: true, invitation: null });
  }

  /** `asked`: to switch to; `isClient`: the client whose session it is, with its secret. */
  refresh(session: Session, token: number, asked: Organization | null, isClient: boolean): Verdict {
    if (!isClient) return REFUSED;
    const { turnedAt } = session;
    const isRepeat = token < turnedAt.length;
    if (isRepeat && this.now - turnedAt[token]! > REPEATED) session.isEnded = true;
    const wanted = asked ?? session.present;
    const isMember = wanted === null || this.member(session.flow.user, wanted) !== null;
    if (this.lives(session) && asked === null && !isMember) session.isEnded = true;
    if (!this.lives(session) || !isMember || (wanted?.asksFactor === true && !session.hasFactor)) return REFUSED;
    if (!isRepeat) {
      if (!(this.now - (turnedAt.at(-TURNS) ?? -Infinity) <= REPEATED)) turnedAt.push(this.now);
      [session.present, session.idleUntil] = [wanted, this.now + IDLE];
    }
    return { outcome: 'token', session, organization: wanted };
  }

  /** Whether the code of a factor is right, which spends the challenge; `by`: the way in, or null beside one. */
  verify(challenge: Challenge, step: number | null, by: Flow | null): boolean {
    const { factor } = challenge;
    if (!this.isThere(factor) || this.now >= challenge.until || !this.isOpen(challenge.use, by)) return false;
    const isInTime = step !== null && Math.abs(step - Math.floor(this.now / REPEATED)) <= 1;
    if (!isInTime) challenge.tries++;
    if (challenge.tries >= TRIES || !isInTime || (factor.taken.get(step) ?? challenge) !== challenge) return false;
    factor.taken.set(step, challenge);
    challenge.use ??= { by, at: this.now };
    factor.verifiedAt ??= this.now;
    return true;
  }

  /** Whether the token resets the password. */
  reset(token: string, user: User, password: string): boolean {
    const code = this.codeOf('password_reset', user);
    if (code?.text !== token || this.now >= code.until) return false;
    this.prove(user, false, code);
    [user.password, user.resetAt] = [password, this.now];
    return true;
  }

  userWith(email: string): User | undefined {
    return this.users.find((user) => user.isThere && user.email === email);
  }

  /** The membership that counts. */
  member(user: User, { isThere, members }: Organization): Membership | null {
    const membership = members.get(user);
    return isThere && membership?.isActive === true ? membership : null;
  }

  /** Of the user's factors, those that whoever began then gets in with. */
  counting(user: User, beganAt: number): readonly Factor[] {
    const verified = this.factors.filter((factor) => factor.user === user && this.isThere(factor) && factor.verifiedAt !== null);
    const before = verified.filter(({ verifiedAt }) => verifiedAt! <= beganAt);
    return before.length > 0 ? before : verified;
  }

  lives(session: Session): boolean {
    const { flow, at, organization, membership, idleUntil } = session;
    if (organization !== null && this.member(flow.user, organization) !== membership) session.isEnded = true;
    return !session.isEnded && this.now < at + LONGEST && this.now < idleUntil && !this.isOver(flow);
  }

  private flowOf(user: User): Flow {
    return { user, proven: [], beganAt: this.now, session: null };
  }

  /** Neither another address nor a reset came after it. */
  private codeOf(kind: Kind, user: User): Code | undefined {
    const code = this.codes.get(`${kind} ${user.id}`);
    return user.isThere && code?.email === user.email && code.at > user.resetAt ? code : undefined;
  }

  private redeem(kind: Kind, user: User, text: string, by: Flow, id?: string): boolean {
    const code = this.codeOf(kind, user);
    if (code === undefined || (id ?? code.id) !== code.id) return false;
    if (text !== code.text) code.tries++;
    if (code.tries >= TRIES || text !== code.text || !this.isOpen(code.use, by)) return false;
    if (code.use === null && this.now >= code.until) return false;
    code.use ??= { by, at: this.now };
    this.prove(user, by.proven.includes('password'), by);
    return true;
  }

  /** The address is proven once: by somebody without the password, what was set before is gone. */
  private prove(user: User, hasPassword: boolean, by: unknown): void {
    if (!user.isVerified && !hasPassword) Object.assign(user, { password: null, removed: { by, at: this.now } });
    user.isVerified = true;
  }

  private isOpen(use: Use, by: unknown): boolean {
    return use === null || (use.by === by && by !== null && this.now - use.at <= REPEATED);
  }

  private isThere({ isThere, at, user }: Factor): boolean {
    return isThere && user.isThere && at > (user.removed?.at ?? -1);
  }

  private isInvited(invitation: Invitation | null, email: string, by?: User): boolean {
    if (invitation === null) return true;
    const { use, isRevoked, until, organization } = invitation;
    const isOpen = use === null ? !isRevoked && this.now < until : this.isOpen(use, by ?? use.by);
    return invitation.email === email && organization.isThere && isOpen;
  }

  /** Once its session has begun, a pending token is of use to a client that heard no answer alone. */
  private goesOn({ flow, until }: Pending): boolean {
    return this.now < until && !this.isOver(flow) && (flow.session === null || this.isRepeat(flow.session));
  }

  private isRepeat(session: Session): boolean {
    return this.now - session.at <= REPEATED && this.lives(session);
  }

  private isOver(flow: Flow): boolean {
    const [{ isThere, resetAt, removed }, at] = [flow.user, flow.session?.at ?? flow.beganAt];
    return !isThere || resetAt >= at || (removed !== null && removed.by !== flow && removed.at >= at);
  }

  /** Challenge, address, second factor, choice of an organization and its policy, in this order. */
  private proceed(flow: Flow, factor: string | null, { chosen: asked, isChallenged, holdsFactor, invitation }: Step, pending: Pending | null = null): Verdict {
    const { user, session } = flow;
    const chosen = asked ?? invitation?.organization ?? null;
    if (session !== null) {
      // Who asks again asks for the same, and with no less than the session began with.
      const isSame = chosen === null || chosen === session.organization;
      return isSame && (holdsFactor || !session.hasFactor) && this.isRepeat(session) ? { outcome: 'token', session, organization: session.present } : REFUSED;
    }
    const proven = factor === null ? flow.proven : [...flow.proven, factor];
    const hasFactor = holdsFactor && proven.includes('mfa');
    const choices = this.organizations.filter((each) => this.member(user, each) !== null);
    const organization = chosen ?? (choices.length === 1 ? choices[0]! : null);
    let gate: Gate | null = null;
    if (isChallenged) gate = 'radar_challenge';
    else if (!user.isVerified) gate = 'email_verification_required';
    else if (!hasFactor && this.counting(user, flow.proven.length === 0 ? Infinity : flow.beganAt).length > 0) gate = 'mfa_challenge';
    else if (organization === null && choices.length > 0) gate = 'organization_selection_required';
    else if (organization?.asksFactor === true && !hasFactor) gate = 'mfa_enrollment';
    if (gate === null && !this.mayBegin(user, organization, invitation)) return REFUSED;
    if (flow.proven.length === 0) flow.beganAt = this.now;
    flow.proven.splice(0, Infinity, ...proven);
    if (gate !== null)
      return { outcome: 'asked', gate, pending: pending ?? { flow, chosen, isChallenged, holdsFactor, invitation, until: this.now + LIFETIMES.pending } };
    const membership = organization === null ? null : this.member(user, organization);
    const times = { at: this.now, idleUntil: this.now + IDLE };
    flow.session = { flow, organization, membership, hasFactor: proven.includes('mfa'), ...times, turnedAt: [], present: organization, isEnded: false };
    this.sessions.push(flow.session);
    return { outcome: 'token', session: flow.session, organization };
  }

  /** An invitation is accepted where the session begins. */
  private mayBegin(user: User, organization: Organization | null, invitation: Invitation | null): boolean {
    if (invitation !== null) {
      const { members } = invitation.organization;
      const isSuspended = members.get(user)?.isActive === false && invitation.use === null;
      if (!this.isInvited(invitation, user.email, user) || isSuspended) return false;
      if (invitation.use === null && !members.has(user)) members.set(user, { isActive: true });
      invitation.use ??= { by: user, at: this.now };
    }
    return organization === null || this.member(user, organization) !== null;
  }
}
