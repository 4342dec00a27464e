import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { sessionsView } from '../views/sessions.view.ts';
import { sessionDecider } from './session.decider.ts';

describe('the log of a session', () => itReadsStoredExamples(sessionDecider, sessionsView.handles, new URL('session.examples.json', import.meta.url)));
