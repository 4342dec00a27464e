import { Organization } from '#libs/contracts/src/organizations/organization';
import { serialiserOf } from '#libs/contracts/src/serialiser';
import { primaryView } from '#libs/event-sourcing/src/views/view';
import type { Index } from '#libs/read-models/src/read-models';
import { organizationDecider, type OrganizationEvent, type OrganizationState } from '../domain/organization.decider.ts';
import { searchKeys } from '#libs/read-models/src/name-search';

const indexes: readonly Index<Organization>[] = [
  { name: 'external_id', keys: ({ external_id }) => (external_id === null ? [] : [external_id]) },
  { name: 'domain', keys: ({ domains }) => domains.map(({ domain }) => domain) },
  { name: 'domain_id', keys: ({ domains }) => domains.map(({ id }) => id) },
  { name: 'search', keys: ({ name }) => searchKeys(name) },
  {
    name: 'look_up_minute',
    keys: ({ domains }) => [...new Set(domains.filter(({ state }) => state === 'pending').map(({ updated_at }) => lookUpMinute(updated_at)))],
  },
];

/** The minute of every hour in which a domain is looked for whose window began at `start`: `07`. */
export function lookUpMinute(start: string): string {
  return start.slice(14, 16);
}

/** Every live organization, as the API shows it. */
export const organizationsView = primaryView<OrganizationState, OrganizationEvent, Organization>({
  name: 'organizations',
  noun: 'Organization',
  version: 2,
  decider: organizationDecider,
  indexes,
  rowOf: (state) => (state?.object === 'organization' ? state : null),
  serialise: serialiserOf(Organization),
});
