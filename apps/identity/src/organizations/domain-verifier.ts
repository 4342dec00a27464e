import type { OrganizationDomain } from '#libs/contracts/src/organizations/organization';

export type DomainChallenge = Pick<OrganizationDomain, 'domain' | 'verification_prefix' | 'verification_token'>;

/** Looks at the outside world for a proof that whoever has the token controls the domain. */
export abstract class DomainVerifier {
  /** Whether the proof can be seen now. A server that is slow, away or broken proves nothing, and is no error. */
  abstract isProven(challenge: DomainChallenge): Promise<boolean>;
}
