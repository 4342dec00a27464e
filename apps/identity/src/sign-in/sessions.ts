import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised, type List } from '#libs/contracts/src/operation';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { ListUserSessions, RevokeSession } from '#libs/contracts/src/sessions/operations';
import { Session } from '#libs/contracts/src/sessions/session';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { DomainError } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { filteredPage } from '#libs/read-models/src/pages';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { StoredMembership } from '../domain/membership.decider.ts';
import {
  beginningOf,
  endSession,
  isStillMember,
  sessionDecider,
  toPublicSession,
  type EndReason,
  type SessionState,
  type StoredSession,
} from '../domain/session.decider.ts';
import { outdatedBy, type StoredUser } from '../domain/user.decider.ts';
import { DirectoryStandings } from '../readers/directory-standings.ts';
import { membershipsView } from '../views/memberships.view.ts';
import { organizationsView } from '../views/organizations.view.ts';
import { sessionsView, unexpiredOf } from '../views/sessions.view.ts';
import { usersView } from '../views/users.view.ts';
import { RefreshFamilies } from './refresh-families.ts';

const serialise = serialiserOf(Session);

/** Who is signed in, and the end of it. */
@Injectable()
export class Sessions {
  private readonly rows: Table<StoredSession>;
  private readonly users: Table<StoredUser>;
  private readonly organizations: Table<Organization>;
  private readonly memberships: Table<StoredMembership>;

  constructor(
    private readonly repository: Repository,
    private readonly families: RefreshFamilies,
    private readonly directories: DirectoryStandings,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(sessionsView));
    this.users = readModels.table(tableOf(usersView));
    this.organizations = readModels.table(tableOf(organizationsView));
    this.memberships = readModels.table(tableOf(membershipsView));
  }

  @Handles(ListUserSessions)
  async list(query: ListUserSessions): Promise<Serialised<List<Session>>> {
    const { context, user_id } = query;
    const [row] = await Promise.all([this.users.require(context, user_id), this.directories.headReached(context.deadline)]);
    const user = contentOf(row);
    return filteredPage(this.rows, query, {
      idPrefix: 'session',
      where: { index: 'user_and_month', values: unexpiredOf(user_id, this.clock.now()) },
      textsOf: (rows) => Promise.all(rows.map((row) => this.textOf(context.environment, contentOf(row), user))),
    });
  }

  @Handles(RevokeSession)
  async revoke({ context, session_id }: RevokeSession): Promise<void> {
    const state = await this.state(context.environment, session_id);
    if (state?.object !== 'session' && state?.object !== 'ended_session') throw notThere(session_id);
    await this.end(context, session_id, 'revoked');
  }

  /** As the end of the log says. */
  state(environment: string, id: string): Promise<SessionState> {
    return this.repository.load(sessionDecider, environment, id);
  }

  /** It is refreshed no more, whichever replica is asked. */
  async end(context: RequestContext, id: string, reason: EndReason): Promise<void> {
    await this.repository.transact(sessionDecider, context, id, endSession(id, reason));
    await this.families.end(id);
  }

  /** Null for one that nobody can refresh any more. */
  private async textOf(environment: string, session: StoredSession, user: StoredUser): Promise<string | null> {
    const now = this.clock.now();
    const { id, expires_at, organization_id, membership_id } = session;
    if (Date.parse(expires_at) <= now || outdatedBy(user, beginningOf(session)) !== null) return null;
    const [idleUntil, organization, membership] = await Promise.all([
      this.families.idleUntil(environment, id),
      organization_id === null || this.organizations.get(environment, organization_id),
      membership_id === null ? null : this.memberships.get(environment, membership_id),
    ]);
    if (idleUntil === null || idleUntil <= now || organization === null) return null;
    const member = membership && contentOf(membership);
    // A directory ends what it says that there is no more before anything of that is recorded.
    const isMember = isStillMember(session, member) && (member === null || (await this.directories.allow(environment, member)));
    return isMember ? serialise(toPublicSession(session)) : null;
  }
}

function notThere(id: string): DomainError {
  return new DomainError('not-found', 'session_not_found', `Session not found: '${id}'.`, { entity_id: id });
}
