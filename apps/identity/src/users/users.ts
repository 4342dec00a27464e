import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import { storedEmail, TEXT_FORMATS } from '#libs/contracts/src/text-formats';
import { CreateUser, DeleteUser, EraseUser, GetUser, GetUserByExternalId, ListIdentities, ListUsers, UpdateUser } from '#libs/contracts/src/users/operations';
import type { Identity, User } from '#libs/contracts/src/users/user';
import { Deletions } from '#libs/event-sourcing/src/deciding/deletions';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { EventStore } from '#libs/event-sourcing/src/log/event-store';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { DomainError, refusedField } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { pageOf, filteredPage } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type PageRequest, type Table } from '#libs/read-models/src/read-models';
import { domainOfAddress } from '../domain/domain-name.ts';
import type { StoredMembership } from '../domain/membership.decider.ts';
import {
  createUser,
  deleteUser,
  emailTaken,
  eraseUser,
  foldedEmail,
  hadOtherFold,
  requireUser,
  updateUser,
  userDecider,
  type StoredUser,
} from '../domain/user.decider.ts';
import { AddressHolders } from '../readers/address-holders.ts';
import { membershipsOf, membershipsView } from '../views/memberships.view.ts';
import { organizationsView } from '../views/organizations.view.ts';
import { rowIdOf, userIdOf, usersOfOrganizationsView, type UserOfOrganization } from '../views/users-of-organizations.view.ts';
import { usersView } from '../views/users.view.ts';
import { ShownUsers } from '../readers/shown-users.ts';
import { EnvironmentPasswordRules } from '../passwords/password-rules.ts';
import { Passwords } from '../passwords/passwords.ts';
import { InvitedAddresses } from './invited-addresses.ts';

const MEMBERSHIPS_AT_ONCE = 100;

@Injectable()
export class Users {
  private readonly rows: Table<StoredUser>;
  private readonly organizations: Table<Organization>;
  private readonly members: Table<UserOfOrganization>;
  private readonly memberships: Table<StoredMembership>;

  constructor(
    private readonly repository: Repository,
    private readonly passwords: Passwords,
    private readonly rules: EnvironmentPasswordRules,
    private readonly deletions: Deletions,
    private readonly events: EventStore,
    private readonly holders: AddressHolders,
    private readonly shown: ShownUsers,
    private readonly invited: InvitedAddresses,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(usersView));
    this.organizations = readModels.table(tableOf(organizationsView));
    this.members = readModels.table(tableOf(usersOfOrganizationsView));
    this.memberships = readModels.table(tableOf(membershipsView));
  }

  @Handles(CreateUser)
  async create(operation: CreateUser): Promise<User> {
    const { context } = operation;
    const id = `user_${derivedId(context.commandId, 0)}`;
    const email = storedEmail(operation.email);
    const password = await this.passwords.stored(operation, context.deadline, await this.rules.of(context, email));
    try {
      await this.refuseOlderHolder(context, email, id);
      const { state } = await this.repository.transact(userDecider, context, id, createUser({ ...operation, email }, password));
      return await this.shown.one(context.environment, requireUser(state, id));
    } catch (error) {
      throw asCreationError(error);
    }
  }

  @Handles(GetUser)
  async get({ context, id }: GetUser): Promise<Serialised<User>> {
    return new Serialised(await this.shown.text(context.environment, await this.rows.require(context, id)));
  }

  @Handles(GetUserByExternalId)
  async getByExternalId({ context, external_id }: GetUserByExternalId): Promise<Serialised<User>> {
    return new Serialised(await this.shown.text(context.environment, await this.rows.requireBy(context, 'external_id', external_id)));
  }

  @Handles(ListUsers)
  async list(query: ListUsers): Promise<Serialised<List<User>>> {
    const { email, organization_id = query.organization } = query;
    const where = email === undefined ? undefined : { index: 'email', values: [foldedEmail(email)] };
    if (organization_id === undefined)
      return filteredPage(this.rows, query, { idPrefix: 'user', where, textsOf: (rows) => this.shown.texts(query.context.environment, rows) });
    const organization = await this.organizations.find(query.context, organization_id);
    // One that was deleted has no users, whatever of its memberships is still to be recorded.
    if (organization === null) return pageOf(this.rows, query, { idPrefix: 'user', where: { index: 'email', values: [] } });
    return where === undefined ? this.listMembers(query, organization_id) : this.listAmongMembers(query, organization_id, where);
  }

  @Handles(UpdateUser)
  async update(operation: UpdateUser): Promise<User> {
    const { context, id, locale } = operation;
    const email = operation.email === undefined ? undefined : storedEmail(operation.email);
    if (email !== undefined && !TEXT_FORMATS.email(email))
      throw refusedField('invalid', 'invalid_email', { field: 'email', message: 'This is not an email address.' });
    if (typeof locale === 'string' && !isLanguageTag(locale))
      throw refusedField('invalid', 'invalid_locale', { field: 'locale', message: 'This is not a BCP 47 language tag.' });
    // Before a password is hashed for nobody.
    const before = await this.rows.require(context, id);
    if (email !== undefined) await this.refuseOlderHolder(context, email, id);
    if (email !== undefined) await this.refuseManaged(context, contentOf(before), email);
    const password = await this.passwords.stored(operation, context.deadline, await this.rules.of(context, email ?? contentOf(before).email));
    const { state } = await this.repository.transact(userDecider, context, id, updateUser(id, { ...operation, email }, password));
    return this.shown.one(context.environment, requireUser(state, id));
  }

  @Handles(DeleteUser)
  async delete({ context, id }: DeleteUser): Promise<void> {
    await this.deletions.once({ context, what: 'User', id }, async () => {
      await this.rows.require(context, id);
      return this.repository.transact(userDecider, context, id, deleteUser(id));
    });
  }

  @Handles(EraseUser)
  async erase({ context, id }: EraseUser): Promise<void> {
    const addresses = await this.addressesOf(context, id);
    const [others, invited] = await Promise.all([this.holders.all(context.environment, addresses), this.invited.holdersOf(context, id, addresses)]);
    await this.repository.transact(userDecider, context, id, eraseUser(id, [...others, ...invited]));
  }

  /** There are none before sign-in through providers is there. */
  @Handles(ListIdentities)
  async listIdentities({ context, id }: ListIdentities): Promise<readonly Identity[]> {
    await this.rows.require(context, id);
    return [];
  }

  /** Those that the log still knows, former ones too. */
  private async addressesOf({ environment }: RequestContext, id: string): Promise<readonly string[]> {
    const records = await this.events.read(streamName(userDecider.category, environment, id));
    return records.flatMap(({ type, data }) => {
      const { email } = type === 'user.created' || type === 'user.updated' ? (data as { readonly email?: string | null }) : {};
      return typeof email === 'string' ? [email] : [];
    });
  }

  /**
   * Whoever took an address while addresses were compared differently has not claimed the spelling of today, unless they changed since. Nobody like that comes
   * to be any more, so that looking is as good as claiming.
   * @throws DomainError `email_not_available`
   */
  private async refuseOlderHolder({ environment }: RequestContext, email: string, id: string): Promise<void> {
    const { rows } = await this.rows.page(environment, { where: { index: 'email', values: [foldedEmail(email)] }, order: 'asc', limit: 10 });
    const isOlder = ({ email: held }: StoredUser): boolean => held !== null && hadOtherFold(held);
    if (rows.some((row) => row.id !== id && isOlder(contentOf(row)))) throw emailTaken(email);
  }

  /**
   * A directory says the addresses of those whom it manages, where its organization has verified their domain: another one would be put back with its next change.
   * @throws DomainError `email_change_not_allowed`
   */
  private async refuseManaged({ environment }: RequestContext, { id, email: before }: StoredUser, email: string): Promise<void> {
    if (before === null || foldedEmail(before) === foldedEmail(email)) return;
    const domain = domainOfAddress(before);
    const where = membershipsOf({ user_id: id }, ['active', 'inactive']);
    for (let after: string | undefined, more = true; more;) {
      const page = await this.memberships.page(environment, { where, order: 'asc', limit: MEMBERSHIPS_AT_ONCE, after });
      const managed = page.rows.map(contentOf).filter(({ managed_by }) => managed_by !== null);
      const organizations = await this.organizations.getMany(
        environment,
        managed.map(({ organization_id }) => organization_id),
      );
      if (organizations.some((row) => row !== null && contentOf(row).domains.some((each) => each.domain === domain && each.state === 'verified')))
        throw new DomainError('conflict', 'email_change_not_allowed', 'A directory manages this user: the address is changed there.', { entity_id: id });
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
  }

  /** In the order of the users, without those who died and whose memberships still stand. */
  private listMembers(query: ListUsers, organizationId: string): Promise<Serialised<List<User>>> {
    return filteredPage(this.members, query, {
      idPrefix: 'user',
      where: { index: 'organization', values: [organizationId] },
      rowIdOf: (userId) => rowIdOf(userId, organizationId),
      idOf: ({ id }) => userIdOf(id),
      textsOf: async (rows) => {
        const users = rows.map(({ id }) => userIdOf(id));
        return this.shown.texts(query.context.environment, await this.rows.getMany(query.context.environment, users));
      },
    });
  }

  /** Of the few whom another index finds, those who are members. */
  private listAmongMembers(query: ListUsers, organizationId: string, where: PageRequest['where']): Promise<Serialised<List<User>>> {
    return filteredPage(this.rows, query, {
      idPrefix: 'user',
      where,
      textsOf: async (rows) => {
        const pairs = rows.map(({ id }) => rowIdOf(id, organizationId));
        const members = await this.members.getMany(query.context.environment, pairs);
        return this.shown.texts(
          query.context.environment,
          rows.map((row, index) => (members[index] == null ? null : row)),
        );
      },
    });
  }
}

/** Whoever creates is told in one way what is taken. */
function asCreationError(error: unknown): unknown {
  const isTaken = error instanceof DomainError && (error.code === 'email_not_available' || error.code === 'external_id_already_used');
  return isTaken ? new DomainError('conflict', 'user_creation_error', 'Could not create the user.', error.details) : error;
}

function isLanguageTag(text: string): boolean {
  try {
    return Intl.getCanonicalLocales(text).length === 1 && text.length <= 64;
  } catch {
    return false;
  }
}
