import { feature } from '#libs/runtime/src/feature';
import { directoryGroupDecider } from '../domain/directory-group.decider.ts';
import { directoryUserDecider } from '../domain/directory-user.decider.ts';
import { GroupMembers } from '../readers/group-members.ts';
import { directoryGroupMembersView, directoryGroupsView } from '../views/directory-groups.view.ts';
import { directoryLinkStatesView } from '../views/directory-link-states.view.ts';
import { directoryUsersView } from '../views/directory-users.view.ts';
import { DirectoryPeople } from './directory-people.ts';
import { EndErasedPeople } from './erasure.reaction.ts';
import { FollowedPeople } from './followed-people.ts';
import { GroupCleaning } from './group-cleaning.ts';
import { CleanGroupMembers, TellOfGroupMembers } from './member.reactions.ts';

export const people = feature({
  deciders: [directoryUserDecider, directoryGroupDecider],
  views: [directoryUsersView, directoryGroupsView, directoryGroupMembersView, directoryLinkStatesView],
  providers: [DirectoryPeople, GroupMembers, GroupCleaning],
  backgroundComponents: [FollowedPeople],
  reactions: [TellOfGroupMembers, CleanGroupMembers, EndErasedPeople],
});
