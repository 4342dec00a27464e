import type { EnvironmentSettings, ProviderSettings, Providers, ShownSmsSettings } from '#libs/contracts/src/environment-settings/environment-settings';
import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { DEFAULT_SETTINGS } from '#libs/contracts/src/environment-settings/default-settings.decider';
import { difference, merged, type PartOf } from './parts.decider.ts';

// These types are the storage format: a stored name or shape is never edited.

export type EnvironmentSettingsEvent =
  /** What differs from before, and nothing else; secrets are sealed. Who changed it stands in the record. */
  Fact<'environment_settings.changed', SettingsChange>;

/** A provider's account with its secret as it is stored: sealed. */
type StoredProvider = Pick<ProviderSettings, 'client_id'> & { readonly client_secret: string | null };
type StoredSms = Omit<ShownSmsSettings, 'has_webhook_secret'> & { readonly webhook_secret: string | null };

/** Settings as they are stored and used: with secrets, sealed. */
export interface StoredSettings extends Omit<EnvironmentSettings, 'object' | 'environment_id' | 'sms' | 'providers' | 'updated_at'> {
  readonly sms: StoredSms;
  readonly providers: Readonly<Record<keyof Providers, StoredProvider>>;
}

/** Any part of the settings, at any depth; lists are replaced as a whole. */
export type SettingsChange = PartOf<StoredSettings>;

/** What was ever set: what was not goes by the default, of the release that reads it. */
export type EnvironmentSettingsState = { readonly given: SettingsChange; readonly updated_at: string } | null;

function evolve(state: EnvironmentSettingsState, event: EnvironmentSettingsEvent & { readonly at: string }): EnvironmentSettingsState {
  return { given: merged(state?.given ?? {}, event.data), updated_at: event.at };
}

export const environmentSettingsDecider: Decider<EnvironmentSettingsState, EnvironmentSettingsEvent> = {
  category: 'environment_settings',
  foldVersion: 1,
  initial: null,
  sealed: { 'environment_settings.changed': null },
  evolve,
  // Configuration: nothing of it is announced, its secrets least of all.
  toPublicEvent: () => null,
};

/** Records what differs from the settings as they are. */
export function changeSettings(change: SettingsChange): Decision<EnvironmentSettingsState, EnvironmentSettingsEvent> {
  return (state) => {
    const different = difference<StoredSettings>(settingsOf(state), change);
    return different === null ? [] : [{ type: 'environment_settings.changed', data: different }];
  };
}

/** By state, which is kept in memory while it is asked for with every request. */
const known = new WeakMap<object, StoredSettings>();

/** All settings: what was set, and the defaults of the rest. */
export function settingsOf(state: EnvironmentSettingsState): StoredSettings {
  if (state === null) return DEFAULT_SETTINGS;
  let settings = known.get(state);
  if (settings === undefined) known.set(state, (settings = merged(DEFAULT_SETTINGS, state.given)));
  return settings;
}
