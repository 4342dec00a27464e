import { specOf } from '#libs/testing/src/decider-spec';
import { changeSettings, environmentSettingsDecider, settingsOf, type SettingsChange } from './environment-settings.decider.ts';

const { given } = specOf(environmentSettingsDecider);
const changed = (data: SettingsChange) => ({ type: 'environment_settings.changed', data }) as const;

describe('the settings of an environment', () => {
  it('record what differs, at any depth, and nothing else', () =>
    given(changed({ sessions: { access_token_seconds: 600 } }))
      .when(changeSettings({ sign_up: true, mfa: 'required', sessions: { access_token_seconds: 600, inactivity_seconds: 3600 }, risk: {} }))
      .then(changed({ mfa: 'required', sessions: { inactivity_seconds: 3600 } })));

  it('record nothing where nothing differs from the defaults', () =>
    given()
      .when(changeSettings({ sign_up: true, sessions: { access_token_seconds: 300 }, sign_out_uris: [], issuer: null }))
      .thenNothing());

  it('replace lists as a whole', () =>
    given(changed({ sign_out_uris: ['https://a.test/', 'https://b.test/'] }))
      .when(changeSettings({ sign_out_uris: ['https://b.test/'] }))
      .then(changed({ sign_out_uris: ['https://b.test/'] })));

  it('take a default back that was changed', () =>
    given(changed({ issuer: 'https://id.acme.test' }))
      .when(changeSettings({ issuer: null }))
      .then(changed({ issuer: null })));

  it('go by the defaults where nothing was set', () => {
    const state = environmentSettingsDecider.evolve(null, { ...changed({ risk: { restriction: 'log' } }), at: '2026-01-15T12:00:00.000Z', version: 1 });
    expect(settingsOf(state).risk).toEqual({ ...settingsOf(null).risk, restriction: 'log' });
    expect(settingsOf(state).sessions).toEqual({ access_token_seconds: 300, maximum_seconds: 2_592_000, inactivity_seconds: 604_800, secret_at_refresh: true });
  });
});
