import { Injectable } from '@nestjs/common';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import type { RequestContext } from '#libs/platform/src/request-context';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { StoredUser } from '../domain/user.decider.ts';
import { organizationsView } from '../views/organizations.view.ts';
import { usersView } from '../views/users.view.ts';

/** Organizations and users that something hangs on: whether they live. */
@Injectable()
export class ParentReader {
  private readonly organizations: Table<Organization>;
  private readonly users: Table<StoredUser>;

  constructor(readModels: ReadModels) {
    this.organizations = readModels.table(tableOf(organizationsView));
    this.users = readModels.table(tableOf(usersView));
  }

  /** @throws DomainError `entity_not_found` */
  async requireOrganization(context: RequestContext, id: string): Promise<void> {
    await this.organizations.require(context, id);
  }

  /** @throws DomainError `entity_not_found` */
  async requireUser(context: RequestContext, id: string): Promise<void> {
    await this.users.require(context, id);
  }

  async hasOrganization(context: RequestContext, id: string): Promise<boolean> {
    return (await this.organizations.find(context, id)) !== null;
  }

  /** Those of the organizations that live, as the rows are. */
  organizationsAmong(environment: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    return this.organizations.presentAmong(environment, ids);
  }

  /** Those of the users that live, as the rows are. */
  usersAmong(environment: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    return this.users.presentAmong(environment, ids);
  }
}
