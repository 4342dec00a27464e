import { Injectable } from '@nestjs/common';
import { notFound } from '#libs/platform/src/domain-error';
import { SYSTEM_ENVIRONMENT, type RequestContext } from '#libs/platform/src/request-context';
import { environmentSettingsDecider, settingsOf, type StoredSettings } from '../domain/environment-settings.decider.ts';
import { environmentDecider } from '../domain/environment.decider.ts';
import { KnownStates } from './known-states.ts';

/** What an environment is set to, and what identifies it: from memory, as this process last heard of it. */
@Injectable()
export class EnvironmentSettingsReader {
  constructor(private readonly states: KnownStates) {}

  /** Every setting, with the default where nothing was set. Secrets in it are sealed. */
  async settings({ environment }: Pick<RequestContext, 'environment'>): Promise<StoredSettings> {
    return settingsOf(await this.states.state(environmentSettingsDecider, environment, environment));
  }

  /** What people are told that a message is from. */
  async shownName({ environment }: Pick<RequestContext, 'environment'>): Promise<string> {
    const { branding } = await this.settings({ environment });
    return branding.name ?? (await this.states.state(environmentDecider, SYSTEM_ENVIRONMENT, environment))?.name ?? 'Gatehouse';
  }

  /** The client id that names the environment to browsers. @throws DomainError `entity_not_found` */
  async clientId({ environment }: Pick<RequestContext, 'environment'>): Promise<string> {
    const state = await this.states.state(environmentDecider, SYSTEM_ENVIRONMENT, environment);
    if (state === null) throw notFound('Environment', environment);
    return state.client_id;
  }
}
