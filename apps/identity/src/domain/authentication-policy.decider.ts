import type { AuthenticationPolicy } from '#libs/contracts/src/authentication-policy/authentication-policy';
import { DEFAULT_POLICY } from '#libs/contracts/src/authentication-policy/default-policy.decider';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { difference, merged, type PartOf } from './parts.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

/** What differs from before; who changed it stands in the record. */
export type AuthenticationPolicyEvent = Fact<'authentication_policy.changed', PolicyChange & { readonly organization_id: string }>;

/** How members of an organization have to sign in, as gates go by it. */
export type Policy = Pick<AuthenticationPolicy, 'methods' | 'sso' | 'mfa' | 'jit_membership' | 'invitations'>;
type PolicyChange = PartOf<Policy>;

export type AuthenticationPolicyState = { readonly organization_id: string; readonly given: PolicyChange; readonly updated_at: string } | null;

function evolve(state: AuthenticationPolicyState, event: AuthenticationPolicyEvent & { readonly at: string }): AuthenticationPolicyState {
  const { organization_id, ...change } = event.data;
  return { organization_id, given: merged(state?.given ?? {}, change), updated_at: event.at };
}

/** Under the id of its organization, and dead with it: nobody is asked for the policy of one that is gone. */
export const authenticationPolicyDecider: Decider<AuthenticationPolicyState, AuthenticationPolicyEvent> = {
  category: 'authentication_policy',
  foldVersion: 1,
  initial: null,
  sealed: { 'authentication_policy.changed': null },
  evolve,
  organization: (state) => state?.organization_id,
  toPublicEvent: () => null,
};

export function changePolicy(organization_id: string, change: PolicyChange): Decision<AuthenticationPolicyState, AuthenticationPolicyEvent> {
  return (state) => {
    const different = difference<Policy>(policyOf(state), change);
    return different === null ? [] : [{ type: 'authentication_policy.changed', data: { organization_id, ...different } }];
  };
}

export function policyOf(state: AuthenticationPolicyState): Policy {
  return state === null ? DEFAULT_POLICY : merged(DEFAULT_POLICY, state.given);
}
