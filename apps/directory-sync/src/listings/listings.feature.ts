import { feature } from '#libs/runtime/src/feature';
import { DirectoryRuns } from './directory-runs.ts';
import { ListingApplication } from './listing-application.ts';
import { ListingComparison } from './listing-comparison.ts';
import { ListingWork } from './listing-work.ts';
import { Listings } from './listings.ts';

export const listings = feature({
  providers: [Listings, DirectoryRuns, ListingComparison, ListingApplication],
  backgroundComponents: [ListingWork],
});
