import { Injectable } from '@nestjs/common';
import type { AuthenticationPolicy } from '#libs/contracts/src/authentication-policy/authentication-policy';
import { GetAuthenticationPolicy, UpdateAuthenticationPolicy } from '#libs/contracts/src/authentication-policy/operations';
import { Handles } from '#libs/contracts/src/handles';
import type { Organization } from '#libs/contracts/src/organizations/organization';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { authenticationPolicyDecider, changePolicy, policyOf, type AuthenticationPolicyState } from '../domain/authentication-policy.decider.ts';
import { KnownStates } from '../readers/known-states.ts';
import { organizationsView } from '../views/organizations.view.ts';

@Injectable()
export class AuthenticationPolicies {
  private readonly organizations: Table<Organization>;

  constructor(
    private readonly repository: Repository,
    private readonly states: KnownStates,
    readModels: ReadModels,
  ) {
    this.organizations = readModels.table(tableOf(organizationsView));
  }

  @Handles(GetAuthenticationPolicy)
  async get({ context, organization_id }: GetAuthenticationPolicy): Promise<AuthenticationPolicy> {
    await this.organizations.require(context, organization_id);
    return shown(organization_id, await this.repository.load(authenticationPolicyDecider, context.environment, organization_id));
  }

  @Handles(UpdateAuthenticationPolicy)
  async update({ context, organization_id, ...change }: UpdateAuthenticationPolicy): Promise<AuthenticationPolicy> {
    await this.organizations.require(context, organization_id);
    const { state } = await this.repository.transact(authenticationPolicyDecider, context, organization_id, changePolicy(organization_id, change));
    this.states.forget(authenticationPolicyDecider, context.environment, organization_id);
    return shown(organization_id, state);
  }
}

function shown(organization_id: string, state: AuthenticationPolicyState): AuthenticationPolicy {
  return { object: 'authentication_policy', organization_id, ...policyOf(state), updated_at: state?.updated_at ?? null };
}
