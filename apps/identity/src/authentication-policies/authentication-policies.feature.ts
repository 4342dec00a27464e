import { feature } from '#libs/runtime/src/feature';
import { authenticationPolicyDecider } from '../domain/authentication-policy.decider.ts';
import { OrganizationPolicies } from '../readers/organization-policies.ts';
import { AuthenticationPolicies } from './authentication-policies.ts';

export const authenticationPolicies = feature({ deciders: [authenticationPolicyDecider], providers: [AuthenticationPolicies, OrganizationPolicies] });
