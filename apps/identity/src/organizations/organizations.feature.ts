import { feature } from '#libs/runtime/src/feature';
import { organizationDecider } from '../domain/organization.decider.ts';
import { organizationsView } from '../views/organizations.view.ts';
import { DnsDomainVerifier } from './dns.domain-verifier.ts';
import { DomainLookUps, OldDomainLookUps, YoungDomainLookUps } from './domain-look-ups.ts';
import { DomainVerification } from './domain-verification.ts';
import { DomainVerifier } from './domain-verifier.ts';
import { OrganizationDomains } from './organization-domains.ts';
import { Organizations } from './organizations.ts';

export const organizations = feature({
  deciders: [organizationDecider],
  views: [organizationsView],
  providers: [Organizations, OrganizationDomains, DomainVerification, DomainLookUps, { provide: DomainVerifier, useClass: DnsDomainVerifier }],
  backgroundComponents: [YoungDomainLookUps, OldDomainLookUps],
});
