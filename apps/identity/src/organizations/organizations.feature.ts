import { feature } from '#libs/runtime/src/feature';
import { DnsDomainVerifier } from './dns.domain-verifier.ts';
import { DomainLookUps, OldDomainLookUps, YoungDomainLookUps } from './domain-look-ups.ts';
import { DomainVerification } from './domain-verification.ts';
import { DomainVerifier } from './domain-verifier.ts';
import { OrganizationDomains } from './organization-domains.ts';
import { organizationDecider } from './organization.decider.ts';
import { Organizations } from './organizations.ts';
import { organizationsView } from './organizations.view.ts';

export const organizations = feature({
  deciders: [organizationDecider],
  views: [organizationsView],
  providers: [Organizations, OrganizationDomains, DomainVerification, DomainLookUps, { provide: DomainVerifier, useClass: DnsDomainVerifier }],
  parts: [YoungDomainLookUps, OldDomainLookUps],
});
