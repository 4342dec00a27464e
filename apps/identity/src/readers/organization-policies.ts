import { Injectable } from '@nestjs/common';
import type { RequestContext } from '#libs/platform/src/request-context';
import { authenticationPolicyDecider, policyOf, type Policy } from '../domain/authentication-policy.decider.ts';
import { KnownStates } from './known-states.ts';

/** How the members of organizations have to sign in: from memory, as this process last heard of it. */
@Injectable()
export class OrganizationPolicies {
  constructor(private readonly states: KnownStates) {}

  /** Of a living organization. */
  async policy({ environment }: Pick<RequestContext, 'environment'>, organizationId: string): Promise<Policy> {
    return policyOf(await this.states.state(authenticationPolicyDecider, environment, organizationId));
  }
}
