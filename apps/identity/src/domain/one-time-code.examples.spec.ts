import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { emailVerificationsView, magicAuthsView, passwordResetsView, radarChallengesView } from '../views/one-time-codes.view.ts';
import { emailVerificationDecider, magicAuthDecider, passwordResetDecider, radarChallengeDecider } from './one-time-code.decider.ts';

describe('the log of magic codes', () => itReadsStoredExamples(magicAuthDecider, magicAuthsView.handles, new URL('magic-auth.examples.json', import.meta.url)));
describe('the log of email verifications', () =>
  itReadsStoredExamples(emailVerificationDecider, emailVerificationsView.handles, new URL('email-verification.examples.json', import.meta.url)));
describe('the log of radar challenges', () =>
  itReadsStoredExamples(radarChallengeDecider, radarChallengesView.handles, new URL('radar-challenge.examples.json', import.meta.url)));
describe('the log of password resets', () =>
  itReadsStoredExamples(passwordResetDecider, passwordResetsView.handles, new URL('password-reset.examples.json', import.meta.url)));
