import { Injectable } from '@nestjs/common';
import { SendInvitation } from '#libs/contracts/src/invitations/operations';
import { storedEmail, TEXT_FORMATS } from '#libs/contracts/src/text-formats';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, unavailable } from '#libs/platform/src/domain-error';
import { commandIdOf, derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { InvitationAcceptance } from '../codes/invitation-acceptance.ts';
import {
  changeLink,
  directoryLinkDecider,
  endLink,
  isSameLink,
  managedByOf,
  type DirectoryLink,
  type DirectoryLinkState,
  type StoredDirectoryLink,
} from '../domain/directory-link.decider.ts';
import { domainOfAddress } from '../domain/domain-name.ts';
import type { FollowedDirectory, FollowedPerson } from '../domain/followed-directory.decider.ts';
import { acceptInvitation, endInvitation, invitationDecider, openKey, type StoredInvitation } from '../domain/invitation.decider.ts';
import {
  endManagedMembership,
  handOver,
  manageMembership,
  membershipDecider,
  membershipKey,
  suspendMembership,
  type ManagedBy,
  type MembershipEvent,
  type MembershipState,
  type StoredMembership,
} from '../domain/membership.decider.ts';
import { organizationDecider } from '../domain/organization.decider.ts';
import { createUser, foldedEmail, linkData, updateUser, userDecider, verifyEmail, type StoredUser } from '../domain/user.decider.ts';
import { DirectoryStandings } from '../readers/directory-standings.ts';
import { RoleDirectory } from '../readers/role-directory.ts';
import { invitationsView } from '../views/invitations.view.ts';
import { membershipsView } from '../views/memberships.view.ts';
import { usersView } from '../views/users.view.ts';
import { JointWait } from './joint-wait.ts';

/** Others may change the same person's user and membership meanwhile. */
const MOST_TRIES = 10;
const LOOK_TIMEOUT_MS = 30_000;
const MOST_NAME = 255;
const MOST_OF_AN_ADDRESS = 10;
/** Holders of what is known of a person in a directory have this name there. */
const holderOfPerson = (id: string): string => `directory_user.${id}`;

/** What made somebody look at a person again: the same record has the same commands. */
export interface Cause {
  readonly id: string;
  /** When it was recorded, in milliseconds since the epoch. */
  readonly at: number;
}

/** Everything about a person that a decision goes by. */
interface Case {
  readonly environment: string;
  readonly cause: Cause;
  readonly person: FollowedPerson;
  readonly directory: FollowedDirectory;
  readonly managed_by: ManagedBy;
  readonly link: StoredDirectoryLink | null;
  /** The address as users have it; null where the person has none that is one. */
  readonly email: string | null;
}

type Outcome = Omit<DirectoryLink, 'id' | 'directory_id' | 'organization_id' | 'version'>;

const NOTHING: Outcome = {
  link_state: null,
  user_id: null,
  waits_for_user_id: null,
  membership_id: null,
  is_manager: false,
  invitation_id: null,
};

/**
 * Brings the user and the membership of a person of a directory to what the directory says: of one that stands as it should, nothing is recorded. So it may be asked again
 * for whatever happened, in any order, and goes on where it was broken off. What it made is written down in the person's link.
 */
@Injectable()
export class DirectoryFollowing {
  private readonly memberships: Table<StoredMembership>;
  private readonly users: Table<StoredUser>;
  private readonly invitations: Table<StoredInvitation>;
  /** The last turn of each person. */
  private readonly turns = new Map<string, Promise<unknown>>();
  private readonly beforeLooks: JointWait;
  private readonly behindLinks: JointWait;

  constructor(
    private readonly repository: Repository,
    private readonly events: EventStore,
    private readonly standings: DirectoryStandings,
    private readonly roles: RoleDirectory,
    private readonly acceptance: InvitationAcceptance,
    private readonly transport: OperationTransport,
    private readonly views: ReadYourWrites,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.memberships = readModels.table(tableOf(membershipsView));
    this.users = readModels.table(tableOf(usersView));
    this.invitations = readModels.table(tableOf(invitationsView));
    const untilHead = (): Promise<void> => standings.headReached(clock.now() + LOOK_TIMEOUT_MS);
    this.behindLinks = new JointWait(untilHead);
    this.beforeLooks = new JointWait(async () => {
      await untilHead();
      await views.waitForHead(clock.now() + LOOK_TIMEOUT_MS, this.memberships.definition.name);
    });
  }

  /** One after the other for each person, whatever asks. `directoryId`: the person's, where it is known. @throws DomainError `service_unavailable` */
  async follow(environment: string, id: string, cause: Cause, directoryId: string | null = null): Promise<void> {
    const key = `${environment} ${id}`;
    const turn = (this.turns.get(key) ?? Promise.resolve()).catch(() => {}).then(() => this.settle(environment, id, cause, directoryId));
    this.turns.set(key, turn);
    try {
      const next = await turn;
      for (const person of next) await this.follow(environment, person, cause);
    } finally {
      if (this.turns.get(key) === turn) this.turns.delete(key);
    }
  }

  /**
   * Looks at whoever manages a membership by what was recorded of it, where that cannot be: a process that stood still may have recorded it after all others had looked at the
   * person, and died before it looked again itself.
   */
  async followManager(environment: string, managed_by: ManagedBy, cause: Cause): Promise<void> {
    await this.behindLinks.over();
    if (!(await this.standings.manages(environment, managed_by))) await this.follow(environment, managed_by.directory_user_id, cause);
  }

  /** Yields whoever has to be looked at after that. */
  private async settle(environment: string, id: string, cause: Cause, directoryId: string | null): Promise<readonly string[]> {
    const others = new Set<string>();
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      await this.beforeLooks.over();
      if (directoryId !== null && (await this.isLeftAlone(environment, id, directoryId))) return [...others];
      const [person, state] = await Promise.all([this.standings.person(environment, id), this.repository.load(directoryLinkDecider, environment, id)]);
      const directory = person && (await this.standings.directory(environment, person.directory_id));
      if (person === null || directory === null) return [...others];
      const link = state?.object === 'directory_link' ? state : null;
      const email = person.email === null ? null : storedEmail(person.email);
      const managed_by = managedByOf(person);
      const about: Case = { environment, cause, person, directory, managed_by, link, email: email !== null && TEXT_FORMATS.email(email) ? email : null };
      if (await this.isSettled(about, state, others)) return [...others];
    }
    throw unavailable('What follows from a person of a directory changes faster than it can be recorded.');
  }

  /** False where it has to be looked at anew. `others`: is told whoever has to be looked at after that. */
  private async isSettled(about: Case, state: DirectoryLinkState, others: Set<string>): Promise<boolean> {
    const { environment, person, directory, link } = about;
    const managed = await this.managed(environment, person.id);
    if (person.isGone || directory.end !== null) {
      for (const other of await this.leave(about, managed)) others.add(other);
      await this.repository.transact(directoryLinkDecider, this.context(about, 'link'), person.id, endLink(person.id, person.version));
      return true;
    }
    if (directory.policy.follows === 'off') {
      for (const other of await this.release(about, managed)) others.add(other);
      // Who was unlinked by hand stays so when it is followed again.
      if (link === null || link.link_state === 'unlinked_by_hand') return this.isAsBefore(about, null);
      const isTakenAway = managed === null && link.is_manager && (await this.wasTakenAway(about, link.user_id!));
      const outcome = isTakenAway ? unlinked(about, link.user_id!) : { ...NOTHING, invitation_id: link.invitation_id };
      return (await this.record(about, state, outcome)) && this.isAsBefore(about, null);
    }
    const outcome = await this.outcome(about, managed);
    if (outcome === null) return true;
    if (!(await this.record(about, state, outcome)) || !(await this.isAsBefore(about, outcome))) return false;
    return outcome.is_manager || outcome.membership_id === null || this.isManagedElsewhere(about, outcome.membership_id);
  }

  /**
   * Whether everything that an outcome went by is as it was. What changed before the link was recorded was told to those who had links by then: nobody else looks at this person again.
   * `outcome`: null where nobody follows the person.
   */
  private async isAsBefore(about: Case, outcome: Outcome | null): Promise<boolean> {
    const { environment, person, directory, email } = about;
    await this.behindLinks.over();
    const now = await this.standings.directory(environment, person.directory_id);
    if (now === null || now.end !== directory.end || JSON.stringify(now.policy) !== JSON.stringify(directory.policy)) return false;
    if (outcome === null) return true;
    const { link_state, user_id, membership_id, is_manager, waits_for_user_id } = outcome;
    if (link_state === 'domain_not_verified' && (await this.isVerified(about, email))) {
      const user = is_manager ? await this.user(environment, user_id!) : null;
      if (user === null || (await this.isVerified(about, user.email))) return false;
    }
    if (!is_manager) return true;
    const membership = await this.repository.load(membershipDecider, environment, membershipKey(person.organization_id, user_id!));
    if (membership?.object !== 'organization_membership' || membership.id !== membership_id || membership.managed_by === null) return false;
    const found = { link_state: link_state === 'deactivated_by_hand' ? ('linked' as const) : link_state, waits_for_user_id };
    return this.linked(about, membership, found).link_state === link_state;
  }

  /** Whether nothing follows a person, and nothing is theirs that a directory made: most often that is known without a look at what the directory says of them. */
  private async isLeftAlone(environment: string, id: string, directoryId: string): Promise<boolean> {
    const directory = await this.standings.directory(environment, directoryId);
    if (directory === null || directory.end !== null || directory.policy.follows !== 'off') return false;
    const link = await this.repository.load(directoryLinkDecider, environment, id);
    return link?.object !== 'directory_link' && (await this.managed(environment, id)) === null;
  }

  /** False where somebody else has recorded something of the link since. */
  private async record({ environment, person, cause }: Case, before: DirectoryLinkState, outcome: Outcome): Promise<boolean> {
    const { id, directory_id, organization_id, version } = person;
    const revision = before?.revision ?? 0;
    const link: DirectoryLink = { id, directory_id, organization_id, version, ...outcome };
    const context = this.context({ environment, person, cause }, `link ${revision}`);
    const { state } = await this.repository.transact(directoryLinkDecider, context, id, changeLink(revision, link));
    return state?.object === 'directory_link' && isSameLink(state, link);
  }

  /** What becomes of somebody whom the directory has, where it is followed; null: what was recorded stays. */
  private async outcome(about: Case, managed: StoredMembership | null): Promise<Outcome | null> {
    const { environment, person, link } = about;
    if (link?.link_state === 'unlinked_by_hand' && link.version === person.version) return null;
    const user = managed === null ? null : await this.user(environment, managed.user_id);
    if (managed !== null && user !== null) return this.ofManaged(about, managed, user);
    const former = managed ?? (link?.is_manager === true ? { user_id: link.user_id! } : null);
    if (former !== null && (await this.wasTakenAway(about, former.user_id))) return unlinked(about, former.user_id);
    return this.ofNewcomer(about);
  }

  /** Whether somebody deleted the user or the membership after the last that the directory said of the person. */
  private async wasTakenAway({ environment, person }: Case, userId: string): Promise<boolean> {
    const streams = [
      streamName('user', environment, userId),
      streamName('organization_membership', environment, membershipKey(person.organization_id, userId)),
    ];
    const ends = await Promise.all(streams.map((stream) => this.events.last(stream)));
    return ends.some((last) => last !== null && last.type.endsWith('.deleted') && last.position > person.position);
  }

  private async ofManaged(about: Case, membership: StoredMembership, user: StoredUser): Promise<Outcome | null> {
    const { environment, person, link, email } = about;
    const isOther = email === null || user.email === null || foldedEmail(email) !== foldedEmail(user.email);
    const [isOurs, isTheirs] = await Promise.all([this.isVerified(about, user.email), this.isVerified(about, email)]);
    const hasChanged = link === null || !link.is_manager || person.version !== link.version;
    const names = isOurs && hasChanged ? namesOf(person) : {};
    let link_state: Outcome['link_state'] = 'linked';
    let waits_for_user_id: string | null = null;
    let given: Parameters<typeof updateUser>[1] = names;
    if (isOther && isOurs && isTheirs) {
      const holder = await this.userOf(environment, email!);
      if (holder === null || holder.id === user.id) given = { ...names, email: email!, email_verified: true };
      else [link_state, waits_for_user_id] = ['email_taken', holder.id];
    } else if (isOther) link_state = 'domain_not_verified';
    try {
      await this.change(about, user.id, given);
    } catch (error) {
      // Somebody has taken the address at this moment.
      if (!(error instanceof DomainError) || error.code !== 'email_not_available') throw error;
      link_state = 'email_taken';
      await this.change(about, user.id, names);
    }
    const state = await this.member(about, user.id, membership.id);
    if (state !== null) return this.linked(about, state, { link_state, waits_for_user_id });
    // Somebody has ended it at this moment: it is not made again.
    return (await this.wasTakenAway(about, user.id)) ? unlinked(about, user.id) : this.outcome(about, await this.managed(environment, person.id));
  }

  private async ofNewcomer(about: Case): Promise<Outcome> {
    const { environment, person, email, link, directory } = about;
    const invitation = link?.invitation_id == null ? null : await this.repository.load(invitationDecider, environment, link.invitation_id);
    // Whoever accepted what was sent for this person reads the mail of the address.
    if (invitation?.state === 'accepted' && email !== null && invitation.email !== null && foldedEmail(invitation.email) === foldedEmail(email)) {
      const user = await this.user(environment, invitation.accepted_user_id!);
      if (user !== null) return this.join(about, user);
    }
    if (!(await this.isVerified(about, email))) {
      const invites = directory.policy.unverified_domains === 'invite' && person.active && email !== null;
      const invitation_id = await this.invite(about, invitation, invites);
      return { ...NOTHING, link_state: 'domain_not_verified', invitation_id };
    }
    const user = await this.userOf(environment, email!);
    if (user !== null) return this.join(about, await this.proven(about, user));
    return person.active ? this.join(about, await this.created(about)) : { ...NOTHING, invitation_id: link?.invitation_id ?? null };
  }

  /** Whoever set a password for an address that the organization has proven is not whom it is of: it goes, with all that was set before. */
  private async proven(about: Case, user: StoredUser): Promise<StoredUser> {
    const { environment, person } = about;
    if (user.email_verified || user.email === null) return user;
    // Somebody who is not to come in proves nothing.
    if (!person.active) return user;
    const proof = { email: user.email, by: person.id, hasPassword: false };
    await this.repository.transact(userDecider, this.context(about, 'proof'), user.id, verifyEmail(user.id, proof));
    return (await this.user(environment, user.id)) ?? user;
  }

  private async created(about: Case): Promise<StoredUser> {
    const { environment, person, email } = about;
    const context = this.context(about, 'user');
    const id = `user_${derivedId(context.commandId, 0)}`;
    try {
      const { state } = await this.repository.transact(userDecider, context, id, createUser({ email: email!, email_verified: true, ...namesOf(person) }, null));
      if (state?.object === 'user') return state;
    } catch (error) {
      if (!(error instanceof DomainError) || (error.code !== 'email_not_available' && error.code !== 'entity_not_found')) throw error;
    }
    // Somebody has made another at this moment, or this one was deleted again: both are told of.
    await this.views.waitForHead(this.clock.now() + LOOK_TIMEOUT_MS, this.users.definition.name);
    const other = await this.userOf(environment, email!);
    if (other === null) throw unavailable('The address is taken by a user who is not there.');
    return this.proven(about, other);
  }

  private async join(about: Case, user: StoredUser): Promise<Outcome> {
    const { environment, person, link } = about;
    const key = membershipKey(person.organization_id, user.id);
    const before = await this.repository.load(membershipDecider, environment, key);
    // Nobody becomes a member by being inactive.
    if (!person.active && before?.object !== 'organization_membership') return { ...NOTHING, invitation_id: link?.invitation_id ?? null };
    if (person.active && (await this.isVerified(about, user.email))) await this.change(about, user.id, namesOf(person));
    await this.repository.transact(userDecider, this.context(about, 'holder'), user.id, linkData(user.id, holderOfPerson(person.id)));
    if (person.active) await this.acceptOpen(about, user);
    const state = await this.member(about, user.id);
    if (state === null) return { ...NOTHING, invitation_id: link?.invitation_id ?? null };
    return this.linked(about, state, { link_state: 'linked', waits_for_user_id: null });
  }

  /** As the directory says of the person; null where there is none. `known`: of this membership alone, which is not made again. */
  private async member(about: Case, user_id: string, known?: string): Promise<StoredMembership | null> {
    const { person, managed_by } = about;
    const context = this.context(about, `member ${user_id}`);
    const { organization_id } = person;
    const roles = await this.roles.ofNewcomer(context, organization_id);
    const decision = person.active ? manageMembership({ organization_id, user_id, roles, managed_by }) : suspendMembership(managed_by);
    const isMeant = (state: MembershipState): boolean => known === undefined || (state?.object === 'organization_membership' && state.id === known);
    const { state } = await this.repository.transact<MembershipState, MembershipEvent>(
      membershipDecider,
      context,
      membershipKey(organization_id, user_id),
      (before, asked) => (isMeant(before) ? decision(before, asked) : []),
    );
    return state?.object === 'organization_membership' && isMeant(state) ? state : null;
  }

  private linked({ person, managed_by, link }: Case, membership: StoredMembership, found: Pick<Outcome, 'link_state' | 'waits_for_user_id'>): Outcome {
    const { id: membership_id, user_id, status } = membership;
    const base = { ...NOTHING, ...found, user_id, membership_id, invitation_id: link?.invitation_id ?? null };
    const manager = membership.managed_by!;
    if (manager.directory_user_id !== managed_by.directory_user_id)
      return { ...base, link_state: manager.directory_id === managed_by.directory_id ? 'email_taken' : 'managed_elsewhere' };
    const isSuspendedByHand = person.active && status === 'inactive' && found.link_state === 'linked';
    return { ...base, is_manager: true, ...(isSuspendedByHand && { link_state: 'deactivated_by_hand' }) };
  }

  /** The directory, or the person in it, is no more. */
  private async leave(about: Case, managed: StoredMembership | null): Promise<readonly string[]> {
    const { environment, person, directory, managed_by, link } = about;
    const isEnd = person.isGone || directory.end === 'end';
    if (isEnd && link?.invitation_id != null)
      await this.repository.transact(invitationDecider, this.context(about, 'invitation'), link.invitation_id, endInvitation(link.invitation_id));
    if (managed === null) return [];
    if (!isEnd) return this.release(about, managed);
    const key = membershipKey(managed.organization_id, managed.user_id);
    const [successor] = (await this.standings.successors(environment, managed.id)).filter((each) => each.directory_user_id !== person.id);
    const decision = successor === undefined ? endManagedMembership(managed_by) : handOver(managed_by, successor);
    await this.repository.transact<MembershipState, MembershipEvent>(membershipDecider, this.context(about, 'leave'), key, decision);
    return successor === undefined ? [] : [successor.directory_user_id];
  }

  /** By hand from now on, unless another directory waits for it; whoever was suspended stays so. */
  private async release(about: Case, managed: StoredMembership | null): Promise<readonly string[]> {
    if (managed === null) return [];
    const { environment, person, managed_by } = about;
    const key = membershipKey(managed.organization_id, managed.user_id);
    if (!person.active)
      await this.repository.transact<MembershipState, MembershipEvent>(membershipDecider, this.context(about, 'suspend'), key, suspendMembership(managed_by));
    const [successor = null] = (await this.standings.successors(environment, managed.id)).filter((each) => each.directory_user_id !== person.id);
    await this.repository.transact<MembershipState, MembershipEvent>(membershipDecider, this.context(about, 'release'), key, handOver(managed_by, successor));
    return successor === null ? [] : [successor.directory_user_id];
  }

  /** The invitation of the person, which is open while `invites`, and to the present address; null where none was sent. */
  private async invite(about: Case, before: StoredInvitation | null, invites: boolean): Promise<string | null> {
    const { person, email } = about;
    const isOpen = before?.state === 'pending';
    const isTheirs = before?.email != null && email !== null && foldedEmail(before.email) === foldedEmail(email);
    if (isOpen && !(invites && isTheirs))
      await this.repository.transact(invitationDecider, this.context(about, 'uninvite'), before.id, endInvitation(before.id));
    // What was sent to the address and came to nothing is not sent again by itself.
    if (!invites || isTheirs) return before?.id ?? null;
    const context: RequestContext = { ...this.context(about, 'invitation'), attempt: 2 };
    const operation = Object.assign(new SendInvitation(), { context, email: email!, organization_id: person.organization_id, expires_in_days: 7 });
    try {
      return (await this.transport.call(operation)).id;
    } catch (error) {
      // They are members already, were invited by somebody, or the organization may invite nobody: then nobody is.
      if (error instanceof DomainError && error.kind !== 'unavailable' && error.kind !== 'limited') return before?.id ?? null;
      throw error;
    }
  }

  /** Whoever is a member needs no invitation: one that is open is accepted. */
  private async acceptOpen(about: Case, user: StoredUser): Promise<void> {
    const { environment, person } = about;
    if (user.email === null) return;
    const where = { index: 'organization_and_email', values: [openKey(person.organization_id, user.email)] };
    const { rows } = await this.invitations.page(environment, { where, order: 'desc', limit: 1 });
    const invitation = rows.map(contentOf)[0];
    if (invitation?.state !== 'pending') return;
    const context = this.context(about, `accept ${invitation.id}`);
    try {
      await this.repository.transact(invitationDecider, context, invitation.id, acceptInvitation(invitation.id, user.id));
    } catch (error) {
      if (error instanceof DomainError && error.kind === 'conflict') return;
      throw error;
    }
    await this.acceptance.join(context, invitation, user.id);
    await this.acceptance.link(context, invitation, user.id);
  }

  private async change(about: Case, userId: string, given: Parameters<typeof updateUser>[1]): Promise<void> {
    if (Object.keys(given).length > 0)
      await this.repository.transact(userDecider, this.context(about, `user ${Object.keys(given).join()}`), userId, updateUser(userId, given, null));
  }

  private async managed(environment: string, personId: string): Promise<StoredMembership | null> {
    const where = { index: 'directory_user', values: [personId] };
    const { rows } = await this.memberships.page(environment, { where, order: 'asc', limit: 1 });
    return rows.map(contentOf)[0] ?? null;
  }

  private async isManagedElsewhere({ environment, person, managed_by }: Case, membershipId: string): Promise<boolean> {
    await this.views.waitForHead(this.clock.now() + LOOK_TIMEOUT_MS, this.memberships.definition.name);
    const row = await this.memberships.get(environment, membershipId);
    const manager = row === null ? null : contentOf(row).managed_by;
    return manager !== null && manager.directory_user_id !== managed_by.directory_user_id && person.id !== manager.directory_user_id;
  }

  private async isVerified({ environment, person }: Case, email: string | null): Promise<boolean> {
    const domain = email === null ? null : domainOfAddress(email);
    if (domain === null) return false;
    const organization = await this.repository.load(organizationDecider, environment, person.organization_id);
    return organization?.object === 'organization' && organization.domains.some((each) => each.domain === domain && each.state === 'verified');
  }

  private async user(environment: string, id: string): Promise<StoredUser | null> {
    const user = await this.repository.load(userDecider, environment, id);
    return user?.object === 'user' ? user : null;
  }

  private async userOf(environment: string, email: string): Promise<StoredUser | null> {
    const where = { index: 'email', values: [foldedEmail(email)] };
    const { rows } = await this.users.page(environment, { where, order: 'asc', limit: MOST_OF_AN_ADDRESS });
    const row = rows.find((each) => contentOf(each).email === email) ?? rows[0];
    return row === undefined ? null : this.user(environment, row.id);
  }

  /** Of a command that is the same whenever it is asked for the same reason. */
  private context({ environment, person, cause }: Pick<Case, 'environment' | 'person' | 'cause'>, step: string): RequestContext {
    return { ...systemContext(environment, this.clock.now()), commandId: commandIdOf(cause.at, person.id, String(person.version), cause.id, step) };
  }
}

/** Somebody deleted the user or the membership: nothing is made again until the product sends a change. */
function unlinked({ link }: Case, user_id: string): Outcome {
  return { ...NOTHING, link_state: 'unlinked_by_hand', user_id, invitation_id: link?.invitation_id ?? null };
}

/** Those that the directory knows. */
function namesOf({ names }: FollowedPerson): Partial<Record<'first_name' | 'last_name' | 'name', string>> {
  const known = Object.entries(names).filter((entry): entry is [string, string] => entry[1] !== null);
  return Object.fromEntries(known.map(([field, value]) => [field, value.slice(0, MOST_NAME)]));
}
