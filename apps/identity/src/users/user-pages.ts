import type { Pages } from '#libs/read-models/src/pages';
import type { PageRequest, RowPage, StoredRow, Table } from '#libs/read-models/src/read-models';
import type { StoredUser } from './user.decider.ts';
import { rowIdOf, type UserOfOrganization } from './users-of-organizations.view.ts';

/** Pages of those users who are active members of an organization. */
export class UserPages {
  constructor(
    private readonly users: Table<StoredUser>,
    private readonly ofOrganizations: Table<UserOfOrganization>,
  ) {}

  /** In the order of the users, with those left out who died and whose memberships still stand. */
  ofOrganization(organizationId: string): Pages {
    return { page: (environment, request) => this.livingPage(environment, organizationId, request) };
  }

  /** Of the few users whom another index finds, those who are members. */
  ofOrganizationWhere(organizationId: string, where: PageRequest['where']): Pages {
    return {
      page: async (environment, request) => {
        const page = await this.users.page(environment, { ...request, where });
        const members = await this.ofOrganizations.getMany(
          environment,
          page.rows.map(({ id }) => rowIdOf(id, organizationId)),
        );
        return { ...page, rows: page.rows.filter((_, index) => members[index] !== null) };
      },
    };
  }

  private async livingPage(environment: string, organizationId: string, request: PageRequest): Promise<RowPage> {
    const { order, limit, before } = request;
    const where = { index: 'organization', values: [organizationId] };
    const cursorOf = (userId: string | undefined): string | undefined => (userId === undefined ? undefined : rowIdOf(userId, organizationId));
    const first = await this.ofOrganizations.page(environment, { where, order, limit, after: cursorOf(request.after), before: cursorOf(before) });
    let rows = await this.usersOf(environment, first);
    if (before !== undefined) {
      let page = first;
      while (rows.length < limit && page.hasBefore) {
        page = await this.ofOrganizations.page(environment, { where, order, limit, before: page.rows[0]!.id });
        rows = [...(await this.usersOf(environment, page)), ...rows];
      }
      return { rows: rows.slice(-limit), hasBefore: page.hasBefore || rows.length > limit, hasAfter: first.hasAfter };
    }
    let page = first;
    while (rows.length < limit && page.hasAfter) {
      page = await this.ofOrganizations.page(environment, { where, order, limit, after: page.rows.at(-1)!.id });
      rows = [...rows, ...(await this.usersOf(environment, page))];
    }
    return { rows: rows.slice(0, limit), hasBefore: first.hasBefore, hasAfter: page.hasAfter || rows.length > limit };
  }

  private async usersOf(environment: string, { rows }: RowPage): Promise<readonly StoredRow[]> {
    const users = await this.users.getMany(
      environment,
      rows.map(({ id }) => id.slice(0, id.indexOf('.'))),
    );
    return users.filter((row) => row !== null);
  }
}
