import { feature } from '#libs/runtime/src/feature';
import { groupDecider, type GroupEvent } from './group.decider.ts';
import { RemoveDeletedMembers } from './group.reactions.ts';
import { Groups } from './groups.ts';
import { groupMembersView, groupsView } from './groups.view.ts';

export const groups = feature({
  deciders: [groupDecider],
  views: [groupsView, groupMembersView],
  providers: [Groups],
  reactions: [RemoveDeletedMembers],
  removals: ['group.member_removed' satisfies GroupEvent['type']],
});
