import type { Decider, Decision, Fact } from '#libs/event-sourcing/src/deciding/decider';

// These types are the storage format: a stored name or shape is never edited.

/** In which environment a directory lies, or a token of one, which is named by its hash: whoever comes by SCIM names these alone. Lies in the scope of what belongs to no environment. */
export type DirectoryAddressEvent = Fact<'directory_address.registered', DirectoryAddress>;

export interface DirectoryAddress {
  readonly id: string;
  readonly environment_id: string;
}

export type DirectoryAddressState = DirectoryAddress | null;

export const directoryAddressDecider: Decider<DirectoryAddressState, DirectoryAddressEvent> = {
  category: 'directory_address',
  foldVersion: 1,
  initial: null,
  sealed: { 'directory_address.registered': null },
  evolve: (state, { data }) => state ?? { id: data.id, environment_id: data.environment_id },
  toPublicEvent: () => null,
};

export function registerAddress(address: DirectoryAddress): Decision<DirectoryAddressState, DirectoryAddressEvent> {
  return (state) => (state === null ? [{ type: 'directory_address.registered', data: address }] : []);
}
