import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { directoryUsersView } from '../views/directory-users.view.ts';
import { directoryUserDecider } from './directory-user.decider.ts';

describe('the log of a directory user', () =>
  itReadsStoredExamples(directoryUserDecider, directoryUsersView.handles, new URL('directory-user.examples.json', import.meta.url)));
