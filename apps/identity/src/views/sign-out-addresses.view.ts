import { streamKeyOf } from '#libs/event-sourcing/src/log/naming';
import type { View } from '#libs/event-sourcing/src/views/view';
import type { EnvironmentSettingsEvent } from '../domain/environment-settings.decider.ts';

/** Where browsers of an environment may go on after they signed out. */
export interface SignOutAddresses {
  readonly sign_out_uris: readonly string[];
}

/** Which environments list an address, for a browser whose session tells of none any more. A row for each environment that lists any, under its id. */
export const signOutAddressesView: View<SignOutAddresses, EnvironmentSettingsEvent> = {
  name: 'sign_out_addresses',
  version: 1,
  isOfAllEnvironments: true,
  handles: ['environment_settings.changed'],
  indexes: [{ name: 'address', keys: ({ sign_out_uris }) => sign_out_uris }],
  idsOf: ({ stream }) => [streamKeyOf(stream)],
  evolve: (row, { data: { sign_out_uris } }) => {
    if (sign_out_uris === undefined) return row;
    return sign_out_uris.length === 0 ? null : { sign_out_uris };
  },
};
