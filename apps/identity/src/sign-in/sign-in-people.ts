import { Injectable } from '@nestjs/common';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import { storedEmail } from '#libs/contracts/src/text-formats';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { CurrentStates, type CurrentStatesOf } from '#libs/event-sourcing/src/following/current-states';
import { ReadYourWrites } from '#libs/event-sourcing/src/views/read-your-writes';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { DirectoryStandings } from '../readers/directory-standings.ts';
import { membershipDecider, membershipKey, type StoredMembership } from '../domain/membership.decider.ts';
import { organizationDecider } from '../domain/organization.decider.ts';
import { foldedEmail, userDecider, type StoredUser } from '../domain/user.decider.ts';
import { membershipsOf, membershipsView } from '../views/memberships.view.ts';
import { organizationsView } from '../views/organizations.view.ts';
import { usersView } from '../views/users.view.ts';
import type { Choice } from './next-gate.ts';

/** Two could have an address in spellings that were told apart once. */
const MOST_OF_AN_ADDRESS = 10;
const PAGE = 100;

/** Users and what they are members of, as the end of the log says: a sign-in is decided on nothing older. */
@Injectable()
export class SignInPeople {
  private readonly users: Table<StoredUser>;
  private readonly organizations: Table<Organization>;
  private readonly memberships: Table<StoredMembership>;
  private readonly livingOrganizations: CurrentStatesOf<boolean>;
  private readonly activeMemberships: CurrentStatesOf<StoredMembership | null>;

  constructor(
    private readonly repository: Repository,
    private readonly views: ReadYourWrites,
    private readonly current: CurrentStates,
    private readonly directories: DirectoryStandings,
    readModels: ReadModels,
  ) {
    this.users = readModels.table(tableOf(usersView));
    this.organizations = readModels.table(tableOf(organizationsView));
    this.memberships = readModels.table(tableOf(membershipsView));
    this.livingOrganizations = current.of(organizationDecider, (state) => state?.object === 'organization');
    this.activeMemberships = current.of(membershipDecider, (state) =>
      state?.object === 'organization_membership' && state.status === 'active' ? state : null,
    );
  }

  /** Null where nobody has the address. Takes as long whether somebody has it or not. @throws DomainError `service_unavailable` */
  async withEmail({ environment, deadline }: RequestContext, given: string): Promise<StoredUser | null> {
    await this.views.waitForHead(deadline, this.users.definition.name);
    const email = storedEmail(given);
    const where = { index: 'email', values: [foldedEmail(email)] };
    const { rows } = await this.users.page(environment, { where, order: 'asc', limit: MOST_OF_AN_ADDRESS });
    const row = rows.find((each) => contentOf(each).email === email) ?? rows[0];
    const user = row === undefined ? null : await this.withId(environment, row.id);
    return user?.email != null && foldedEmail(user.email) === foldedEmail(email) ? user : null;
  }

  /** Null for one who was deleted. */
  async withId(environment: string, id: string): Promise<StoredUser | null> {
    const user = await this.repository.load(userDecider, environment, id);
    return user?.object === 'user' ? user : null;
  }

  /** The organizations in which the user is active. */
  async choices({ environment, deadline }: RequestContext, userId: string): Promise<readonly Choice[]> {
    await Promise.all([this.views.waitForHead(deadline, this.memberships.definition.name), this.directories.headReached(deadline)]);
    const where = membershipsOf({ user_id: userId }, ['active']);
    const choices: Choice[] = [];
    for (let after: string | undefined, more = true; more;) {
      const page = await this.memberships.page(environment, { where, order: 'asc', limit: PAGE, after });
      const memberships = page.rows.map(contentOf);
      const allowed = await Promise.all(memberships.map((each) => this.directories.allow(environment, each)));
      const ids = memberships.filter((_, index) => allowed[index]).map(({ organization_id }) => organization_id);
      for (const row of await this.organizations.getMany(environment, ids)) if (row !== null) choices.push({ id: row.id, name: contentOf(row).name });
      after = page.rows.at(-1)?.id;
      more = page.hasAfter;
    }
    return choices;
  }

  /** The active membership of a user in a living organization, or null: every refresh asks for it, so it is known in memory. @throws DomainError `service_unavailable` */
  async membership({ environment, deadline }: RequestContext, userId: string, organizationId: string): Promise<StoredMembership | null> {
    await this.current.headReached(deadline);
    // Side by side, and both awaited: where neither can be read, none of the two fails unheard, which would end the process.
    const [isLiving, membership] = await Promise.all([
      this.livingOrganizations.get(environment, organizationId),
      this.activeMemberships.get(environment, membershipKey(organizationId, userId)),
    ]);
    return isLiving && membership !== null && (await this.directories.allow(environment, membership)) ? membership : null;
  }
}
