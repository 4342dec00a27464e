import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { groupDecider } from './group.decider.ts';
import { groupsView } from './groups.view.ts';

describe('the log of a group', () => itReadsStoredExamples(groupDecider, groupsView.handles, new URL('group.examples.json', import.meta.url)));
