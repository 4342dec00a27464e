import { feature } from '#libs/runtime/src/feature';
import { endedUsersView, groupMembersView, groupsView, membershipsView } from '../views/access.views.ts';
import { AccessIndex } from './access-index.ts';

export const access = feature({ views: [membershipsView, groupsView, groupMembersView, endedUsersView], backgroundComponents: [AccessIndex] });
