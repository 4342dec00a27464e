import { Nested, Optional, partial, Picked, Text, without } from '../fields.ts';
import { Command, ok, Operation, Query } from '../operation.ts';
import {
  Branding,
  EnvironmentSettings,
  MailSettings,
  ProviderSettings,
  RiskControls,
  SessionSettings,
  SignInMethods,
  SmsSettings,
  type TokenAlgorithm,
} from './environment-settings.ts';

class SignInMethodsChange extends partial(SignInMethods) {}
class SessionSettingsChange extends partial(SessionSettings) {}
class RiskControlsChange extends partial(RiskControls) {}
class MailSettingsChange extends partial(MailSettings) {}
class BrandingChange extends partial(Branding) {}

class SmsSettingsChange extends partial(SmsSettings) {
  @Optional()
  @Text({ doc: 'Signs what the webhook receives; never shown. Null takes it away.', min: 16, max: 255, ascii: true, nullable: true, secret: true })
  webhook_secret?: string | null;
}

export class ProviderChange extends partial(without(ProviderSettings, 'has_client_secret')) {
  @Optional()
  @Text({ doc: 'The secret that goes with the id; never shown. Null takes it away.', min: 1, max: 2_048, ascii: true, nullable: true, secret: true })
  client_secret?: string | null;
}

export class ProvidersChange {
  @Optional() @Nested(() => ProviderChange, { doc: 'At Apple.' }) apple?: ProviderChange;
  @Optional() @Nested(() => ProviderChange, { doc: 'At GitHub.' }) github?: ProviderChange;
  @Optional() @Nested(() => ProviderChange, { doc: 'At Google.' }) google?: ProviderChange;
  @Optional() @Nested(() => ProviderChange, { doc: 'At Microsoft.' }) microsoft?: ProviderChange;
}

@Operation({ get: '/admin/environment_settings', owner: 'identity', summary: 'Get the settings of the environment', answers: ok(EnvironmentSettings) })
export class GetEnvironmentSettings extends Query<EnvironmentSettings> {}

@Operation({
  patch: '/admin/environment_settings',
  owner: 'identity',
  summary: 'Change the settings of the environment',
  description: 'What is absent stays, within each object too. Who changed what is recorded.',
  answers: ok(EnvironmentSettings),
  refuses: ['invalid_role'],
  maxBody: 192 * 1024,
})
export class UpdateEnvironmentSettings extends Command<EnvironmentSettings> {
  @Optional() @Nested(() => SignInMethodsChange, { doc: 'How people may sign in.' }) sign_in_methods?: SignInMethodsChange;
  @Optional() @Picked(EnvironmentSettings) sign_up?: boolean;
  @Optional() @Picked(EnvironmentSettings) mfa?: EnvironmentSettings['mfa'];
  @Optional() @Picked(EnvironmentSettings) password_policy?: EnvironmentSettings['password_policy'];
  @Optional() @Nested(() => SessionSettingsChange, { doc: 'How long a sign-in lasts.' }) sessions?: SessionSettingsChange;
  @Optional() @Picked(EnvironmentSettings) token_algorithm?: TokenAlgorithm;
  @Optional() @Picked(EnvironmentSettings) issuer?: string | null;
  @Optional() @Picked(EnvironmentSettings) login_uri?: string | null;
  @Optional() @Picked(EnvironmentSettings) sign_out_uris?: readonly string[];
  @Optional() @Picked(EnvironmentSettings) resources?: readonly string[];
  @Optional() @Picked(EnvironmentSettings) hosted_domain?: string | null;
  @Optional() @Picked(EnvironmentSettings) cookie_domain?: string | null;
  @Optional() @Picked(EnvironmentSettings) rp_id?: string | null;
  @Optional() @Nested(() => RiskControlsChange, { doc: 'What is done about risk.' }) risk?: RiskControlsChange;
  @Optional() @Nested(() => MailSettingsChange, { doc: 'Which messages are sent by mail.' }) mail?: MailSettingsChange;
  @Optional() @Nested(() => BrandingChange, { doc: 'How messages and pages look.' }) branding?: BrandingChange;
  @Optional() @Nested(() => SmsSettingsChange, { doc: 'Text messages.' }) sms?: SmsSettingsChange;
  @Optional() @Nested(() => ProvidersChange, { doc: 'Accounts at providers of identities.' }) providers?: ProvidersChange;
  @Optional() @Picked(EnvironmentSettings) readable_codes?: boolean;
  @Optional() @Picked(EnvironmentSettings) default_role?: string;
  @Optional() @Picked(EnvironmentSettings) multiple_roles?: boolean | null;
  @Optional() @Picked(EnvironmentSettings) api_key_permissions?: readonly string[] | null;
}
