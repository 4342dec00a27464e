import type { Repository } from '#libs/event-sourcing/src/deciding/repository';
import type { Reaction } from '#libs/event-sourcing/src/following/reaction';
import type { Clock } from '#libs/platform/src/clock';
import { systemContext } from '#libs/platform/src/system-context';
import { organizationDecider, recordDomainDeletions, type OrganizationEvent } from './organization.decider.ts';

/** The domains are dead with their organization; this tells so of each. Asked again, it finds none left to tell of. */
export function deleteDomainsWhenOrganizationDeleted(repository: Repository, clock: Clock): Reaction {
  return {
    name: 'delete-domains-when-organization-deleted',
    handles: ['organization.deleted' satisfies OrganizationEvent['type']],
    react: async ({ meta, data }) => {
      const { id } = data as { readonly id: string };
      // As many at a time as an append takes: whoever is stopped in between goes on with those that are left.
      const next = () => repository.transact(organizationDecider, systemContext(meta.environment, clock.now()), id, recordDomainDeletions());
      while ((await next()).facts.length > 0);
    },
  };
}
