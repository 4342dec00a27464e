import { Const, Flag, Id, ListOf, MapOfText, OneOf, Optional, Ref, Text, Time } from '../fields.ts';

/** A tenant of the application: usually one customer. */
export class Organization {
  @Const('organization') object!: 'organization';
  @Id('org', { doc: 'Identifies the organization.' }) id!: string;
  @Text({ doc: 'Shown to people; not unique.', min: 1, max: 255, example: 'Acme' }) name!: string;
  @ListOf(() => OrganizationDomain, { doc: 'Its domains.' }) domains!: readonly OrganizationDomain[];
  @MapOfText({ doc: 'Your own data: at most 50 pairs, keys of 40 and values of 600 ASCII characters.', example: { tier: 'gold' } })
  metadata!: Readonly<Record<string, string>>;
  @Text({ doc: 'Your own identifier; unique in the environment.', min: 1, max: 128, ascii: true, nullable: true, example: 'customer-42' })
  external_id!: string | null;
  @Optional()
  @Text({ doc: 'Customer identifier at a payment processor, unique in the environment; absent when unset.', min: 1, max: 255, example: 'cus_R9qWAGMQ6nGE7V' })
  payment_customer_id?: string;
  @Optional()
  @Text({ doc: 'The same as `payment_customer_id`, as SDKs read it.', min: 1, max: 255, example: 'cus_R9qWAGMQ6nGE7V' })
  stripe_customer_id?: string;
  @Optional() @Flag({ doc: 'Deprecated: has no effect; kept as it was given.' }) allow_profiles_outside_organization?: boolean;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last; its domains have times of their own.' }) updated_at!: string;
}

/** A domain that an organization owns or claims to own. */
export class OrganizationDomain {
  @Const('organization_domain') object!: 'organization_domain';
  @Id('org_domain', { doc: 'Identifies the domain.' }) id!: string;
  @Ref(() => Organization, { doc: 'The organization that it belongs to.' }) organization_id!: string;
  @Text({ doc: 'The domain, in its ASCII form and in lower case.', max: 253, example: 'acme.test' }) domain!: string;
  @OneOf(['pending', 'verified', 'failed'], { doc: 'Whether ownership was proven.' }) state!: 'pending' | 'verified' | 'failed';
  @Optional()
  @Text({ doc: 'Prefix of the TXT record that proves ownership; absent for manual verification.', example: 'gatehouse-domain-verification-z3kjny' })
  verification_prefix?: string;
  @Optional()
  @Text({ doc: 'Token that the TXT record carries; absent for manual verification.', example: 'm5Oztg3jdK4NJLgs8uIlIprMw' })
  verification_token?: string;
  @OneOf(['dns', 'manual'], { doc: 'How ownership is proven.' }) verification_strategy!: 'dns' | 'manual';
  @Time({ doc: 'When it was added.' }) created_at!: string;
  @Time({ doc: 'When it changed last, or its verification was asked for again.' }) updated_at!: string;
}
