import { Injectable } from '@nestjs/common';
import { closingIn } from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import { pastAbandoned, type ParentStatus } from '#libs/event-sourcing/src/deciding/guards/parent-status';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import { Clock } from '#libs/platform/src/clock';
import { isNotFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { organizationRolesDecider, reopenOrganizationRole } from '../domain/organization-roles.decider.ts';
import { reopenResourceType } from '../domain/resource-types.decider.ts';
import { nodeOf, reopenResource } from '../domain/resource.decider.ts';
import { AuthorizationModels } from '../repositories/authorization-models.ts';
import { ResourceTrees } from '../repositories/resource-trees.ts';
import type { CLOSED } from './hangings.ts';

/** Ends intents that nothing came of: whoever had them found the thing used, or died. Nothing happens where they are over. */
@Injectable()
export class Reopening {
  constructor(
    private readonly repository: Repository,
    private readonly models: AuthorizationModels,
    private readonly trees: ResourceTrees,
    private readonly clock: Clock,
  ) {}

  /** Carries out what refuses what is closed; what was left closed is reopened first. */
  past<Done>(context: RequestContext, work: () => Promise<Done>): Promise<Done> {
    return pastAbandoned(context, (status) => this.of(context.environment, status), work);
  }

  /** For intents as the log tells of them, by the kinds of things. */
  byThing(): Readonly<Record<(typeof CLOSED)[number], (event: RecordedEvent) => Promise<void>>> {
    return {
      resource_type: (event) => {
        const { id, intent } = closingIn(event);
        return this.ofType(event.meta.environment, id, intent);
      },
      organization_role: (event) => {
        const { id, intent } = closingIn(event);
        return this.ofRole(event.meta.environment, event.meta.organization!, id, intent);
      },
      resource: async (event) => {
        const { id, intent } = closingIn(event);
        try {
          await this.ofResource(event.meta.environment, event.meta.organization!, id, intent);
        } catch (error) {
          // Nobody meets the intent of what is gone.
          if (!isNotFound(error)) throw error;
        }
      },
    };
  }

  async ofType(environment: string, id: string, intent: string): Promise<void> {
    await this.models.transact(this.context(environment), reopenResourceType(id, intent));
  }

  async ofRole(environment: string, organizationId: string, id: string, intent: string): Promise<void> {
    await this.repository.transact(organizationRolesDecider, this.context(environment), organizationId, reopenOrganizationRole(id, intent));
  }

  async ofResource(environment: string, organizationId: string, id: string, intent: string): Promise<void> {
    await this.trees.transact(this.context(environment), {
      organizationId,
      changes: ({ tree }) => nodeOf(tree, { id }),
      decide: ({ closings }) => reopenResource(id, { intent, open: closings.of(id).closing }),
    });
  }

  private of(environment: string, { stream, id, closing }: ParentStatus): Promise<void> {
    const { intent } = closing!;
    // The key of the stream, unless it is that of the model.
    const organizationId = stream.slice(stream.indexOf(environment) + environment.length + 1);
    if (id.startsWith('resource_type_')) return this.ofType(environment, id, intent);
    if (id.startsWith('role_')) return this.ofRole(environment, organizationId, id, intent);
    return this.ofResource(environment, organizationId, id, intent);
  }

  private context(environment: string): RequestContext {
    return systemContext(environment, this.clock.now());
  }
}
