import { Const, Flag, Integer, ListOf, Nested, OneOf, Ref, Text, Time } from '../fields.ts';
import { Environment } from '../environments/environment.ts';
import { PERMISSION_SLUG } from '../permissions/permission.ts';
import { SLUG } from '../resource-types/resource-type.ts';

/** The ways to sign in that an organization may allow or forbid for its members. */
export class AuthenticationMethods {
  @Flag({ doc: 'With an email address and a password.' }) password!: boolean;
  @Flag({ doc: 'With a code that is sent to the email address.' }) magic_auth!: boolean;
  @Flag({ doc: 'With an account at Apple.' }) apple_oauth!: boolean;
  @Flag({ doc: 'With an account at GitHub.' }) github_oauth!: boolean;
  @Flag({ doc: 'With an account at Google.' }) google_oauth!: boolean;
  @Flag({ doc: 'With an account at Microsoft.' }) microsoft_oauth!: boolean;
}

/** How people may sign in at all. */
export class SignInMethods extends AuthenticationMethods {
  @Flag({ doc: 'Through the identity provider of an organization.' }) sso!: boolean;
  @Flag({ doc: 'With a passkey.' }) passkey!: boolean;
}

/** How long a sign-in lasts. */
export class SessionSettings {
  @Integer({ doc: 'How long an access token is valid (seconds).', minimum: 60, maximum: 86_400, example: 300 }) access_token_seconds!: number;
  @Integer({ doc: 'When a session ends whatever happens (seconds after its beginning).', minimum: 300, maximum: 31_536_000, example: 2_592_000 })
  maximum_seconds!: number;
  @Integer({ doc: 'When a session ends that nobody refreshes (seconds after the last refresh).', minimum: 300, maximum: 31_536_000, example: 604_800 })
  inactivity_seconds!: number;
  @Flag({ doc: 'Whether a session that began with a client secret needs it at each refresh.' }) secret_at_refresh!: boolean;
}

/** What a control of risk does where it finds something. */
export type RiskMeasure = 'off' | 'log' | 'challenge' | 'block';
const RISK_MEASURES: readonly RiskMeasure[] = ['off', 'log', 'challenge', 'block'];

/** The controls of risk: each is off, records what it finds, asks for a code by email, or blocks. */
export class RiskControls {
  @OneOf(RISK_MEASURES, { doc: 'Programs that say what they are.' }) bot_detection!: RiskMeasure;
  @OneOf(RISK_MEASURES, { doc: 'Many failures for one account, or from one address.' }) brute_force_attack!: RiskMeasure;
  @OneOf(RISK_MEASURES, { doc: 'Many accounts tried from one address.' }) credential_stuffing!: RiskMeasure;
  @OneOf(RISK_MEASURES, { doc: 'What is on the block list.' }) restriction!: RiskMeasure;
}

/** Which messages are sent by mail; whoever sends them otherwise switches them off. */
export class MailSettings {
  @Flag({ doc: 'Codes to sign in with.' }) magic_auth!: boolean;
  @Flag({ doc: 'Codes that verify an email address.' }) email_verification!: boolean;
  @Flag({ doc: 'Codes that are asked for since something speaks against a sign-in.' }) radar_challenge!: boolean;
  @Flag({ doc: 'Links to a new password.' }) password_reset!: boolean;
  @Flag({ doc: 'Invitations.' }) invitation!: boolean;
}

/** How messages and pages look. */
export class Branding {
  @Text({ doc: 'What the application is called; null: the name of the environment.', min: 1, max: 100, visible: true, nullable: true, example: 'Acme' })
  name!: string | null;
  @Text({ doc: 'Address of its logo, https.', max: 2_048, format: 'uri', ascii: true, nullable: true, example: 'https://acme.test/logo.png' }) logo_url!:
    string | null;
  @Text({ doc: 'Its colour.', pattern: /^#[0-9a-fA-F]{6}$/, nullable: true, example: '#1f4b99' }) color!: string | null;
}

/** Text messages: sent by a webhook of yours, to the countries named alone. */
export class SmsSettings {
  @ListOf(
    { text: { pattern: /^[A-Z]{2}$/ } },
    { doc: 'Countries whose numbers are sent to (ISO 3166); none: nothing is sent.', maxItems: 250, unique: true, example: ['DE'] },
  )
  countries!: readonly string[];
  @Integer({ doc: 'How many messages are sent on a day (UTC) at most.', minimum: 0, maximum: 1_000_000 }) daily_budget!: number;
  @Text({ doc: 'Where messages are sent to be delivered, https.', max: 2_048, format: 'uri', ascii: true, nullable: true, example: 'https://acme.test/sms' })
  webhook_url!: string | null;
}

/** Text messages, as they are shown. */
export class ShownSmsSettings extends SmsSettings {
  @Flag({ doc: 'Whether the webhook has a secret; it is never shown.' }) has_webhook_secret!: boolean;
}

/** The account of an application at a provider of identities, as it is shown. */
export class ProviderSettings {
  @Text({ doc: 'The id that the provider gave the application.', min: 1, max: 255, ascii: true, nullable: true, example: 'acme.apps.test' }) client_id!:
    string | null;
  @Flag({ doc: 'Whether there is a secret; it is never shown.' }) has_client_secret!: boolean;
}

/** The accounts at each provider. */
export class Providers {
  @Nested(() => ProviderSettings, { doc: 'At Apple.' }) apple!: ProviderSettings;
  @Nested(() => ProviderSettings, { doc: 'At GitHub.' }) github!: ProviderSettings;
  @Nested(() => ProviderSettings, { doc: 'At Google.' }) google!: ProviderSettings;
  @Nested(() => ProviderSettings, { doc: 'At Microsoft.' }) microsoft!: ProviderSettings;
}

export type TokenAlgorithm = 'RS256' | 'ES256';
const HOST = { format: 'hostname', max: 253, nullable: true } as const;

/** What an environment's owner decides on sign-in, sessions, messages and risk. */
export class EnvironmentSettings {
  @Const('environment_settings') object!: 'environment_settings';
  @Ref(() => Environment, { doc: 'The environment.' }) environment_id!: string;
  @Nested(() => SignInMethods, { doc: 'How people may sign in.' }) sign_in_methods!: SignInMethods;
  @Flag({ doc: 'Whether somebody who is not known yet may sign up, other than by invitation.' }) sign_up!: boolean;
  @OneOf(['off', 'optional', 'required'], {
    doc: 'Whether a second factor is asked for: never, of users who have one, or of everybody, who then has to enrol one. Not for SSO.',
  })
  mfa!: 'off' | 'optional' | 'required';
  @OneOf(['default', 'nist'], { doc: 'Rules for passwords: `default` asks for 10 characters; `nist` for 15, or 8 beside a second factor.' }) password_policy!:
    'default' | 'nist';
  @Nested(() => SessionSettings, { doc: 'How long a sign-in lasts.' }) sessions!: SessionSettings;
  @OneOf(['RS256', 'ES256'], { doc: 'How tokens are signed. The session helpers of most SDKs accept RS256 only.' }) token_algorithm!: TokenAlgorithm;
  @Text({
    doc: 'What tokens name as their issuer; null: the address of this API.',
    format: 'uri',
    max: 255,
    ascii: true,
    nullable: true,
    example: 'https://id.acme.test',
  })
  issuer!: string | null;
  @Text({
    doc: 'Where browsers are sent to sign in by your own means.',
    format: 'uri',
    max: 2_048,
    ascii: true,
    nullable: true,
    example: 'https://acme.test/login',
  })
  login_uri!: string | null;
  @ListOf({ text: { format: 'uri', max: 512, ascii: true } }, { doc: 'Where browsers may be sent after they signed out.', maxItems: 50, unique: true })
  sign_out_uris!: readonly string[];
  @ListOf({ text: { format: 'uri', max: 512, ascii: true } }, { doc: 'Resources that tokens may be asked for (RFC 8707).', maxItems: 50, unique: true })
  resources!: readonly string[];
  @Text({ doc: 'Host of the hosted pages.', ...HOST, example: 'id.acme.test' }) hosted_domain!: string | null;
  @Text({ doc: 'Domain of cookies.', ...HOST, example: 'acme.test' }) cookie_domain!: string | null;
  @Text({ doc: 'Domain that passkeys belong to.', ...HOST, example: 'acme.test' }) rp_id!: string | null;
  @Nested(() => RiskControls, { doc: 'What is done about risk.' }) risk!: RiskControls;
  @Nested(() => MailSettings, { doc: 'Which messages are sent by mail.' }) mail!: MailSettings;
  @Nested(() => Branding, { doc: 'How messages and pages look.' }) branding!: Branding;
  @Nested(() => ShownSmsSettings, { doc: 'Text messages.' }) sms!: ShownSmsSettings;
  @Nested(() => Providers, { doc: 'Accounts at providers of identities.' }) providers!: Providers;
  @Flag({
    doc: 'Whether this API shows codes and reset tokens that were made before, to applications that send their own mail. Tokens of invitations are always shown: nobody signs in by one alone.',
  })
  readable_codes!: boolean;
  @Text({ doc: 'Slug of the role of a membership that is created without one; a role of the environment.', ...SLUG, example: 'member' }) default_role!: string;
  @Flag({ doc: 'Whether a membership may have several roles; null: as the server has it.', nullable: true }) multiple_roles!: boolean | null;
  @ListOf({ text: PERMISSION_SLUG }, { doc: 'Permissions that API keys may have; null: all.', maxItems: 500, unique: true, nullable: true })
  api_key_permissions!: readonly string[] | null;
  @Time({ doc: 'When they were changed last; null: never.', nullable: true }) updated_at!: string | null;
}
