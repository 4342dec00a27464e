import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { userDecider } from './user.decider.ts';
import { usersView } from './users.view.ts';

describe('the log of a user', () => itReadsStoredExamples(userDecider, usersView.handles, new URL('user.examples.json', import.meta.url)));
