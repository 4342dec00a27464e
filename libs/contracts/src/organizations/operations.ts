import { ListOf, MapOfText, OneOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { Command, created, ok, Operation, Query } from '../operation.ts';
import { Organization } from './organization.ts';

/** A domain to add with an organization. */
export class DomainData {
  @Text({ doc: 'The domain.', min: 1, max: 253 }) domain!: string;
  @OneOf(['pending', 'verified'], { doc: 'Send `verified` only for a domain whose ownership you have verified yourself.' }) state!: 'pending' | 'verified';
}

@Operation({
  post: '/organizations',
  owner: 'identity',
  summary: 'Create an organization',
  answers: created(Organization),
  refuses: ['invalid_metadata', 'external_id_already_used', 'domain_already_exists'],
  emits: ['organization.created', 'organization_domain.created', 'organization_domain.verified'],
})
export class CreateOrganization extends Command<Organization> {
  @Picked(Organization) name!: string;
  @Optional() @ListOf(() => DomainData, { doc: 'Domains to add.', maxItems: 100 }) domain_data?: readonly DomainData[];
  @Optional() @Picked(Organization) external_id?: string | null;
  @Optional() @MapOfText({ doc: 'Your own data.', nullable: true }) metadata?: Readonly<Record<string, string | null>> | null;
}

@Operation({ get: '/organizations/{id}', owner: 'identity', summary: 'Get an organization', answers: ok(Organization) })
export class GetOrganization extends Query<Organization> {
  @Ref(() => Organization, { doc: 'The organization.' }) id!: string;
}
