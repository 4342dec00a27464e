import { feature } from '#libs/runtime/src/feature';
import { groupDecider, type GroupEvent } from '../domain/group.decider.ts';
import { groupMembersView, groupsView } from '../views/groups.view.ts';
import { RemoveDeletedMembers } from './group.reactions.ts';
import { Groups } from './groups.ts';

export const groups = feature({
  deciders: [groupDecider],
  views: [groupsView, groupMembersView],
  providers: [Groups],
  reactions: [RemoveDeletedMembers],
  removals: ['group.member_removed' satisfies GroupEvent['type']],
});
