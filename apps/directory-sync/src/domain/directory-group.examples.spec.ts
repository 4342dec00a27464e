import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { directoryGroupsView } from '../views/directory-groups.view.ts';
import { directoryGroupDecider } from './directory-group.decider.ts';

describe('the log of a directory group', () =>
  itReadsStoredExamples(directoryGroupDecider, directoryGroupsView.handles, new URL('directory-group.examples.json', import.meta.url)));
