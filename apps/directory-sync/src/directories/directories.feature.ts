import { feature } from '#libs/runtime/src/feature';
import { directoryAddressDecider } from '../domain/directory-address.decider.ts';
import { directoryDecider, type DirectoryEvent } from '../domain/directory.decider.ts';
import { DirectoryReader } from '../readers/directory-reader.ts';
import { directoriesView } from '../views/directories.view.ts';
import { directoryAddressesView } from '../views/directory-addresses.view.ts';
import { directoryCountsView } from '../views/directory-counts.view.ts';
import { organizationsView } from '../views/organizations.view.ts';
import { Directories } from './directories.ts';
import { DirectoryAddresses } from './directory-addresses.ts';
import { DirectoryTokens } from './directory-tokens.ts';

export const directories = feature({
  deciders: [directoryDecider, directoryAddressDecider],
  views: [directoriesView, directoryAddressesView, directoryCountsView, organizationsView],
  providers: [DirectoryReader, DirectoryAddresses, Directories, DirectoryTokens],
  removals: ['dsync.token.revoked' satisfies DirectoryEvent['type']],
  parents: { organization: organizationsView },
});
