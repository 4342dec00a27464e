import { Injectable } from '@nestjs/common';
import { seedsOf } from '#libs/contracts/src/roles/seeds';
import { Repository, type Transacted } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { isNotFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { contentOf, ReadModels, type Table } from '#libs/read-models/src/read-models';
import {
  authorizationModelDecider,
  onModel,
  tellOfRoles,
  type AuthorizationModel,
  type AuthorizationModelEvent,
  type AuthorizationModelState,
  type ModelDecision,
} from '../domain/authorization-model.decider.ts';
import { authorizationModelsView } from '../views/authorization-models.view.ts';

/** The models of all environments. Nobody ever sees one without its seeds. */
@Injectable()
export class AuthorizationModels {
  private readonly rows: Table<AuthorizationModel>;

  constructor(
    private readonly repository: Repository,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.rows = readModels.table(tableOf(authorizationModelsView));
  }

  /** As every write that was answered left it, on whichever replica. */
  async of(environment: string): Promise<AuthorizationModel> {
    const row = await this.rows.get(environment, environment);
    return row === null ? this.seeded(environment) : contentOf(row);
  }

  /**
   * What is looked for in a model. Where it is not there, the row may not have been written with its event: then it is looked for in what the log has.
   * @throws DomainError as `look`
   */
  async found<Found>({ environment }: RequestContext, look: (model: AuthorizationModel) => Found): Promise<Found> {
    const model = await this.of(environment);
    try {
      return look(model);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return look(await this.seeded(environment));
    }
  }

  /** As the log has it. Records the seeds where nothing is recorded yet; the same ones, whoever comes first. */
  async seeded(environment: string): Promise<AuthorizationModel> {
    return this.transact(systemContext(environment, this.clock.now()), () => []);
  }

  async transact(context: RequestContext, decide: ModelDecision): Promise<AuthorizationModel> {
    return (await this.decide(context, decide)).state!;
  }

  /** What an append takes of the roles that nothing was recorded of since they changed with something else; false where there are none. */
  async tellOfRoles(environment: string): Promise<boolean> {
    return (await this.decide(systemContext(environment, this.clock.now()), tellOfRoles)).facts.length > 0;
  }

  /** As `transact`, with what was recorded and where. */
  decide(context: RequestContext, decide: ModelDecision): Promise<Transacted<AuthorizationModelState, AuthorizationModelEvent>> {
    const { environment } = context;
    return this.repository.transact(authorizationModelDecider, context, environment, onModel(seedsOf(environment), decide));
  }
}
