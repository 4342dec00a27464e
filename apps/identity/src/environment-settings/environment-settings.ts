import { Injectable } from '@nestjs/common';
import type { EnvironmentSettings as Settings } from '#libs/contracts/src/environment-settings/environment-settings';
import {
  GetEnvironmentSettings,
  UpdateEnvironmentSettings,
  type ProviderChange,
  type ProvidersChange,
} from '#libs/contracts/src/environment-settings/operations';
import { Handles } from '#libs/contracts/src/handles';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { streamName } from '#libs/event-sourcing/src/log/naming';
import { Vault } from '#libs/event-sourcing/src/sealing/vault';
import { TargetRule } from '#libs/messaging/src/webhooks/target-address';
import { invalidField } from '#libs/platform/src/domain-error';
import type { RequestContext } from '#libs/platform/src/request-context';
import {
  changeSettings,
  environmentSettingsDecider,
  settingsOf,
  type EnvironmentSettingsState,
  type SettingsChange,
} from '../domain/environment-settings.decider.ts';
import { requireBrowserAddress } from '../domain/browser-address.decider.ts';
import { KnownStates } from '../readers/known-states.ts';
import { RoleDirectory } from '../readers/role-directory.ts';

/** The settings of an environment lie in one stream, under its own id. */
@Injectable()
export class EnvironmentSettings {
  constructor(
    private readonly repository: Repository,
    private readonly vault: Vault,
    private readonly states: KnownStates,
    private readonly roles: RoleDirectory,
    private readonly targets: TargetRule,
  ) {}

  @Handles(GetEnvironmentSettings)
  async get({ context: { environment } }: GetEnvironmentSettings): Promise<Settings> {
    return shown(environment, await this.repository.load(environmentSettingsDecider, environment, environment));
  }

  @Handles(UpdateEnvironmentSettings)
  async update({ context, ...given }: UpdateEnvironmentSettings): Promise<Settings> {
    const { environment } = context;
    requireAddresses(given);
    requireTarget(given.sms?.webhook_url, this.targets);
    if (given.default_role !== undefined) await this.roles.requireOfEnvironment(context, given.default_role, 'default_role');
    const { state } = await this.repository.transact(environmentSettingsDecider, context, environment, changeSettings(await this.sealed(context, given)));
    this.states.forget(environmentSettingsDecider, environment, environment);
    return shown(environment, state);
  }

  /** As it is recorded: secrets sealed, each value of a list once. */
  private async sealed({ environment }: RequestContext, given: Omit<UpdateEnvironmentSettings, 'context'>): Promise<SettingsChange> {
    const { sms, providers, sign_out_uris, resources, api_key_permissions, ...others } = given;
    const seal = (secret: string | null, field: string): Promise<string> | null =>
      secret === null ? null : this.vault.seal(secret, { stream: streamName(environmentSettingsDecider.category, environment, environment), field });
    return {
      ...others,
      sign_out_uris: sign_out_uris && unique(sign_out_uris),
      resources: resources && unique(resources),
      api_key_permissions: api_key_permissions && unique(api_key_permissions),
      sms: sms && {
        ...sms,
        countries: sms.countries && unique(sms.countries),
        ...(sms.webhook_secret !== undefined && { webhook_secret: await seal(sms.webhook_secret, 'sms.webhook_secret') }),
      },
      providers: providers && {
        ...(providers.apple && { apple: await sealedAccount('apple', providers.apple, seal) }),
        ...(providers.github && { github: await sealedAccount('github', providers.github, seal) }),
        ...(providers.google && { google: await sealedAccount('google', providers.google, seal) }),
        ...(providers.microsoft && { microsoft: await sealedAccount('microsoft', providers.microsoft, seal) }),
      },
    };
  }
}

type Seal = (secret: string | null, field: string) => Promise<string> | null;

async function sealedAccount(provider: keyof ProvidersChange, { client_secret, ...others }: ProviderChange, seal: Seal) {
  return { ...others, ...(client_secret !== undefined && { client_secret: await seal(client_secret, `providers.${provider}.client_secret`) }) };
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}

/** @throws DomainError `invalid_request_parameters` */
function requireAddresses({ login_uri, issuer, sign_out_uris = [], resources = [], branding }: Omit<UpdateEnvironmentSettings, 'context'>): void {
  const given: readonly (readonly [string, string | null | undefined])[] = [
    ['login_uri', login_uri],
    ['issuer', issuer],
    ['branding.logo_url', branding?.logo_url],
    ...sign_out_uris.map((uri, index) => [`sign_out_uris.${index}`, uri] as const),
    ...resources.map((uri, index) => [`resources.${index}`, uri] as const),
  ];
  for (const [field, uri] of given) if (uri != null) requireBrowserAddress(uri, field);
}

/** Texts are posted there by this product itself: to nobody whom webhooks may not reach. @throws DomainError `invalid_request_parameters` */
function requireTarget(url: string | null | undefined, targets: TargetRule): void {
  const problem = url == null ? null : targets.problemOf(url);
  const field = 'sms.webhook_url';
  if (problem !== null) throw invalidField('invalid_url', field, `${field} ${problem}.`);
}

/** No secret leaves: it is only said whether there is one. */
function shown(environment_id: string, state: EnvironmentSettingsState): Settings {
  const { sms, providers, ...others } = settingsOf(state);
  const { webhook_secret, ...messages } = sms;
  const account = ({ client_id, client_secret }: (typeof providers)['apple']) => ({ client_id, has_client_secret: client_secret !== null });
  return {
    object: 'environment_settings',
    environment_id,
    ...others,
    sms: { ...messages, has_webhook_secret: webhook_secret !== null },
    providers: {
      apple: account(providers.apple),
      github: account(providers.github),
      google: account(providers.google),
      microsoft: account(providers.microsoft),
    },
    updated_at: state?.updated_at ?? null,
  };
}
