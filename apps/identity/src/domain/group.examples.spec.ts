import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { groupsView } from '../views/groups.view.ts';
import { groupDecider } from './group.decider.ts';

describe('the log of a group', () => itReadsStoredExamples(groupDecider, groupsView.handles, new URL('group.examples.json', import.meta.url)));
