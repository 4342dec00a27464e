import { service } from '#libs/runtime/src/feature';
import { directories } from './directories/directories.feature.ts';
import { listings } from './listings/listings.feature.ts';
import { people } from './people/people.feature.ts';
import { scim } from './scim/scim.feature.ts';

export const directorySync = service('directory-sync', [directories, people, scim, listings]);
