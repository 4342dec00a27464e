import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { usersView } from '../views/users.view.ts';
import { userDecider } from './user.decider.ts';

describe('the log of a user', () => itReadsStoredExamples(userDecider, usersView.handles, new URL('user.examples.json', import.meta.url)));
