import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { invitationsView } from '../views/invitations.view.ts';
import { invitationDecider } from './invitation.decider.ts';

describe('the log of an invitation', () =>
  itReadsStoredExamples(invitationDecider, invitationsView.handles, new URL('invitation.examples.json', import.meta.url)));
