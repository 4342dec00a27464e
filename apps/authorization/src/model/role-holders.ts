import { Injectable } from '@nestjs/common';
import { EventStore } from '#libs/event-sourcing/src/event-store';
import { streamName } from '#libs/event-sourcing/src/naming';
import { notFound } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';

/** What the roles of an organization have to know of those who may have them. */
@Injectable()
export class RoleHolders {
  constructor(private readonly events: EventStore) {}

  /** @throws DomainError `entity_not_found` where there is no such organization, or no more */
  async requireOrganization({ environment }: RequestContext, organizationId: string): Promise<void> {
    const events = await this.events.read(streamName('organization', environment, organizationId), 1);
    if (events.length === 0 || events.some(({ type }) => type === 'organization.deleted')) throw notFound('Organization', organizationId);
  }

  async haveRole(_context: RequestContext, _organizationId: string, _roleId: string): Promise<boolean> {
    return false;
  }
}
