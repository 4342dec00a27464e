import type { EnvironmentSettings, Providers, ShownSmsSettings } from './environment-settings.ts';

const NO_ACCOUNT = { client_id: null, client_secret: null };
const DAY = 86_400;

/** What settings are that were never changed, of this release. Secrets are what is stored of them. */
export const DEFAULT_SETTINGS = {
  sign_in_methods: {
    password: true,
    magic_auth: true,
    apple_oauth: false,
    github_oauth: false,
    google_oauth: false,
    microsoft_oauth: false,
    sso: true,
    passkey: false,
  },
  sign_up: true,
  mfa: 'optional',
  password_policy: 'default',
  sessions: { access_token_seconds: 300, maximum_seconds: 30 * DAY, inactivity_seconds: 7 * DAY, secret_at_refresh: true },
  token_algorithm: 'RS256',
  issuer: null,
  login_uri: null,
  sign_out_uris: [],
  resources: [],
  hosted_domain: null,
  cookie_domain: null,
  rp_id: null,
  risk: { bot_detection: 'log', brute_force_attack: 'block', credential_stuffing: 'challenge', restriction: 'block' },
  mail: { magic_auth: true, email_verification: true, radar_challenge: true, password_reset: true, invitation: true },
  branding: { name: null, logo_url: null, color: null },
  sms: { countries: [], daily_budget: 1_000, webhook_url: null, webhook_secret: null },
  providers: { apple: NO_ACCOUNT, github: NO_ACCOUNT, google: NO_ACCOUNT, microsoft: NO_ACCOUNT },
  readable_codes: true,
  default_role: 'member',
  multiple_roles: null,
  api_key_permissions: null,
} satisfies Omit<EnvironmentSettings, 'object' | 'environment_id' | 'sms' | 'providers' | 'updated_at'> & {
  readonly sms: Omit<ShownSmsSettings, 'has_webhook_secret'> & { readonly webhook_secret: null };
  readonly providers: Readonly<Record<keyof Providers, { readonly client_id: null; readonly client_secret: null }>>;
};
