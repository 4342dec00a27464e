import type { OrganizationEvent } from '#apps/identity/src/domain/organization.decider';
import { ORGANIZATIONS_OF_DIRECTORIES } from '#libs/contracts/src/directories/organizations-of-directories';
import type { EventDirectoryDomain } from '#libs/contracts/src/directories/directory';
import type { FactOf } from '#libs/event-sourcing/src/deciding/decider';
import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import type { View } from '#libs/event-sourcing/src/views/view';

/** An organization, as far as directories need to know it. */
export interface KnownOrganization {
  readonly id: string;
  /** In the order in which they were added. */
  readonly domains: readonly Omit<EventDirectoryDomain, 'object'>[];
}

type OrganizationFact = FactOf<
  OrganizationEvent,
  'organization.created' | 'organization.deleted' | 'organization_domain.created' | 'organization_domain.deleted'
>;

/** Which organizations there are, and their domains. */
export const organizationsView: View<KnownOrganization, OrganizationFact> = {
  ...ORGANIZATIONS_OF_DIRECTORIES,
  noun: 'Organization',
  handles: ['organization.created', 'organization.deleted', 'organization_domain.created', 'organization_domain.deleted'],
  indexes: [{ name: 'domain', keys: ({ domains }) => domains.map(({ domain }) => domain) }],
  idsOf: ({ stream }) => [streamKeyOf(stream)],
  evolve: (row, { type, data }, id) => {
    switch (type) {
      case 'organization.created':
        return { id, domains: data.domains.map((one) => ({ id: one.id, domain: one.domain })) };
      case 'organization.deleted':
        return null;
      case 'organization_domain.created':
        return row && { ...row, domains: [...row.domains.filter((one) => one.id !== data.id), { id: data.id, domain: data.domain }] };
      case 'organization_domain.deleted':
        return row && { ...row, domains: row.domains.filter((one) => one.id !== data.id) };
    }
  },
};
