import { feature } from '#libs/runtime/src/feature';
import { emailVerificationDecider, magicAuthDecider, passwordResetDecider } from '../domain/one-time-code.decider.ts';
import { emailVerificationsView, magicAuthsView, passwordResetsView } from '../views/one-time-codes.view.ts';
import { ApplicationLinks } from './application-links.ts';
import { CodePolicies } from './code-policies.ts';
import { CodeRequests } from './code-requests.ts';
import { EmailVerifications } from './email-verifications.ts';
import { InvitationAcceptance } from './invitation-acceptance.ts';
import { InvitationTokens } from './invitation-tokens.ts';
import { MagicAuths } from './magic-auths.ts';
import { Mailboxes } from './mailboxes.ts';
import { OneTimeCodes } from './one-time-codes.ts';
import { PasswordResets } from './password-resets.ts';
import { PersonalLimits } from './personal-limits.ts';
import { SentCodes } from './sent-codes.ts';

export const codes = feature({
  deciders: [magicAuthDecider, emailVerificationDecider, passwordResetDecider],
  views: [magicAuthsView, emailVerificationsView, passwordResetsView],
  providers: [
    ...[MagicAuths, EmailVerifications, PasswordResets, SentCodes, OneTimeCodes, CodeRequests, PersonalLimits, Mailboxes, CodePolicies, ApplicationLinks],
    ...[InvitationTokens, InvitationAcceptance],
  ],
});
