import { feature } from '#libs/runtime/src/feature';
import {
  absentPeopleView,
  endedDirectoriesView,
  endedUsersView,
  groupMembersView,
  groupsView,
  membershipsView,
  successorsView,
} from '../views/access.views.ts';
import { AccessIndex } from './access-index.ts';

export const access = feature({
  views: [membershipsView, groupsView, groupMembersView, endedUsersView, absentPeopleView, endedDirectoriesView, successorsView],
  backgroundComponents: [AccessIndex],
});
