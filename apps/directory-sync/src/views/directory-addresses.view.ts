import { primaryView } from '#libs/event-sourcing/src/views/view';
import { directoryAddressDecider, type DirectoryAddress, type DirectoryAddressEvent, type DirectoryAddressState } from '../domain/directory-address.decider.ts';

/** In which environment each directory lies or lay. */
export const directoryAddressesView = primaryView<DirectoryAddressState, DirectoryAddressEvent, DirectoryAddress>({
  name: 'directory_addresses',
  version: 1,
  decider: directoryAddressDecider,
  indexes: [],
  rowOf: (state) => state,
});
