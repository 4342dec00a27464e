import type { SessionMethod } from '#libs/contracts/src/sessions/session';
import type { Policy as OrganizationPolicy } from '../domain/authentication-policy.decider.ts';
import type { Factor } from '../domain/session.decider.ts';

/** An organization that somebody may sign in to. */
export interface Choice {
  readonly id: string;
  readonly name: string;
}

/** What the organization that was chosen asks of its members. */
export interface Policy {
  /** The ways to sign in that it allows, of those that the environment has. */
  readonly methods: Readonly<Record<'password' | 'magic_auth', boolean>>;
  readonly requiresSso: boolean;
  readonly requiresMfa: boolean;
}

/** As gates go by it. */
export function gatePolicyOf({ methods, sso, mfa }: OrganizationPolicy): Policy {
  return { methods, requiresSso: sso === 'required', requiresMfa: mfa === 'required' };
}

/** Everything that a sign-in is decided by. Each step that is finished adds to it. */
export interface SignInFacts {
  /** By what the user showed at first who it is. */
  readonly method: Factor | 'sso';
  /** Whether something spoke against this sign-in, and the code that was asked for is not shown yet. */
  readonly isChallenged: boolean;
  readonly isEmailVerified: boolean;
  readonly mfa: 'off' | 'optional' | 'required';
  /** Whether the user has a second factor that counts. */
  readonly hasFactor: boolean;
  readonly isFactorProven: boolean;
  /** Those of active memberships. */
  readonly organizations: readonly Choice[];
  /** What was chosen in this sign-in; null: nothing yet. */
  readonly chosen: string | null;
  /** Of the organization that was chosen, or of the only one; null where neither is. */
  readonly policy: Policy | null;
}

/** What is asked for next, or the organization (or none) that the session begins in. */
export type Gate =
  | { readonly gate: 'radar_challenge' }
  | { readonly gate: 'email_verification_required' }
  | { readonly gate: 'mfa_enrollment' }
  | { readonly gate: 'mfa_challenge' }
  | { readonly gate: 'organization_selection_required'; readonly organizations: readonly Choice[] }
  | { readonly gate: 'organization_authentication_methods_required'; readonly organizationId: string }
  | { readonly gate: 'sso_required'; readonly organizationId: string }
  | { readonly gate: 'none'; readonly organizationId: string | null };

/** The first gate that is not passed: challenge, email verification, second factor, choice of an organization, policy of the organization. */
export function nextGate(facts: SignInFacts): Gate {
  const { method, isEmailVerified, mfa, organizations, chosen } = facts;
  if (facts.isChallenged) return { gate: 'radar_challenge' };
  if (!isEmailVerified) return { gate: 'email_verification_required' };
  if (mfa !== 'off') {
    const gate = secondFactor(facts, mfa === 'required');
    if (gate !== null) return gate;
  }
  const organizationId = chosen ?? (organizations.length === 1 ? organizations[0]!.id : null);
  if (organizationId === null)
    return organizations.length === 0 ? { gate: 'none', organizationId: null } : { gate: 'organization_selection_required', organizations };
  if (facts.policy === null) throw new Error(`Nobody looked up what ${organizationId} asks of its members.`);
  const { methods, requiresSso, requiresMfa } = facts.policy;
  if (method !== 'sso') {
    if (requiresSso) return { gate: 'sso_required', organizationId };
    if ((method === 'password' || method === 'magic_auth') && !methods[method]) return { gate: 'organization_authentication_methods_required', organizationId };
  }
  return (requiresMfa ? secondFactor(facts, true) : null) ?? { gate: 'none', organizationId };
}

/** Those that an organization may forbid, by what sessions call them. */
const WAYS: Partial<Readonly<Record<SessionMethod, keyof Policy['methods']>>> = { password: 'password', magic_code: 'magic_auth' };

/**
 * What is asked of somebody who goes on being signed in, before the session goes on; null: nothing. `isEntering`: the next token is for another organization than the last,
 * which lets in by its own ways to sign in alone, as it does at sign-in; whoever is in stays.
 */
export function gateOfRefresh({
  method,
  mfa,
  isFactorProven,
  isEntering,
  policy,
}: Pick<SignInFacts, 'mfa' | 'isFactorProven' | 'policy'> & { readonly method: SessionMethod; readonly isEntering: boolean }):
  'sso_required' | 'organization_authentication_methods_required' | 'mfa_enrollment' | null {
  if (method === 'sso') return null;
  if (policy?.requiresSso === true) return 'sso_required';
  const way = WAYS[method];
  if (isEntering && way !== undefined && policy?.methods[way] === false) return 'organization_authentication_methods_required';
  return (mfa === 'required' || policy?.requiresMfa === true) && !isFactorProven ? 'mfa_enrollment' : null;
}

/** Whoever has a second factor proves it; whoever has none enrols one where it is required. The provider of a single sign-on has asked for its own. */
function secondFactor({ method, hasFactor, isFactorProven }: SignInFacts, isRequired: boolean): Gate | null {
  if (method === 'sso' || isFactorProven) return null;
  if (hasFactor) return { gate: 'mfa_challenge' };
  return isRequired ? { gate: 'mfa_enrollment' } : null;
}
