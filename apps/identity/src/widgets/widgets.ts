import { Injectable } from '@nestjs/common';
import type { AccessCheckBatch } from '#libs/contracts/src/access-checks/access-check';
import { CheckAccessBatch } from '#libs/contracts/src/access-checks/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Serialised } from '#libs/contracts/src/operation';
import { ORGANIZATION_TYPE } from '#libs/contracts/src/resource-types/resource-type';
import { CreateWidgetToken, type WidgetScope, type WidgetToken } from '#libs/contracts/src/widgets/operations';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { invalidField, notFound } from '#libs/platform/src/domain-error';
import { newUlid } from '#libs/platform/src/ids';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import type { StoredMembership } from '../domain/membership.decider.ts';
import { DirectoryStandings } from '../readers/directory-standings.ts';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { ParentReader } from '../readers/parent-reader.ts';
import { TokenKeys, type TokenKind } from '../readers/token-keys.ts';
import { membershipsOf, membershipsView } from '../views/memberships.view.ts';

const VALID_SECONDS = 3_600;
/** No guard of another kind takes it: its `typ` is its own. */
const WIDGET: TokenKind = { typ: 'widget+jwt', aud: 'urn:gatehouse:widgets' };

type Member = Pick<StoredMembership, 'id' | 'organization_id'>;

@Injectable()
export class Widgets {
  private readonly memberships: Table<StoredMembership>;

  constructor(
    private readonly keys: TokenKeys,
    private readonly environments: EnvironmentSettingsReader,
    private readonly parents: ParentReader,
    private readonly directories: DirectoryStandings,
    private readonly transport: OperationTransport,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.memberships = readModels.table(tableOf(membershipsView));
  }

  @Handles(CreateWidgetToken)
  async createToken({ context, organization_id, user_id, scopes = [] }: CreateWidgetToken): Promise<WidgetToken> {
    if (scopes.length > 0 && organization_id === undefined)
      throw invalidField('required', 'organization_id', 'organization_id is required where scopes are given.');
    if (organization_id !== undefined) await this.parents.requireOrganization(context, organization_id);
    if (user_id !== undefined) await this.parents.requireUser(context, user_id);
    const membership = organization_id === undefined || user_id === undefined ? null : await this.membership(context, organization_id, user_id);
    const granted = membership === null ? [] : await this.held(context, membership, [...new Set(scopes)]);
    const issued = Math.floor(this.clock.now() / 1_000);
    const iss = await this.keys.issuer(context.environment, await this.environments.clientId(context));
    const claims = { iss, sub: user_id, org_id: organization_id, scopes: granted, jti: newUlid(this.clock.now()), iat: issued, exp: issued + VALID_SECONDS };
    return { token: await this.keys.sign(context.environment, claims, WIDGET) };
  }

  /** @throws DomainError `entity_not_found` where the user is no active member */
  private async membership({ environment, deadline }: RequestContext, organization_id: string, user_id: string): Promise<Member> {
    const where = membershipsOf({ organization_id, user_id }, ['active']);
    const { rows } = await this.memberships.page(environment, { where, order: 'asc', limit: 1 });
    await this.directories.headReached(deadline);
    if (rows[0] === undefined || !(await this.directories.allow(environment, contentOf(rows[0]))))
      throw notFound('Active organization membership of the user', user_id);
    return { id: rows[0].id, organization_id };
  }

  /** Those of the scopes that the member holds in the organization, as the end of the log says. */
  private async held(context: RequestContext, { id, organization_id }: Member, scopes: readonly WidgetScope[]): Promise<readonly WidgetScope[]> {
    if (scopes.length === 0) return [];
    const checks = scopes.map((permission_slug) => ({ permission_slug, resource_external_id: organization_id, resource_type_slug: ORGANIZATION_TYPE }));
    const answer: unknown = await this.transport.call(Object.assign(new CheckAccessBatch(), { context, organization_membership_id: id, checks }));
    const { results } = answer instanceof Serialised ? (JSON.parse(answer.json) as AccessCheckBatch) : (answer as AccessCheckBatch);
    return scopes.filter((_, index) => results[index]!.authorized);
  }
}
