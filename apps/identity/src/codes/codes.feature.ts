import { feature } from '#libs/runtime/src/feature';
import { emailVerificationDecider, magicAuthDecider, passwordResetDecider, radarChallengeDecider } from '../domain/one-time-code.decider.ts';
import { emailVerificationsView, magicAuthsView, passwordResetsView, radarChallengesView } from '../views/one-time-codes.view.ts';
import { AbsentCodes } from './absent-codes.ts';
import { ApplicationLinks } from './application-links.ts';
import { CodePolicies } from './code-policies.ts';
import { CodeRequests } from './code-requests.ts';
import { DeliverableAddresses } from './deliverable-addresses.ts';
import { DnsMailDomains } from './dns.mail-domains.ts';
import { EmailVerifications } from './email-verifications.ts';
import { InvitationAcceptance } from './invitation-acceptance.ts';
import { InvitationTokens } from './invitation-tokens.ts';
import { MagicAuths } from './magic-auths.ts';
import { MailDomains } from './mail-domains.ts';
import { Mailboxes } from './mailboxes.ts';
import { OneTimeCodes } from './one-time-codes.ts';
import { PasswordResets } from './password-resets.ts';
import { PersonalLimits } from './personal-limits.ts';
import { RadarChallenges } from './radar-challenges.ts';
import { SentCodes } from './sent-codes.ts';

export const codes = feature({
  deciders: [magicAuthDecider, emailVerificationDecider, passwordResetDecider, radarChallengeDecider],
  views: [magicAuthsView, emailVerificationsView, passwordResetsView, radarChallengesView],
  providers: [
    ...[MagicAuths, EmailVerifications, PasswordResets, RadarChallenges, SentCodes, OneTimeCodes, AbsentCodes, CodeRequests, PersonalLimits],
    ...[
      Mailboxes,
      DeliverableAddresses,
      { provide: MailDomains, useClass: DnsMailDomains },
      CodePolicies,
      ApplicationLinks,
      InvitationTokens,
      InvitationAcceptance,
    ],
  ],
});
