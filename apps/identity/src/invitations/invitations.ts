import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { InvitationWithToken } from '#libs/contracts/src/invitations/invitation';
import {
  AcceptInvitation,
  FindInvitationByToken,
  GetInvitation,
  ListInvitations,
  ResendInvitation,
  RevokeInvitation,
  SendInvitation,
} from '#libs/contracts/src/invitations/operations';
import type { List, Serialised } from '#libs/contracts/src/operation';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { storedEmail } from '#libs/contracts/src/text-formats';
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { mayHaveRun } from '#libs/event-sourcing/src/deciding/repeats';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, invalidField, notFound } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { filteredPage } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type PageRequest, type StoredRow, type Table } from '#libs/read-models/src/read-models';
import { ApplicationLinks } from '../codes/application-links.ts';
import { CodeRequests } from '../codes/code-requests.ts';
import { DeliverableAddresses } from '../codes/deliverable-addresses.ts';
import { InvitationAcceptance } from '../codes/invitation-acceptance.ts';
import { InvitationTokens } from '../codes/invitation-tokens.ts';
import { Mailboxes } from '../codes/mailboxes.ts';
import {
  acceptInvitation,
  alreadyInvited,
  createInvitation,
  expireInvitation,
  invitationDecider,
  openKey,
  requireDays,
  requireInvitation,
  resendInvitation,
  revokeInvitation,
  stateAt,
  toPublicInvitation,
  type InvitationEvent,
  type InvitationState,
  type StoredInvitation,
} from '../domain/invitation.decider.ts';
import { membershipDecider, membershipKey, type HeldRole } from '../domain/membership.decider.ts';
import { foldedEmail, type StoredUser } from '../domain/user.decider.ts';
import { OrganizationPolicies } from '../readers/organization-policies.ts';
import { ParentReader } from '../readers/parent-reader.ts';
import { RoleDirectory } from '../readers/role-directory.ts';
import { invitationsView } from '../views/invitations.view.ts';
import { PendingMemberships } from './pending-memberships.ts';

const serialise = serialiserOf(InvitationWithToken);

/** Invitations by mail, to the application or to one of its organizations. */
@Injectable()
export class Invitations {
  private readonly rows: Table<StoredInvitation>;

  constructor(
    private readonly repository: Repository,
    private readonly tokens: InvitationTokens,
    private readonly acceptance: InvitationAcceptance,
    private readonly pending: PendingMemberships,
    private readonly mailboxes: Mailboxes,
    private readonly requests: CodeRequests,
    private readonly addresses: DeliverableAddresses,
    private readonly policies: OrganizationPolicies,
    private readonly parents: ParentReader,
    private readonly roles: RoleDirectory,
    private readonly links: ApplicationLinks,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(invitationsView));
  }

  @Handles(SendInvitation)
  async send(operation: SendInvitation): Promise<InvitationWithToken> {
    const { context } = operation;
    const id = `invitation_${derivedId(context.commandId, 0)}`;
    const made = mayHaveRun(context) ? await this.rows.find(context, id) : null;
    const invitation = made === null ? await this.create(operation, id) : contentOf(made);
    await this.pending.begin(context, invitation);
    return this.shown(context, invitation);
  }

  @Handles(ListInvitations)
  async list(query: ListInvitations): Promise<Serialised<List<InvitationWithToken>>> {
    return filteredPage(this.rows, query, {
      idPrefix: 'invitation',
      where: whereOf(query),
      textsOf: async (rows) => {
        const lives = await this.livingAmong(query.context.environment, rows);
        return Promise.all(rows.map(async (row, index) => (lives[index] ? serialise(await this.shown(query.context, contentOf(row))) : null)));
      },
    });
  }

  @Handles(GetInvitation)
  async get({ context, id }: GetInvitation): Promise<InvitationWithToken> {
    return this.shown(context, await this.require(context, id));
  }

  @Handles(FindInvitationByToken)
  async findByToken({ context, token }: FindInvitationByToken): Promise<InvitationWithToken> {
    const found = await this.tokens.find(context, token);
    // Nothing of the token is quoted.
    if (found === null) throw notFound('Invitation', 'unknown token');
    return this.shown(context, await this.require(context, found.id));
  }

  @Handles(AcceptInvitation)
  async accept({ context, id }: AcceptInvitation): Promise<InvitationWithToken> {
    const invitation = await this.require(context, id);
    const user = invitation.email === null ? null : await this.mailboxes.userOf(context, invitation.email);
    if (user !== null) return this.shown(context, await this.acceptance.accept(context, invitation, user.id));
    if (this.stateOf(invitation) === 'pending') throw new DomainError('invalid', 'invalid_invite', 'Nobody has the address of the invitation.');
    return this.decide(context, id, acceptInvitation(id, ''));
  }

  @Handles(ResendInvitation)
  async resend({ context, id, locale }: ResendInvitation): Promise<InvitationWithToken> {
    const invitation = await this.require(context, id);
    const { email, organization_id } = invitation;
    if (this.stateOf(invitation) === 'pending' && email !== null && !mayHaveRun(context)) {
      await this.requireMayInvite(context, organization_id);
      await this.requests.count(context, 'invitation', email);
      await this.addresses.require(email, () => this.mailboxes.userOf(context, email));
    }
    return this.decide(context, id, resendInvitation(id, locale ?? null));
  }

  @Handles(RevokeInvitation)
  async revoke({ context, id }: RevokeInvitation): Promise<InvitationWithToken> {
    await this.require(context, id);
    const answer = await this.decide(context, id, revokeInvitation(id));
    await this.pending.end(context, await this.require(context, id));
    return answer;
  }

  private async create(operation: SendInvitation, id: string): Promise<StoredInvitation> {
    const { context, organization_id = null, inviter_user_id = null, expires_in_days: days, locale = null } = operation;
    requireDays(days);
    if (organization_id !== null) await this.parents.requireOrganization(context, organization_id);
    await this.requireMayInvite(context, organization_id);
    if (inviter_user_id !== null) await this.parents.requireUser(context, inviter_user_id);
    const role = await this.role(operation, organization_id);
    const email = storedEmail(operation.email);
    const user = await this.mailboxes.userOf(context, email);
    await this.requireStranger(context, organization_id, user);
    await this.requireNoneOpen(context, organization_id, email);
    await this.requests.count(context, 'invitation', email);
    await this.addresses.require(email, async () => user);
    const invitation = { email, organization_id, inviter_user_id, user_id: user?.id ?? null, role, locale, days };
    const { state } = await this.repository.transact(invitationDecider, context, id, createInvitation(invitation));
    return requireInvitation(state, id);
  }

  /** @throws DomainError `organization_blocked_from_sending_invites` */
  private async requireMayInvite(context: RequestContext, organizationId: string | null): Promise<void> {
    if (organizationId === null || (await this.policies.policy(context, organizationId)).invitations === 'allowed') return;
    throw new DomainError('forbidden', 'organization_blocked_from_sending_invites', `The organization '${organizationId}' may not send invitations.`);
  }

  /** @throws DomainError `invalid_role`, whatever is wrong with it */
  private async role({ context, role_slug }: SendInvitation, organizationId: string | null): Promise<HeldRole | null> {
    if (role_slug === undefined) return null;
    if (organizationId === null) throw invalidField('not_alone', 'role_slug', 'A role needs an organization.');
    try {
      return (await this.roles.resolveRequestedRoles(context, organizationId, { role_slug }))![0]!;
    } catch (error) {
      if (!(error instanceof DomainError) || error.details.role_slug === undefined) throw error;
      throw new DomainError('invalid', 'invalid_role_of_invitation', error.message, error.details);
    }
  }

  /** @throws DomainError `user_already_exists`, `user_already_organization_member`, also where they are suspended: reactivating them is for administrators */
  private async requireStranger({ environment }: RequestContext, organizationId: string | null, user: StoredUser | null): Promise<void> {
    if (user === null) return;
    if (organizationId === null) throw new DomainError('conflict', 'user_already_exists', `A user has the address '${user.email}'.`);
    const membership = await this.repository.load(membershipDecider, environment, membershipKey(organizationId, user.id));
    if (membership?.object === 'organization_membership' && membership.status !== 'pending')
      throw new DomainError('conflict', 'user_already_organization_member', `The user '${user.id}' is a member of the organization '${organizationId}'.`);
  }

  /** One whose time is over keeps nobody from inviting again. Of several that ask at once, the claim lets one go on. */
  private async requireNoneOpen({ environment }: RequestContext, organizationId: string | null, email: string): Promise<void> {
    const where = { index: 'organization_and_email', values: [openKey(organizationId, email)] };
    const { rows } = await this.rows.page(environment, { where, order: 'desc', limit: 1 });
    const last = rows.map(contentOf)[0];
    if (last?.state !== 'pending') return;
    if (this.stateOf(last) === 'pending') throw alreadyInvited(organizationId, email);
    await this.repository.transact(invitationDecider, systemContext(environment, this.clock.now()), last.id, expireInvitation(last.id));
  }

  private async decide(context: RequestContext, id: string, decision: Decision<InvitationState, InvitationEvent>): Promise<InvitationWithToken> {
    const { state } = await this.repository.transact(invitationDecider, context, id, decision);
    return this.shown(context, requireInvitation(state, id));
  }

  /** @throws DomainError `entity_not_found`, also where its organization is gone */
  private async require(context: RequestContext, id: string): Promise<StoredInvitation> {
    const invitation = contentOf(await this.rows.require(context, id));
    const { organization_id } = invitation;
    if (organization_id !== null && !(await this.parents.hasOrganization(context, organization_id))) throw notFound('Invitation', id);
    return invitation;
  }

  private async livingAmong(environment: string, rows: readonly StoredRow<StoredInvitation>[]): Promise<readonly boolean[]> {
    const ids = rows.map((row) => contentOf(row).organization_id);
    const living = await this.parents.organizationsAmong(
      environment,
      ids.filter((id) => id !== null),
    );
    return ids.map((id) => id === null || living.has(id));
  }

  private async shown(context: RequestContext, invitation: StoredInvitation): Promise<InvitationWithToken> {
    const token = await this.tokens.of(context, invitation);
    return { ...toPublicInvitation(invitation, this.stateOf(invitation)), token, accept_invitation_url: this.links.invitation(token) };
  }

  private stateOf(invitation: StoredInvitation): InvitationWithToken['state'] {
    return stateAt(invitation, new Date(this.clock.now()).toISOString());
  }
}

function whereOf({ organization_id, email }: ListInvitations): PageRequest['where'] {
  if (email === undefined) return organization_id === undefined ? undefined : { index: 'organization', values: [organization_id] };
  if (organization_id === undefined) return { index: 'email', values: [foldedEmail(email)] };
  return { index: 'organization_and_email', values: [openKey(organization_id, email)] };
}
