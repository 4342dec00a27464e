import { feature } from '#libs/runtime/src/feature';
import { directoryLinkDecider } from '../domain/directory-link.decider.ts';
import { DirectoryStandings } from '../readers/directory-standings.ts';
import { directoryLinksView, peopleOfDirectoriesView } from '../views/directory-links.view.ts';
import { DirectoryFollowing } from './directory-following.ts';
import { FollowPeopleOfDirectories, FollowPoliciesOfDirectories } from './directory.reactions.ts';

export const directoryLinks = feature({
  deciders: [directoryLinkDecider],
  views: [directoryLinksView, peopleOfDirectoriesView],
  providers: [DirectoryStandings, DirectoryFollowing],
  reactions: [FollowPeopleOfDirectories, FollowPoliciesOfDirectories],
});
