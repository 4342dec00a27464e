import { Injectable } from '@nestjs/common';
import { GetOrganizationAccess } from '#libs/contracts/src/access-checks/operations';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { isNotFound } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { organizationDecider } from '../domain/organization.decider.ts';
import { type StoredUser } from '../domain/user.decider.ts';
import type { StoredMembership } from '../domain/membership.decider.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { MembershipReader } from '../readers/membership-reader.ts';
import { RoleDirectory } from '../readers/role-directory.ts';
import { TokenKeys } from '../readers/token-keys.ts';
import { TokenTemplates } from '../readers/token-templates.ts';
import { ShownUsers } from '../readers/shown-users.ts';

/** Whom a token is for. */
export interface TokenSubject {
  readonly user: StoredUser;
  readonly session_id: string;
  readonly client_id: string;
  /** The active membership of the organization that it is for; null: for none. */
  readonly membership: StoredMembership | null;
}

/** When it is issued, and since when the person is signed in (milliseconds). */
interface TokenTimes {
  readonly authenticatedAt: number;
  readonly sessionEnd: number;
}

type Claims = Readonly<Record<string, unknown>>;

/** Session access tokens: what they say, as it stands when they are issued. */
@Injectable()
export class AccessTokens {
  constructor(
    private readonly settings: EnvironmentSettingsReader,
    private readonly transport: OperationTransport,
    private readonly roles: RoleDirectory,
    private readonly memberships: MembershipReader,
    private readonly templates: TokenTemplates,
    private readonly users: ShownUsers,
    private readonly repository: Repository,
    private readonly keys: TokenKeys,
    private readonly clock: Clock,
  ) {}

  /**
   * Everything that the token will say but its times. Asks whatever may refuse, so it comes before anything is spent.
   * @throws DomainError `service_unavailable`, `token_too_big`
   */
  async claims(context: RequestContext, { user, session_id, client_id, membership }: TokenSubject): Promise<Claims> {
    const identity = { iss: await this.keys.issuer(context.environment, client_id), sub: user.id, sid: session_id, client_id, aud: client_id };
    const access = membership === null ? {} : { org_id: membership.organization_id, ...(await this.access(context, membership)) };
    return { ...identity, ...access, ...(await this.added(context, user, membership)) };
  }

  /** What the template of the environment adds: it can say nothing of what guards decide by. */
  private async added(context: RequestContext, user: StoredUser, membership: StoredMembership | null): Promise<Claims> {
    if (!(await this.templates.isSet(context))) return {};
    const [organization, full] =
      membership === null
        ? [null, null]
        : await Promise.all([
            this.repository.load(organizationDecider, context.environment, membership.organization_id),
            this.memberships.full(context, membership),
          ]);
    return this.templates.claims(context, {
      user: await this.users.one(context.environment, user),
      organization: organization?.object === 'organization' ? organization : null,
      organization_membership: full,
    });
  }

  async signed({ environment }: RequestContext, claims: Claims, { authenticatedAt, sessionEnd }: TokenTimes): Promise<string> {
    const { sessions } = await this.settings.settings({ environment });
    const now = this.clock.now();
    const end = Math.min(now + sessions.access_token_seconds * 1_000, sessionEnd);
    const times = { jti: newUlid(now), iat: seconds(now), exp: seconds(end), auth_time: seconds(authenticatedAt) };
    return this.keys.sign(environment, { ...claims, ...times }, { typ: 'JWT' });
  }

  private async access(context: RequestContext, { id, organization_id }: StoredMembership): Promise<Claims> {
    const question = Object.assign(new GetOrganizationAccess(), { context, organization_membership_id: id });
    const { role_ids, permissions } = await this.transport.call(question).catch((error: unknown) => {
      // It ended while it was asked for: the session ends with it.
      if (isNotFound(error)) return { role_ids: [], permissions: [] };
      throw error;
    });
    const directory = await this.roles.inOrganization(context.environment, organization_id);
    const roles = directory.withIds(role_ids).map(({ slug }) => slug);
    return { role: roles[0], roles, permissions };
  }
}

function seconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1_000);
}
