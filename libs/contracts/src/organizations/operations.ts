import { ListOf, MapOfText, OneOf, Optional, Picked, Ref, Text } from '../fields.ts';
import { Command, created, empty, listOf, ok, Operation, Query } from '../operation.ts';
import { PageQuery } from '../pages.ts';
import { Organization, OrganizationDomain } from './organization.ts';

const SEARCH = 'Beginnings of words, in upper or lower case and in any order: each begins one of the first 8 words of the name.';

type GivenMetadata = Readonly<Record<string, string | null>>;

/** A domain to add with an organization. */
export class DomainData {
  @Text({ doc: 'The domain.', min: 1, max: 255, example: 'acme.test' }) domain!: string;
  @OneOf(['pending', 'verified'], { doc: 'Send `verified` only for a domain whose ownership you have verified yourself.' }) state!: 'pending' | 'verified';
}

/** What requests may set of an organization beside its name: a new field is a line here. */
abstract class OrganizationFields extends Command<Organization> {
  @Optional() @Picked(Organization) external_id?: string | null;
  @Optional() @Picked(Organization) allow_profiles_outside_organization?: boolean;
}

@Operation({
  post: '/organizations',
  owner: 'identity',
  summary: 'Create an organization',
  maxBody: 256 * 1024,
  answers: created(Organization),
  refuses: ['invalid_metadata', 'external_id_already_used', 'domain_already_exists', 'domain_not_allowed', 'organization_domain_limit_reached'],
  emits: ['organization.created', 'organization_domain.created', 'organization_domain.verified'],
})
export class CreateOrganization extends OrganizationFields {
  @Picked(Organization) name!: string;
  @Optional() @ListOf(() => DomainData, { doc: 'Domains to add.' }) domain_data?: readonly DomainData[];
  @Optional()
  @ListOf({ text: { min: 1, max: 255 } }, { doc: 'Deprecated: domains to add as pending, used where `domain_data` is absent.' })
  domains?: readonly string[];
  @Optional() @MapOfText({ doc: 'Your own data.', nullable: true, example: { tier: 'gold' } }) metadata?: GivenMetadata | null;
}

@Operation({ get: '/organizations/{id}', owner: 'identity', summary: 'Get an organization', answers: ok(Organization) })
export class GetOrganization extends Query<Organization> {
  @Ref(() => Organization, { doc: 'The organization.' }) id!: string;
}

@Operation({
  get: '/organizations/external_id/{external_id}',
  owner: 'identity',
  summary: 'Get an organization by your own identifier',
  answers: ok(Organization),
})
export class GetOrganizationByExternalId extends Query<Organization> {
  @Text({ doc: 'Your own identifier, percent-encoded.' }) external_id!: string;
}

@Operation({
  get: '/organizations',
  owner: 'identity',
  summary: 'List organizations',
  description: 'With `domains` and `search`, those of which both hold.',
  answers: listOf(Organization),
})
export class ListOrganizations extends PageQuery<Organization> {
  @Optional()
  @ListOf({ text: { min: 1, max: 255 } }, { doc: 'Organizations that have any of these domains, in whatever state.', maxItems: 100 })
  domains?: readonly string[];
  @Optional() @Text({ doc: SEARCH, min: 1, max: 255 }) search?: string;
}

@Operation({
  put: '/organizations/{id}',
  owner: 'identity',
  summary: 'Update an organization',
  maxBody: 256 * 1024,
  description:
    'What is absent stays. `metadata` is merged: null removes a key, `{}` removes all. `domain_data` replaces the domains; one that was verified stays verified.',
  answers: ok(Organization),
  refuses: [
    'invalid_metadata',
    'external_id_already_used',
    'payment_customer_id_already_used',
    'domain_already_exists',
    'domain_not_allowed',
    'organization_domain_limit_reached',
  ],
  emits: ['organization.updated', 'organization_domain.created', 'organization_domain.verified', 'organization_domain.deleted'],
})
export class UpdateOrganization extends OrganizationFields {
  @Ref(() => Organization, { doc: 'The organization.' }) id!: string;
  @Optional() @Picked(Organization) name?: string;
  @Optional() @ListOf(() => DomainData, { doc: 'The domains that it has from now on.' }) domain_data?: readonly DomainData[];
  @Optional()
  @ListOf({ text: { min: 1, max: 255 } }, { doc: 'Deprecated: the domains that it has from now on, used where `domain_data` is absent.' })
  domains?: readonly string[];
  @Optional() @MapOfText({ doc: 'Your own data, merged into what is there.', nullable: true, example: { tier: null } }) metadata?: GivenMetadata | null;
  @Optional() @Text({ doc: 'Customer identifier at a payment processor; null clears it.', min: 1, max: 255, nullable: true }) payment_customer_id?:
    string | null;
  @Optional() @Text({ doc: 'The same as `payment_customer_id`; both only with one value.', min: 1, max: 255, nullable: true }) stripe_customer_id?:
    string | null;
}

@Operation({
  delete: '/organizations/{id}',
  owner: 'identity',
  summary: 'Delete an organization',
  description: 'The organization and everything in it is gone at once; events for each of its domains, memberships and groups follow.',
  answers: empty(202),
  limit: { requests: 50, perSeconds: 60 },
  emits: ['organization.deleted', 'organization_domain.deleted', 'organization_membership.deleted', 'group.deleted', 'organization_role.deleted'],
})
export class DeleteOrganization extends Command<void> {
  @Ref(() => Organization, { doc: 'The organization.' }) id!: string;
}

@Operation({
  post: '/organization_domains',
  owner: 'identity',
  summary: 'Add a domain to an organization',
  description:
    'Publish a TXT record at the domain with the value `verification_token=<verification_token>` (or at `<verification_prefix>.<domain>`, the token alone). It is looked for at once, then ever less often, for 30 days.',
  answers: created(OrganizationDomain),
  refuses: ['domain_already_exists', 'domain_not_allowed', 'organization_domain_limit_reached'],
  emits: ['organization_domain.created', 'organization_domain.verified', 'organization_domain.verification_failed'],
})
export class CreateOrganizationDomain extends Command<OrganizationDomain> {
  @Text({ doc: 'The domain.', min: 1, max: 255, example: 'acme.test' }) domain!: string;
  @Ref(() => Organization, { doc: 'The organization that it belongs to.' }) organization_id!: string;
}

@Operation({ get: '/organization_domains/{id}', owner: 'identity', summary: 'Get a domain', answers: ok(OrganizationDomain) })
export class GetOrganizationDomain extends Query<OrganizationDomain> {
  @Ref(() => OrganizationDomain, { doc: 'The domain.' }) id!: string;
}

@Operation({
  post: '/organization_domains/{id}/verify',
  owner: 'identity',
  summary: 'Verify a domain',
  description: 'Looks for its TXT record at once and, while it is not there, again for 30 days from now.',
  answers: created(OrganizationDomain),
  refuses: ['domain_already_verified'],
  emits: ['organization_domain.updated', 'organization_domain.verified', 'organization_domain.verification_failed'],
})
export class VerifyOrganizationDomain extends Command<OrganizationDomain> {
  @Ref(() => OrganizationDomain, { doc: 'The domain.' }) id!: string;
}

@Operation({
  delete: '/organization_domains/{id}',
  owner: 'identity',
  summary: 'Delete a domain',
  answers: empty(204),
  emits: ['organization_domain.deleted'],
})
export class DeleteOrganizationDomain extends Command<void> {
  @Ref(() => OrganizationDomain, { doc: 'The domain.' }) id!: string;
}

@Operation({
  post: '/admin/organization_domains/{id}/check',
  owner: 'identity',
  summary: 'Look up the TXT record of a domain now',
  description: 'Answers when the look-up is done, with the state that follows from it.',
  answers: ok(OrganizationDomain),
  emits: ['organization_domain.verified', 'organization_domain.verification_failed'],
})
export class CheckOrganizationDomain extends Command<OrganizationDomain> {
  @Ref(() => OrganizationDomain, { doc: 'The domain.' }) id!: string;
}

@Operation({
  post: '/admin/organization_domains/{id}/verification',
  owner: 'identity',
  summary: 'Decide the verification of a domain without DNS',
  description: 'For tests, which cannot own DNS: in development mode only.',
  answers: ok(OrganizationDomain),
  refuses: ['forbidden', 'domain_already_verified'],
  emits: ['organization_domain.verified', 'organization_domain.verification_failed'],
})
export class DecideOrganizationDomain extends Command<OrganizationDomain> {
  @Ref(() => OrganizationDomain, { doc: 'The domain.' }) id!: string;
  @OneOf(['verified', 'failed'], { doc: 'What the look-ups are to have found.' }) state!: 'verified' | 'failed';
}
