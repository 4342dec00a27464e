import { Injectable } from '@nestjs/common';
import type { Decision } from '#libs/event-sourcing/src/deciding/decider';
import { Repository, type Transacted } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { isNotFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import { AccessIndex } from '../access/access-index.ts';
import type { AuthorizationModel } from '../domain/authorization-model.decider.ts';
import { organizationRolesDecider, type OrganizationRolesEvent, type OrganizationRolesState } from '../domain/organization-roles.decider.ts';
import { organizationRolesView } from '../views/organization-roles.view.ts';
import { AuthorizationModels } from './authorization-models.ts';

type State = OrganizationRolesState | null;

export type RolesDecision = Decision<State, OrganizationRolesEvent>;
export type RolesTransacted = Transacted<State, OrganizationRolesEvent>;

/** The roles that an organization can use: those in its environment's model, and its own. */
export interface RoleSet {
  readonly model: AuthorizationModel;
  /** Null where the organization never had any of its own. */
  readonly own: OrganizationRolesState | null;
}

/** The role sets of all organizations. */
@Injectable()
export class OrganizationRoleSets {
  private readonly rows: Table<OrganizationRolesState>;

  constructor(
    private readonly repository: Repository,
    private readonly models: AuthorizationModels,
    private readonly access: AccessIndex,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(organizationRolesView));
  }

  /** Read anew for every request: what lives is what the model says now. @throws DomainError `entity_not_found` where there is no such organization */
  async of(context: RequestContext, organizationId: string): Promise<RoleSet> {
    const [row, model] = await Promise.all([
      this.rows.get(context.environment, organizationId),
      this.models.of(context.environment),
      this.access.requireOrganization(context, organizationId),
    ]);
    return { model, own: row === null ? null : contentOf(row) };
  }

  /** What is looked for in the roles; once more in what the log has, as in `AuthorizationModels`. @throws DomainError as `of`, and as `look` */
  async found<Found>(context: RequestContext, organizationId: string, look: (roles: RoleSet) => Found): Promise<Found> {
    const roles = await this.of(context, organizationId);
    try {
      return look(roles);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const { environment } = context;
      return look({
        model: await this.models.seeded(environment),
        own: await this.repository.load(organizationRolesDecider, environment, organizationId),
      });
    }
  }

  transact(context: RequestContext, organizationId: string, decision: RolesDecision): Promise<RolesTransacted> {
    return this.repository.transact(organizationRolesDecider, context, organizationId, decision);
  }
}
