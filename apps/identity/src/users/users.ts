import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import { TEXT_FORMATS } from '#libs/contracts/src/text-formats';
import { CreateUser, DeleteUser, GetUser, GetUserByExternalId, ListUsers, UpdateUser } from '#libs/contracts/src/users/operations';
import type { User } from '#libs/contracts/src/users/user';
import { Repository, type Transacted } from '#libs/event-sourcing/src/repository';
import { tableOf } from '#libs/event-sourcing/src/view';
import { DomainError, notFound } from '#libs/platform/src/domain-error';
import { derivedId } from '#libs/platform/src/ids';
import { pageOf, type Pages } from '#libs/read-models/src/pages';
import { ReadModels, type PageRequest, type Table } from '#libs/read-models/src/read-models';
import { organizationsView } from '../organizations/organizations.view.ts';
import { Passwords } from './passwords.ts';
import { createUser, deleteUser, foldedEmail, living, updateUser, userDecider, type StoredUser, type UserEvent, type UserState } from './user.decider.ts';
import { UserPages } from './user-pages.ts';
import { usersOfOrganizationsView } from './users-of-organizations.view.ts';
import { shownUser, usersView } from './users.view.ts';

@Injectable()
export class Users {
  private readonly rows: Table<StoredUser>;
  private readonly organizations: Table<Organization>;
  private readonly pages: UserPages;

  constructor(
    private readonly repository: Repository,
    private readonly passwords: Passwords,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(usersView));
    this.organizations = readModels.table(tableOf(organizationsView));
    this.pages = new UserPages(this.rows, readModels.table(tableOf(usersOfOrganizationsView)));
  }

  @Handles(CreateUser)
  async create(operation: CreateUser): Promise<User> {
    const { context } = operation;
    const id = `user_${derivedId(context.commandId, 0)}`;
    const password = await this.passwords.stored(operation, context.deadline);
    const { state } = await this.repository.transact(userDecider, context, id, createUser(operation, password)).catch(asCreationError);
    return living(state, id);
  }

  @Handles(GetUser)
  async get({ context, id }: GetUser): Promise<Serialised<User>> {
    const row = await this.rows.get(context.environment, id);
    if (row === null) throw notFound('User', id);
    return new Serialised(shownUser(row.text));
  }

  @Handles(GetUserByExternalId)
  async getByExternalId({ context, external_id }: GetUserByExternalId): Promise<Serialised<User>> {
    const where = { index: 'external_id', values: [external_id] };
    const { rows } = await this.rows.page(context.environment, { where, order: 'desc', limit: 1 });
    if (rows[0] === undefined) throw notFound('User', external_id);
    return new Serialised(shownUser(rows[0].text));
  }

  @Handles(ListUsers)
  async list(query: ListUsers): Promise<Serialised<List<User>>> {
    const { email, organization_id = query.organization } = query;
    const where = email === undefined ? undefined : { index: 'email', values: [foldedEmail(email)] };
    const pages = organization_id === undefined ? this.rows : await this.ofOrganization(query.context.environment, organization_id, where);
    return pageOf(pages, query, { idPrefix: 'user', where, textOf: shownUser });
  }

  @Handles(UpdateUser)
  async update(operation: UpdateUser): Promise<User> {
    const { context, id, email, locale } = operation;
    if (email !== undefined && !TEXT_FORMATS.email(email)) throw invalid('invalid_email', 'email', 'This is not an email address.');
    if (typeof locale === 'string' && !isLanguageTag(locale)) throw invalid('invalid_locale', 'locale', 'This is not a BCP 47 language tag.');
    const password = await this.passwords.stored(operation, context.deadline);
    const { state } = await this.repository.transact(userDecider, context, id, updateUser(id, operation, password));
    return living(state, id);
  }

  @Handles(DeleteUser)
  async delete({ context, id }: DeleteUser): Promise<void> {
    // The decision takes a repeated command for done; another one is told that there is nothing to delete.
    if ((await this.rows.get(context.environment, id)) === null) throw notFound('User', id);
    await this.repository.transact(userDecider, context, id, deleteUser(id));
  }

  /** An organization that was deleted has no users, whatever of its memberships is still to be recorded. */
  private async ofOrganization(environment: string, id: string, where: PageRequest['where']): Promise<Pages> {
    const organization = await this.organizations.get(environment, id);
    if (organization === null) return NO_PAGES;
    return where === undefined ? this.pages.ofOrganization(id) : this.pages.ofOrganizationWhere(id, where);
  }
}

const NO_PAGES: Pages = { page: async () => ({ rows: [], hasBefore: false, hasAfter: false }) };

/** Whoever creates is told in one way what is taken. */
function asCreationError(error: unknown): Transacted<UserState, UserEvent> {
  const isTaken = error instanceof DomainError && (error.code === 'email_not_available' || error.code === 'external_id_already_used');
  throw isTaken ? new DomainError('conflict', 'user_creation_error', 'Could not create the user.', error.details) : error;
}

function isLanguageTag(text: string): boolean {
  try {
    return Intl.getCanonicalLocales(text).length === 1 && text.length <= 64;
  } catch {
    return false;
  }
}

function invalid(code: 'invalid_email' | 'invalid_locale', field: string, message: string): DomainError {
  return new DomainError('invalid', code, message, { errors: [{ code, field, message }] });
}
