import { createHash } from 'node:crypto';
import { codeOfStep, secretOfBase32, stepAt } from '#apps/identity/src/authentication-factors/totp';
import { OneTimeCodes } from '#apps/identity/src/codes/one-time-codes';
import { invitationDecider } from '#apps/identity/src/domain/invitation.decider';
import { membershipDecider, membershipKey } from '#apps/identity/src/domain/membership.decider';
import { proveFactor, sessionDecider } from '#apps/identity/src/domain/session.decider';
import { credentialsVersionOf, userDecider, type StoredUser } from '#apps/identity/src/domain/user.decider';
import { AuthorizationCodes } from '#apps/identity/src/sign-in/authorization-codes';
import { DeviceCodes } from '#apps/identity/src/sign-in/device-codes';
import { SessionIds } from '#apps/identity/src/sign-in/session-ids';
import {
  ChallengeAuthenticationFactor,
  DeleteAuthenticationFactor,
  EnrollUserAuthenticationFactor,
  VerifyAuthenticationChallenge,
} from '#libs/contracts/src/authentication-factors/operations';
import { UpdateAuthenticationPolicy } from '#libs/contracts/src/authentication-policy/operations';
import { UpdateEnvironmentSettings } from '#libs/contracts/src/environment-settings/operations';
import { RevokeInvitation, SendInvitation } from '#libs/contracts/src/invitations/operations';
import { CreateMagicAuth } from '#libs/contracts/src/magic-auth/operations';
import type { Operation } from '#libs/contracts/src/operation';
import {
  CreateOrganizationMembership,
  DeactivateOrganizationMembership,
  DeleteOrganizationMembership,
  ReactivateOrganizationMembership,
} from '#libs/contracts/src/organization-memberships/operations';
import { CreateOrganization, DeleteOrganization } from '#libs/contracts/src/organizations/operations';
import { ConfirmPasswordReset, CreatePasswordReset } from '#libs/contracts/src/password-reset/operations';
import { RevokeSession } from '#libs/contracts/src/sessions/operations';
import { CreateUser, DeleteUser, UpdateUser } from '#libs/contracts/src/users/operations';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import type { ProductInProcess } from '#libs/testing/src/running-product';
import type { SettableClock } from '#libs/testing/src/settable-clock';
import { Caller } from '#libs/testing/src/suite';
import { until } from '#libs/testing/src/until';
import { Chance } from '../chance.ts';
import type { Carried, Challenge, Code, Factor, Flow, Invitation, Kind, Organization, Pending, Session, User, Verdict } from './facts.ts';
import { LIFETIMES, REPEATED, SignInModel } from './sign-in-model.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;
const PASSWORDS = [1, 2, 3].map((which) => `ride-a-giraffe-${which}`);
const ADDRESSES = ['ada', 'bob', 'cyd', 'dan', 'eve', 'fay', 'gus'].map((name) => `${name}@model.test`);
const VERIFIER = 'a-verifier-of-forty-three-characters-or-more-1';
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url');
const PROGRAM = { user_agent: 'curl/8.5.0' };
const urn = (name: string): string => `urn:workos:oauth:grant-type:${name}`;

export const GRANTS = {
  password: 'password',
  magic_auth: urn('magic-auth:code'),
  email_verification: urn('email-verification:code'),
  radar_challenge: urn('radar-email-challenge:code'),
  mfa: urn('mfa-totp'),
  organization: urn('organization-selection'),
  refresh: 'refresh_token',
  authorization_code: 'authorization_code',
  device_code: 'urn:ietf:params:oauth:grant-type:device_code',
} as const;
export type GrantName = keyof typeof GRANTS;
const GRANT_NAMES = Object.keys(GRANTS) as GrantName[];

/** What was answered, by the grant. */
export type Tally = Record<GrantName, Record<Verdict['outcome'], number>>;
export function newTally(): Tally {
  return Object.fromEntries(GRANT_NAMES.map((name) => [name, { token: 0, asked: 0, refused: 0 }])) as Tally;
}

/** An application of one environment. */
export interface Application {
  readonly environment: string;
  readonly client_id: string;
  readonly key: string;
}

/** What is done is written down when it is told first, so that it stays the same where those before it are left out. */
export interface Step {
  readonly seed: number;
  /** Among all of the story. */
  readonly place: number;
  did?: string;
}

type Body = Readonly<Record<string, unknown>>;
type Asked = 'email_verification' | 'radar_challenge';
/** A code beside the token that it was asked for with. */
type Shown = { readonly awaiting: Awaiting; readonly kind: Asked; readonly code: Code };
type Awaiting = { readonly token: string; readonly pending: Pending };
type RefreshToken = { readonly session: Session; readonly text: string };
type Reset = { readonly user: User; readonly token: string };
/** `user`: who had the address then. */
type Invited = { readonly token: string; readonly invitation: Invitation; readonly user: User | undefined };
type CarriedCode = { readonly code: string; readonly carried: Carried };
/** The end of something, and how to try it there. */
type Edge = { readonly of: string; readonly at: number; readonly attempt: Act };
type Act = () => Promise<unknown>;

/** Does at random what people and their administrators do, and demands of each answer what the model says. */
export class Story {
  readonly tally = newTally();
  readonly trail: string[] = [];
  private readonly model = new SignInModel();
  private readonly caller: Caller;
  private chance = new Chance(0);
  private place = 0;
  /** In which step what can be picked came to be, and as which. */
  private readonly births = new Map<object, { readonly place: number; readonly key: number }>();
  /** What whoever was asked for something, or made a mistake, does next. */
  private next: Act | null = null;
  private readonly edges: Edge[] = [];
  private readonly sessionNames = new Map<Session, string>();
  private readonly secrets = new Map<Factor, Buffer>();
  // Whatever was ever shown, the used and the outdated too.
  private readonly pendings: Awaiting[] = [];
  private readonly tokens: RefreshToken[] = [];
  private readonly magicCodes: Code[] = [];
  private readonly asked: Shown[] = [];
  private readonly resets: Reset[] = [];
  private readonly invitations: Invited[] = [];
  private readonly challenges: Challenge[] = [];
  private readonly authorizationCodes: CarriedCode[] = [];
  private readonly deviceCodes: (CarriedCode & { readonly userCode: string })[] = [];

  constructor(
    private readonly product: ProductInProcess,
    private readonly clock: SettableClock,
    private readonly own: Application,
    private readonly foreign: Application,
  ) {
    this.caller = new Caller(() => product.url, own.key);
  }

  /** At the same time of a day whenever it is told. */
  async begin(seed: number): Promise<void> {
    this.chance = new Chance(seed);
    this.forward(DAY - (this.clock.now() % DAY) + 30 * SECOND);
    const mail = { magic_auth: false, email_verification: false, password_reset: false, invitation: false };
    await this.done(new UpdateEnvironmentSettings(), { token_algorithm: 'ES256', risk: { bot_detection: 'challenge' }, mail });
    for (let count = 0; count < 3; count++) await this.createOrganization();
    for (const [place, email] of ADDRESSES.slice(0, 4).entries()) await this.createUser(email, place < 3);
    for (const user of this.model.users.slice(0, 2)) await this.join(user, this.model.organizations[0]);
    this.trail.length = 0;
  }

  /** One thing more. @throws Error when the answer is none that it may be */
  async step(step: Step): Promise<void> {
    const chance = (this.chance = new Chance(step.seed));
    this.place = step.place;
    this.forward(1 + chance.below(chance.is(0.1) ? 40 * SECOND : 2 * SECOND));
    const next = this.next;
    this.next = null;
    // Whoever is asked for something mostly brings it, and at once.
    const isNext = chance.is(0.85);
    const drawn = chance.weighted(Object.entries(this.acts).map(([name, [weight]]) => [weight, name] as const));
    step.did ??= next !== null && isNext ? 'next' : drawn === 'sign in' ? this.wantedGrant() : drawn;
    if (step.did === 'next') await next?.();
    else await (this.ways[step.did as GrantName] ?? this.acts[step.did]![1])();
  }

  /** What is done beside what follows, and how often. */
  private readonly acts: Readonly<Record<string, readonly [number, Act]>> = {
    'sign in': [44, async () => {}],
    'go to an end': [6, () => this.atTheEdge()],
    wait: [2, async () => this.forward(this.chance.below(10 * MINUTE))],
    'create a user': [2, () => this.createUser()],
    'ask for a reset': [2, () => this.createReset()],
    reset: [2, () => this.confirmReset()],
    invite: [2, () => this.invite()],
    'revoke an invitation': [1, () => this.endInvitation()],
    'verify a factor': [2, () => this.verifyFactor()],
    'delete a factor': [2, () => this.deleteFactor()],
    'change a password': [2, () => this.changePassword()],
    'change an address': [1, () => this.changeAddress()],
    join: [2, () => this.join()],
    'change a membership': [2, () => this.changeMembership()],
    'change a policy': [1, () => this.setPolicy()],
    'revoke a session': [2, () => this.revoke()],
    'delete a user': [1, () => this.deleteUser()],
    'delete an organization': [1, () => this.deleteOrganization()],
  };

  /** How each grant comes to be used; where nobody can use it, what is missing for that. */
  private readonly ways: Readonly<Record<GrantName, Act>> = {
    password: () =>
      this.withPassword(this.pick(this.ready.filter((each) => !this.isProtected(each) && this.organizationsOf(each).length < 2)) ?? this.pick(this.known)),
    magic_auth: () => this.sendMagicCode(),
    email_verification: () => {
      const unverified = this.pick(this.known.filter(({ isVerified }) => !isVerified));
      return unverified === undefined ? this.changeAddress(this.pick(this.known)) : this.withPassword(unverified, false);
    },
    radar_challenge: () => this.withPassword(this.pick(this.known), true),
    mfa: () => {
      const user = this.pick(this.ready.filter((each) => this.isProtected(each)));
      return user === undefined ? this.enrol(this.pick(this.ready)) : this.withPassword(user, false);
    },
    organization: () => {
      const user = this.pick(this.ready.filter((each) => this.organizationsOf(each).length > 1));
      return user === undefined ? this.join(this.pick(this.ready.filter((each) => this.organizationsOf(each).length === 1))) : this.withPassword(user, false);
    },
    refresh: () => this.refresh(),
    authorization_code: () => this.issueAuthorizationCode(),
    device_code: () => this.issueDeviceCode(),
  };

  /** The one that has done least so far, as often as not. */
  private wantedGrant(): GrantName {
    const count = (name: GrantName): number => Math.min(this.tally[name].token, 2 * this.tally[name].refused);
    const rarest = Math.min(...GRANT_NAMES.map(count));
    return this.chance.of(this.chance.is(0.6) ? GRANT_NAMES.filter((name) => count(name) === rarest) : GRANT_NAMES)!;
  }

  /** Time goes on to the last moment of something, or the first after it, and it is tried. */
  private async atTheEdge(): Promise<unknown> {
    const ahead = this.edges.filter(({ at }) => at > this.clock.now() + 1);
    const kinds = [...new Set(ahead.map((edge) => edge.of))];
    if (kinds.length === 0) return this.sendMagicCode();
    const kind = this.chance.weighted(kinds.map((each) => [['idle', 'longest'].includes(each) ? 1 : 3, each] as const));
    const edge = this.pick(ahead.filter((each) => each.of === kind))!;
    return this.atTheEnd(edge);
  }

  private async atTheEnd(edge: Edge): Promise<unknown> {
    const beyond = this.chance.weighted([
      [4, -1],
      [3, 0],
      [3, 1],
      [2, SECOND],
    ]);
    this.forward(Math.max(1, edge.at + beyond - this.clock.now()));
    this.trail.push(`the end of ${edge.of}: ${beyond} ms`);
    return edge.attempt();
  }

  // Ways to sign in. Each is mostly right, and sometimes wrong in one way.

  private async withPassword(user: User | undefined, isProgram = this.chance.is(0.1)): Promise<void> {
    if (user === undefined) return this.createUser();
    const invitation = this.invitationFor(user.email);
    await this.tryTo('password', (isWrong) => {
      const email = isWrong && this.chance.is(0.3) ? this.chance.of(ADDRESSES)! : user.email;
      const password = !isWrong && user.password !== null ? user.password : this.chance.of(PASSWORDS)!;
      const body = { email, password, ...(isProgram && PROGRAM), ...invitation.body };
      return [body, () => this.model.password(email, password, isProgram, invitation.given)];
    });
  }

  private async withMagicCode(given: Code): Promise<void> {
    const [isProgram, invitation] = [this.chance.is(0.1), this.invitationFor(given.email)];
    if (this.chance.is(0.12)) {
      const wrong = otherThan(given.text);
      const body = { email: given.email, code: wrong };
      for (let times = 0; times < 5; times++) await this.ask('magic_auth', body, () => this.model.magicCode(given.email, wrong, false, null));
    }
    await this.tryTo('magic_auth', (isWrong) => {
      const shown = isWrong && this.chance.is(0.7) ? this.pick(this.magicCodes)! : given;
      const code = isWrong && this.chance.is(0.5) ? otherThan(shown.text) : shown.text;
      const email = isWrong && this.chance.is(0.3) ? this.chance.of(ADDRESSES)! : shown.email;
      const body = { email, code, ...(isProgram && PROGRAM), ...invitation.body };
      return [body, () => this.model.magicCode(email, code, isProgram, invitation.given)];
    });
  }

  private async withAskedCode(given: Shown): Promise<void> {
    const { kind } = given;
    await this.tryTo(kind, (isWrong) => {
      const { code: shown } = isWrong && this.chance.is(0.4) ? this.pick(this.asked.filter((each) => each.kind === kind))! : given;
      const code = isWrong && this.chance.is(0.4) ? otherThan(shown.text) : shown.text;
      const { token, pending } = isWrong && this.chance.is(0.5) ? this.pick(this.pendings)! : given.awaiting;
      const id = kind === 'radar_challenge' ? shown.id : undefined;
      const body = { code, pending_authentication_token: token, ...(id !== undefined && { radar_challenge_id: id }) };
      return [body, () => this.model.askedCode(kind, pending, code, id)];
    });
  }

  /** `brought`: the factor that it is to be. */
  private async withSecondFactor(awaiting: Awaiting, brought?: Factor): Promise<void> {
    const { token, pending } = awaiting;
    const { user } = pending.flow;
    const theirs = this.model.factors.filter((factor) => factor.user === user && factor.isThere);
    // Whoever stole a password brings a factor along.
    if (brought === undefined && (theirs.length === 0 || this.chance.is(0.1)))
      return this.enrol(user, (challenge) => this.bringAlong(awaiting, challenge, theirs.length === 0));
    const strangers = this.model.factors.filter((factor) => factor.user !== user && factor.isThere && factor.user.isThere);
    const factor = brought ?? this.pick(strangers.length > 0 && this.chance.is(0.15) ? strangers : theirs)!;
    const known = brought === undefined ? this.challenges.filter((challenge) => challenge.factor === factor) : [];
    const challenge = (this.chance.is(0.6) ? known.at(-1) : this.chance.is(0.3) ? this.pick(known) : null) ?? (await this.challenge(factor));
    if (challenge === null) return;
    await this.tryTo('mfa', (isWrong) => {
      // An app shows another code after half a minute: each works once.
      if (!isWrong && this.chance.is(0.9) && factor.taken.has(stepAt(this.clock.now()))) this.forward(60 * SECOND);
      const [step, code] = this.codeOf(factor, isWrong);
      const body = { code, pending_authentication_token: token, authentication_challenge_id: challenge.id };
      return [body, () => this.model.secondFactor(pending, challenge, step)];
    });
  }

  /** A factor that came after the first proof, which an application may have had verified beside the sign-in. */
  private async bringAlong(awaiting: Awaiting, challenge: Challenge, isFirst: boolean): Promise<void> {
    if (isFirst || this.chance.is(0.3)) return this.withSecondFactor(awaiting);
    await this.verifyFactor(challenge);
    this.next = () => this.withSecondFactor(awaiting, challenge.factor);
  }

  private async withOrganization(given: Awaiting): Promise<void> {
    await this.tryTo('organization', (isWrong) => {
      const theirs = this.organizationsOf(given.pending.flow.user);
      const organization = this.pick(isWrong || theirs.length === 0 ? this.model.organizations : theirs)!;
      const { token, pending } = isWrong && this.chance.is(0.3) ? this.pick(this.pendings)! : given;
      const body = { organization_id: organization.id, pending_authentication_token: token };
      return [body, () => this.model.organization(pending, organization)];
    });
  }

  private async refresh(given = this.livingToken()): Promise<void> {
    if (given === undefined) return this.sendMagicCode();
    await this.tryTo('refresh', (isWrong) => {
      const token = isWrong && this.chance.is(0.5) ? this.pick(this.tokens)! : given;
      const { session, text } = token;
      const theirs = this.organizationsOf(session.flow.user);
      const asked = this.chance.is(0.3) ? (this.pick(isWrong ? this.model.organizations : theirs) ?? null) : null;
      const isOpen = isWrong && this.chance.is(0.2);
      const body = { refresh_token: text, ...(asked !== null && { organization_id: asked.id }), ...(isOpen && { client_secret: undefined }) };
      const generation = this.tokens.filter((each) => each.session === session).indexOf(token);
      return [body, (isOwn) => this.model.refresh(session, generation, asked, isOwn && !isOpen)];
    });
  }

  /** Whoever stole a token, and then whom it was stolen from. */
  private async refreshTwice(stolen: RefreshToken): Promise<void> {
    await this.refresh(stolen);
    this.next = () => this.refresh(this.tokens.findLast(({ session }) => session === stolen.session));
  }

  private async withAuthorizationCode(given: CarriedCode): Promise<void> {
    await this.tryTo('authorization_code', (isWrong) => {
      const isProven = !(isWrong && this.chance.is(0.5));
      const { code, carried } = isWrong && this.chance.is(0.6) ? this.pick(this.authorizationCodes)! : given;
      return [{ code, code_verifier: isProven ? VERIFIER : `${VERIFIER}2` }, () => this.model.carried(carried, isProven)];
    });
  }

  private async withDeviceCode(given: CarriedCode): Promise<void> {
    await this.tryTo('device_code', (isWrong) => {
      const { code, carried } = isWrong ? this.pick(this.deviceCodes)! : given;
      return [{ device_code: code }, () => this.model.carried(carried, true)];
    });
  }

  /** What a page does that somebody showed a password to. Now and then another application of the environment had it asked. */
  private async issueAuthorizationCode(): Promise<void> {
    const authorization = await this.authorize();
    if (authorization === null) return this.createUser();
    const isOwn = this.chance.is(0.9);
    const { flow, ...stored } = authorization;
    const client_id = isOwn ? this.own.client_id : 'client_of_another_application';
    const code = await this.product.get(AuthorizationCodes).issue(this.context(), { ...stored, client_id }, CHALLENGE);
    const issued = this.born({ code, carried: { flow, isOwn, until: this.model.now + LIFETIMES.authorization } });
    this.authorizationCodes.push(issued);
    this.trail.push(`${this.time}  an authorization code for ${flow.user.email}${isOwn ? '' : ', of another application'}`);
    this.follow('authorization code', issued.carried.until, () => this.withAuthorizationCode(issued));
  }

  private async issueDeviceCode(): Promise<void> {
    const isOwn = this.chance.is(0.9);
    const { deviceCode, userCode } = await this.product.get(DeviceCodes).issue(this.context(), isOwn ? this.own.client_id : 'client_of_another_application');
    const issued = this.born({ code: deviceCode, carried: { flow: null, isOwn, until: this.model.now + LIFETIMES.device }, userCode });
    this.deviceCodes.push(issued);
    this.trail.push(`${this.time}  a device code${isOwn ? '' : ', of another application'}`);
    this.edge('device code', issued.carried.until, () => this.withDeviceCode(issued));
    this.next = () => (this.chance.is(0.2) ? this.withDeviceCode(issued) : this.decideDeviceCode(issued));
  }

  private async decideDeviceCode(issued: (typeof this.deviceCodes)[number]): Promise<void> {
    const { carried, userCode } = issued;
    const authorization = this.chance.is(0.15) ? null : await this.authorize();
    const { flow, ...decision } = authorization ?? { flow: 'denied' as const };
    const isDecided = await this.product.get(DeviceCodes).decide(this.context(), userCode, authorization === null ? 'denied' : (decision as never));
    if (isDecided !== (carried.flow === null && this.model.now < carried.until)) throw new Error(`The decision was answered ${isDecided}`);
    if (isDecided) carried.flow = flow;
    this.trail.push(`${this.time}  the device ${flow === 'denied' ? 'is not let in' : `is let in for ${flow.user.email}`}: ${isDecided}`);
    this.next = () => this.withDeviceCode(issued);
  }

  /** Somebody has shown a password elsewhere: a sign-in has begun. */
  private async authorize() {
    const user = this.pick(this.model.users.filter(({ isThere, isVerified }) => isThere && isVerified));
    if (user === undefined) return null;
    const context = this.context();
    const session_id = await this.product.get(SessionIds).ofCommand(context);
    const state = await this.product.get(Repository).load(userDecider, this.own.environment, user.id);
    const credentials_version = credentialsVersionOf(state as StoredUser);
    const about = { id: session_id, user_id: user.id, email: user.email, ip_address: null, user_agent: null, has_secret: true, credentials_version };
    await this.product.get(Repository).transact(sessionDecider, context, session_id, proveFactor('password', about, null));
    const flow: Flow = { user, proven: ['password'], beganAt: this.model.now, session: null };
    return { flow, session_id, user_id: user.id, chosen: null };
  }

  /** Mostly rightly; whoever was wrong mostly tries again. */
  private async tryTo(grant: GrantName, attempt: (isWrong: boolean) => readonly [Body, (isOwn: boolean) => Verdict], isRetry = false): Promise<void> {
    const { token, refused } = this.tally[grant];
    const isWrong = !isRetry && this.chance.is(refused < token / 2 ? 0.6 : 0.15);
    const [body, judge] = attempt(isWrong);
    const outcome = await this.ask(grant, body, judge, isWrong && this.chance.is(0.2));
    if (isWrong && outcome === 'refused') this.next ??= () => this.tryTo(grant, attempt, true);
    // What was used once is tried again, too.
    else if (outcome === 'token' && this.chance.is(0.12)) this.next ??= () => this.ask(grant, body, judge);
  }

  /** Asks, and demands what the model says. `isElsewhere`: as another application does, with its own secret, or as this one with a wrong one. */
  private async ask(grant: GrantName, body: Body, judge: (isOwn: boolean) => Verdict, isElsewhere = false): Promise<Verdict['outcome']> {
    const isForeign = isElsewhere && this.chance.is(0.7);
    const client = { client_id: (isForeign ? this.foreign : this.own).client_id, client_secret: (isElsewhere ? this.foreign : this.own).key };
    const shown = { grant_type: GRANTS[grant], ...client, ...body };
    const { status, given } = await this.answered(shown);
    const passwords = this.model.users.map(({ password }) => password);
    const verdict: Verdict = isElsewhere && grant !== 'refresh' ? { outcome: 'refused' } : judge(!isElsewhere);
    const outcome = status === 200 ? 'token' : status === 403 && given['pending_authentication_token'] !== undefined ? 'asked' : 'refused';
    this.tally[grant][outcome]++;
    const expected = verdict.outcome === 'asked' ? verdict.gate : verdict.outcome;
    const told = outcome === 'asked' ? given['code'] : outcome;
    if (told !== expected || (outcome === 'refused' && 'access_token' in given))
      throw new Error(`${grant} was answered ${told as string} instead of ${expected}`);
    if (verdict.outcome === 'token') this.issued(verdict, given, grant === 'refresh');
    if (verdict.outcome === 'asked') await this.wasAsked(verdict, given);
    const robbed = this.model.users.findIndex(({ password }, place) => password === null && passwords[place] !== null);
    if (robbed >= 0 && this.chance.is(0.5)) this.next = () => this.withRemovedPassword(this.model.users[robbed]!, passwords[robbed]!);
    if (outcome !== 'refused' && 'code' in body) this.usedUp(() => this.ask(grant, body, judge));
    return outcome;
  }

  /** What was set before the address was proven by somebody else. */
  private async withRemovedPassword({ email }: User, password: string): Promise<void> {
    await this.ask('password', { email, password }, () => this.model.password(email, password, false, null));
  }

  /** A client that heard no answer asks again, and sometimes too late. */
  private usedUp(again: Act): void {
    const end = this.model.now + REPEATED;
    this.edge('what was used', end, again);
    if (this.chance.is(0.05)) this.next = () => this.atTheEnd({ of: 'what was used', at: end, attempt: again });
  }

  /** Whoever is told to come again later does. */
  private async answered(body: Body): Promise<{ readonly status: number; readonly given: Body }> {
    for (;;) {
      const { status, body: given, headers } = await this.caller.post('/user_management/authenticate', body, { Authorization: '' });
      this.trail.push(`${this.time}  authenticate ${briefly(body)} → ${status} ${briefly(given as Body)}`);
      if (status >= 500) throw new Error(`An attempt was answered ${status}`);
      if (status !== 429) return { status, given: given as Body };
      this.forward(Number(headers['retry-after']) * SECOND);
    }
  }

  private issued({ session, organization }: Verdict & { readonly outcome: 'token' }, given: Body, isRefresh: boolean): void {
    const { sid, sub, org_id } = JSON.parse(Buffer.from((given['access_token'] as string).split('.')[1]!, 'base64url').toString()) as Record<string, string>;
    const name = this.sessionNames.get(session) ?? sid!;
    this.sessionNames.set(session, name);
    const [told, expected] = [
      [sid, sub, org_id, given['organization_id']],
      [name, session.flow.user.id, organization?.id, organization?.id],
    ].map(String);
    if (told !== expected) throw new Error(`A token of ${told} was issued instead of ${expected}`);
    const before = this.tokens.filter((each) => each.session === session);
    const text = given['refresh_token'] as string;
    const isTurned = before.length < session.turnedAt.length + 1;
    if (before.length > 0 && (text !== before.at(-1)!.text) !== isTurned)
      throw new Error(`The refresh token ${isTurned ? 'did not turn' : 'is not the present one'}`);
    if (!isTurned) return;
    const token = this.born({ session, text });
    this.tokens.push(token);
    this.edge('idle', session.idleUntil, () => this.refresh(token));
    if (before.length > 0) this.edge('a turned token', session.turnedAt.at(-1)! + REPEATED, () => this.refreshTwice(before.at(-1)!));
    if (this.chance.is(isRefresh ? 0.4 : 0.7)) this.next = () => this.refresh(token);
    if (isRefresh) return;
    this.edge('longest', session.at + 30 * DAY, () => this.refresh(this.tokens.findLast((each) => each.session === session)));
  }

  private async wasAsked({ gate, pending }: Verdict & { readonly outcome: 'asked' }, given: Body): Promise<void> {
    const token = given['pending_authentication_token'] as string;
    const awaiting = this.born({ token, pending });
    this.pendings.push(awaiting);
    const { user } = pending.flow;
    const bring = async (): Promise<Act> => {
      if (gate === 'organization_selection_required') return () => this.withOrganization(awaiting);
      if (gate === 'mfa_challenge' || gate === 'mfa_enrollment') {
        const challenge = given['authentication_challenge'] as { readonly id: string; readonly authentication_factor_id: string } | undefined;
        const factor = this.model.factors.find(({ id }) => id === challenge?.authentication_factor_id);
        if (challenge !== undefined && factor !== undefined) this.challenged(challenge.id, factor);
        return () => this.withSecondFactor(awaiting);
      }
      const kind: Asked = gate === 'radar_challenge' ? gate : 'email_verification';
      const id = given[`${kind}_id`] as string;
      const known = this.model.codes.get(`${kind} ${user.id}`);
      // As the mail has it.
      const digits = await this.product.get(OneTimeCodes).digits({ environment: this.own.environment, kind, id, round: 0 });
      const shown: Shown = { awaiting, kind, code: known?.id === id ? known : this.sent(kind, user, { id, text: digits }, LIFETIMES.code) };
      this.asked.push(this.born(shown));
      this.edge(`code of ${kind}`, shown.code.until, () => this.withAskedCode(shown));
      return () => this.withAskedCode(shown);
    };
    this.follow('pending token', pending.until, await bring());
  }

  // What people and administrators do beside it.

  private async createUser(email = this.chance.of(ADDRESSES)!, email_verified = this.chance.is(0.6)): Promise<void> {
    const password = this.chance.is(0.9) ? this.chance.of(PASSWORDS)! : null;
    const made = await this.done(new CreateUser(), { email, email_verified, ...(password !== null && { password }) });
    if (made !== null) this.userMade(made.id, email, email_verified, password);
  }

  private userMade(id: string, email: string, isVerified: boolean, password: string | null): User {
    const user: User = { id, email, isVerified, password, isThere: true, resetAt: -1, removed: null };
    this.model.users.push(this.born(user));
    return user;
  }

  private async sendMagicCode(email = (this.chance.is(0.3) ? this.magicCodes.at(-1)?.email : undefined) ?? this.chance.of(ADDRESSES)!): Promise<void> {
    const made = await this.done(new CreateMagicAuth(), { email });
    const user = this.model.userWith(email) ?? this.userMade(made!.user_id, email, false, null);
    const code = this.sent('magic_auth', user, { id: made!.id, text: made!.code }, LIFETIMES.code);
    this.magicCodes.push(code);
    this.follow('magic code', code.until, () => this.withMagicCode(code));
    // The one before it is void.
    const before = this.magicCodes.at(-2);
    if (before?.email === email && this.chance.is(0.3)) this.next = () => this.withMagicCode(before);
  }

  private sent(kind: Kind, user: User, { id, text }: { readonly id: string; readonly text: string }, lifetime: number): Code {
    const code: Code = { id, text, email: user.email, at: this.model.now, until: this.model.now + lifetime, tries: 0, use: null };
    this.model.codes.set(`${kind} ${user.id}`, this.born(code));
    return code;
  }

  private async createReset(): Promise<void> {
    const user = this.somebody();
    if (user === undefined) return;
    const made = (await this.done(new CreatePasswordReset(), { email: user.email }))!;
    const token = made.password_reset_token;
    const { until: end } = this.sent('password_reset', user, { id: made.id, text: token }, LIFETIMES.reset);
    const shown = this.born({ user, token });
    this.resets.push(shown);
    this.follow('reset', end, () => this.confirmReset(shown));
  }

  private async confirmReset(shown = this.pick(this.resets)): Promise<void> {
    if (shown === undefined) return this.createReset();
    const new_password = this.chance.of(PASSWORDS)!;
    const isDone = (await this.done(new ConfirmPasswordReset(), { token: shown.token, new_password })) !== null;
    if (this.model.reset(shown.token, shown.user, new_password) !== isDone) throw new Error(`The reset was answered ${isDone}`);
    if (isDone) this.next = this.lastOf(shown.user);
  }

  private async invite(): Promise<void> {
    const [email, organization] = [this.chance.of(ADDRESSES)!, this.livingOrganization()];
    const user = this.model.userWith(email);
    if (organization === undefined || (user !== undefined && organization.members.has(user))) return;
    const made = await this.done(new SendInvitation(), { email, organization_id: organization.id, expires_in_days: 1 });
    if (made === null) return;
    const invitation = { id: made.id, email, organization, until: this.model.now + DAY, isRevoked: false, use: null };
    this.invitations.push(this.born({ token: made.token, invitation, user }));
    if (user !== undefined) this.follow('invitation', this.model.now + DAY, () => this.withPassword(user, false));
  }

  private async endInvitation(): Promise<void> {
    const found = this.pick(this.invitations)?.invitation;
    if (found !== undefined && (await this.done(new RevokeInvitation(), { id: found.id })) !== null) found.isRevoked = true;
  }

  private async enrol(user: User | undefined, then = (challenge: Challenge) => this.verifyFactor(challenge)): Promise<void> {
    if (user === undefined) return this.createUser();
    const made = await this.done(new EnrollUserAuthenticationFactor(), { user_id: user.id, type: 'totp' });
    if (made === null) return;
    const { id, totp } = made.authentication_factor;
    const factor: Factor = { id, user, at: this.model.now, verifiedAt: null, isThere: true, taken: new Map() };
    this.model.factors.push(this.born(factor));
    this.secrets.set(factor, secretOfBase32(totp!.secret)!);
    const challenge = this.challenged(made.authentication_challenge.id, factor);
    this.next = () => then(challenge);
  }

  private async challenge(factor: Factor): Promise<Challenge | null> {
    const made = await this.done(new ChallengeAuthenticationFactor(), { id: factor.id });
    return made === null ? null : this.challenged(made.id, factor);
  }

  private challenged(id: string, factor: Factor): Challenge {
    const challenge: Challenge = { id, factor, until: this.model.now + LIFETIMES.challenge, tries: 0, use: null };
    this.challenges.push(this.born(challenge));
    return challenge;
  }

  private async verifyFactor(challenge = this.pick(this.challenges)): Promise<void> {
    // Whether a factor is told of as deleted that its user has lost already is a matter of the moment.
    if (challenge === undefined || challenge.factor.user.removed !== null || !challenge.factor.user.isThere) return;
    const [step, code] = this.codeOf(challenge.factor, this.chance.is(0.15));
    const done = await this.done(new VerifyAuthenticationChallenge(), { id: challenge.id, code });
    if (this.model.verify(challenge, step, null) !== (done?.valid === true)) throw new Error(`The challenge was answered ${String(done?.valid)}`);
  }

  private async deleteFactor(): Promise<void> {
    const factor = this.pick(this.model.factors);
    if (factor !== undefined && (await this.done(new DeleteAuthenticationFactor(), { id: factor.id })) !== null) factor.isThere = false;
  }

  private async changePassword(): Promise<void> {
    const user = this.somebody();
    const password = this.chance.of(PASSWORDS)!;
    if (user !== undefined && (await this.done(new UpdateUser(), { id: user.id, password })) !== null) user.password = password;
  }

  private async changeAddress(user = this.somebody()): Promise<void> {
    const email = this.chance.of(ADDRESSES.filter((each) => this.model.userWith(each) === undefined)) ?? this.chance.of(ADDRESSES)!;
    if (user === undefined || user.email === email || (await this.done(new UpdateUser(), { id: user.id, email })) === null) return;
    Object.assign(user, { email, isVerified: false });
    this.next = () => this.withPassword(user, false);
  }

  private async join(user = this.somebody(), organization?: Organization): Promise<void> {
    const others = this.model.organizations.filter((each) => each.isThere && (user === undefined || this.model.member(user, each) === null));
    const chosen = organization ?? this.pick(others);
    if (user === undefined || chosen === undefined) return;
    await this.ended(user, chosen);
    const made = await this.done(new CreateOrganizationMembership(), { user_id: user.id, organization_id: chosen.id });
    if (made !== null) this.activated(user, chosen);
  }

  private activated(user: User, { members }: Organization): void {
    const before = members.get(user);
    if (before === undefined) members.set(user, { isActive: true });
    else before.isActive = true;
  }

  private async changeMembership(): Promise<void> {
    const organization = this.livingOrganization();
    const user = this.pick([...(organization?.members.keys() ?? [])].filter(({ isThere }) => isThere));
    const membership = user && organization?.members.get(user);
    if (organization === undefined || user === undefined || membership === undefined) return this.join();
    const key = membershipKey(organization.id, user.id);
    const { id } = (await this.product.get(Repository).load(membershipDecider, this.own.environment, key))!;
    if (!membership.isActive && this.chance.is(0.7)) {
      await this.ended(user, organization);
      if ((await this.done(new ReactivateOrganizationMembership(), { id })) !== null) this.activated(user, organization);
    } else if (this.chance.is(0.6)) {
      if ((await this.done(new DeactivateOrganizationMembership(), { id })) === null) return;
      membership.isActive = false;
      const theirs = this.model.sessions.filter((session) => session.membership === membership);
      for (const session of theirs) session.isEnded = true;
      const last = this.tokens.findLast(({ session }) => theirs.includes(session));
      if (last !== undefined) this.next = () => this.refresh(last);
    } else if ((await this.done(new DeleteOrganizationMembership(), { id })) !== null) organization.members.delete(user);
  }

  /** Sessions of a membership that is inactive are told of as ended a moment later; whoever is back at once would have them again. */
  private async ended(user: User, organization: Organization): Promise<void> {
    const membership = organization.members.get(user);
    const ended = this.model.sessions.filter((session) => session.membership === membership && this.model.now < session.idleUntil && user.isThere);
    if (membership?.isActive !== false) return;
    for (const session of ended) {
      const load = () => this.product.get(Repository).load(sessionDecider, this.own.environment, this.sessionNames.get(session)!);
      await until(async () => (await load())?.object !== 'session');
    }
  }

  private async setPolicy(): Promise<void> {
    const organization = this.livingOrganization();
    const asksFactor = this.chance.is(0.4);
    if (organization === undefined) return;
    const policy = { organization_id: organization.id, mfa: asksFactor ? 'required' : 'inherit' };
    if ((await this.done(new UpdateAuthenticationPolicy(), policy)) !== null) organization.asksFactor = asksFactor;
  }

  private async revoke(): Promise<void> {
    const token = this.livingToken();
    if (token === undefined) return;
    await this.done(new RevokeSession(), { session_id: this.sessionNames.get(token.session) });
    token.session.isEnded = true;
    this.next = () => this.refresh(token);
  }

  private async deleteUser(): Promise<void> {
    const user = this.somebody();
    if (user === undefined || (await this.done(new DeleteUser(), { id: user.id })) === null) return;
    user.isThere = false;
    this.next = this.lastOf(user);
    // The invitations of who is gone are revoked, which is recorded a moment later.
    for (const { invitation, user: invited } of this.invitations) {
      if (invited !== user || invitation.use !== null || invitation.isRevoked || !invitation.organization.isThere) continue;
      invitation.isRevoked = true;
      const load = () => this.product.get(Repository).load(invitationDecider, this.own.environment, invitation.id);
      await until(async () => (await load())?.state !== 'pending');
    }
  }

  private async createOrganization(): Promise<void> {
    const made = await this.done(new CreateOrganization(), { name: 'Model' });
    this.model.organizations.push(this.born({ id: made!.id, isThere: true, asksFactor: false, members: new Map() }));
  }

  private async deleteOrganization(): Promise<void> {
    const organization = this.livingOrganization();
    if (organization === undefined || (await this.done(new DeleteOrganization(), { id: organization.id })) === null) return;
    organization.isThere = false;
    await this.createOrganization();
  }

  // What all of it is made of.

  /** Later ones are likelier. The same one whatever else there is, and was. */
  private pick<T extends object>(items: readonly T[]): T | undefined {
    const salt = this.chance.below(2 ** 31);
    const scored = items.map((item) => {
      const { place, key } = this.births.get(item)!;
      return { item, score: Math.log(new Chance(salt ^ Math.imul(key, 0x9e3779b1)).number()) * (1 + (this.place - place) / 20) };
    });
    return scored.reduce<(typeof scored)[number] | undefined>((best, each) => (best === undefined || each.score > best.score ? each : best), undefined)?.item;
  }

  private born<T extends object>(item: T): T {
    const same = [...this.births.values()].filter(({ place }) => place === this.place).length;
    if (!this.births.has(item)) this.births.set(item, { place: this.place, key: this.place * 100 + same });
    return item;
  }

  /** Who has a password. */
  private get known(): readonly User[] {
    return this.model.users.filter(({ isThere, password }) => isThere && password !== null);
  }

  private get ready(): readonly User[] {
    return this.known.filter(({ isVerified }) => isVerified);
  }

  private isProtected(user: User): boolean {
    return this.model.counting(user, Infinity).length > 0;
  }

  private organizationsOf(user: User): readonly Organization[] {
    return this.model.organizations.filter((each) => this.model.member(user, each) !== null);
  }

  private somebody(): User | undefined {
    return this.pick(this.model.users.filter(({ isThere }) => isThere));
  }

  private livingOrganization(): Organization | undefined {
    return this.pick(this.model.organizations.filter(({ isThere }) => isThere));
  }

  private livingToken(): RefreshToken | undefined {
    return this.pick(
      this.tokens.filter(({ session }, place) => this.model.lives(session) && this.tokens.findLastIndex((each) => each.session === session) === place),
    );
  }

  /** What somebody had before tries whether it still works. */
  private lastOf(user: User): Act | null {
    const token = this.tokens.findLast(({ session }) => session.flow.user === user);
    const code = this.authorizationCodes.findLast(({ carried: { flow } }) => flow !== null && flow !== 'denied' && flow.user === user);
    if (code !== undefined && (token === undefined || this.chance.is(0.4))) return () => this.withAuthorizationCode(code);
    return token === undefined ? null : () => this.refresh(token);
  }

  private invitationFor(email: string): { readonly given: Invitation | null; readonly body: Body } {
    const isAny = this.chance.is(0.1);
    const theirs = this.invitations.filter(({ invitation }) => invitation.email === email || isAny);
    const found = this.chance.is(0.3) ? this.pick(theirs) : undefined;
    return { given: found?.invitation ?? null, body: found === undefined ? {} : { invitation_token: found.token } };
  }

  /** Of the present half minute, or nearly; null where it is of none. */
  private codeOf(factor: Factor, isWrong: boolean): readonly [number | null, string] {
    const [secret, present] = [this.secrets.get(factor)!, stepAt(this.clock.now())];
    const drift = this.chance.weighted([
      [8, 0],
      [2, -1],
      [1, 1],
    ]);
    const step = present + (isWrong && this.chance.is(0.5) ? 2 * (drift || 1) : drift);
    const code = codeOfStep(secret, step);
    if (!isWrong || this.chance.is(0.5)) return [step, code];
    const near = [-2, -1, 0, 1, 2].map((each) => codeOfStep(secret, present + each));
    return [null, near.includes(otherThan(code)) ? otherThan(otherThan(code)) : otherThan(code)];
  }

  /** Mostly at once, and sometimes at the last moment, or after it. */
  private follow(of: string, at: number, attempt: Act): void {
    this.edge(of, at, attempt);
    const isLate = this.chance.is(0.08);
    this.next = isLate ? () => this.atTheEnd({ of, at, attempt }) : attempt;
  }

  private edge(of: string, at: number, attempt: Act): void {
    this.edges.push(this.born({ of, at, attempt }));
  }

  private get time(): string {
    return new Date(this.clock.now()).toISOString();
  }

  private forward(milliseconds: number): void {
    this.clock.forward(milliseconds);
    this.model.now = this.clock.now();
  }

  private context(): RequestContext {
    return systemContext(this.own.environment, this.clock.now());
  }

  /** What was answered; null where it was refused. Whoever is told to come again later does. */
  private async done<Answer>(operation: Operation<Answer>, given: Body): Promise<Answer | null> {
    const name = `${operation.constructor.name} ${briefly(given)}`;
    for (;;) {
      try {
        const answer = await this.product.call(Object.assign(operation, { ...given, context: this.context() }));
        this.trail.push(`${this.time}  ${name} → ${briefly(answer ?? {})}`);
        return answer;
      } catch (error) {
        if (!(error instanceof DomainError) || error.kind === 'unavailable') throw new Error(`${name} failed`, { cause: error });
        this.trail.push(`${this.time}  ${name} → ${error.code}`);
        const { retryAfter } = error.details;
        if (error.kind !== 'limited' || retryAfter === undefined) return null;
        this.forward(retryAfter * SECOND);
      }
    }
  }
}

function otherThan(code: string): string {
  return String((Number(code) + 1) % 1_000_000).padStart(6, '0');
}

/** One line, without what is as long as it says little. */
function briefly(body: Body): string {
  const { access_token: _, client_secret: _secret, user: _user, message: _message, error_description: _description, ...rest } = body;
  return JSON.stringify(rest, (_key, value: unknown) => (typeof value === 'string' && value.length > 60 ? `${value.slice(0, 50)}…` : value)).slice(0, 260);
}
