import { Injectable } from '@nestjs/common';
import type { AuthenticationPolicy } from '#libs/contracts/src/authentication-policy/authentication-policy';
import { GetAuthenticationPolicy, UpdateAuthenticationPolicy } from '#libs/contracts/src/authentication-policy/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { authenticationPolicyDecider, changePolicy, policyOf, type AuthenticationPolicyState } from '../domain/authentication-policy.decider.ts';
import { KnownStates } from '../readers/known-states.ts';
import { ParentReader } from '../readers/parent-reader.ts';

@Injectable()
export class AuthenticationPolicies {
  constructor(
    private readonly repository: Repository,
    private readonly states: KnownStates,
    private readonly parents: ParentReader,
  ) {}

  @Handles(GetAuthenticationPolicy)
  async get({ context, organization_id }: GetAuthenticationPolicy): Promise<AuthenticationPolicy> {
    await this.parents.requireOrganization(context, organization_id);
    return shown(organization_id, await this.repository.load(authenticationPolicyDecider, context.environment, organization_id));
  }

  @Handles(UpdateAuthenticationPolicy)
  async update({ context, organization_id, ...change }: UpdateAuthenticationPolicy): Promise<AuthenticationPolicy> {
    await this.parents.requireOrganization(context, organization_id);
    const { state } = await this.repository.transact(authenticationPolicyDecider, context, organization_id, changePolicy(organization_id, change));
    this.states.forget(authenticationPolicyDecider, context.environment, organization_id);
    return shown(organization_id, state);
  }
}

function shown(organization_id: string, state: AuthenticationPolicyState): AuthenticationPolicy {
  return { object: 'authentication_policy', organization_id, ...policyOf(state), updated_at: state?.updated_at ?? null };
}
