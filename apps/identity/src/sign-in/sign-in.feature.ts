import { EnvironmentSweeps } from '#libs/runtime/src/environment-sweeps';
import { feature } from '#libs/runtime/src/feature';
import { attemptDecider } from '../domain/attempt.decider.ts';
import { sessionDecider } from '../domain/session.decider.ts';
import { sessionsView } from '../views/sessions.view.ts';
import { signOutAddressesView } from '../views/sign-out-addresses.view.ts';
import { AccessTokens } from './access-tokens.ts';
import { Attempts } from './attempts.ts';
import { Authentications } from './authentications.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { DeviceCodes } from './device-codes.ts';
import { Continuations } from './continuations.ts';
import { ContinuedSignIns } from './continued-sign-ins.ts';
import { FailedAttempts } from './failed-attempts.ts';
import { GRANTS, Grants } from './grants/grants.ts';
import { Logout } from './logout.ts';
import { PasswordCheck } from './password-check.ts';
import { PendingAuthentications } from './pending-authentications.ts';
import { RefreshFamilies } from './refresh-families.ts';
import { SessionBeginnings } from './session-beginnings.ts';
import { SessionIds } from './session-ids.ts';
import { EndSessionsBeforePasswordResets, EndSessionsOfInactiveMemberships, EndSessionsOfUnprovenAddresses } from './session.reactions.ts';
import { SessionRetention } from './session-retention.ts';
import { Sessions } from './sessions.ts';
import { SignInClients } from './sign-in-client.ts';
import { SignInInvitations } from './sign-in-invitations.ts';
import { SignInPeople } from './sign-in-people.ts';
import { SignInRisk } from './sign-in-risk.ts';
import { SignIn } from './sign-in.ts';

export const signIn = feature({
  deciders: [sessionDecider, attemptDecider],
  views: [sessionsView, signOutAddressesView],
  providers: [
    ...[SignIn, SessionBeginnings, SignInClients, SignInPeople, SignInInvitations, Grants, ...GRANTS, Attempts, FailedAttempts, SignInRisk, PasswordCheck],
    ...[AuthorizationCodes, DeviceCodes, PendingAuthentications, ContinuedSignIns, Continuations, Authentications],
    ...[Sessions, SessionRetention, EnvironmentSweeps, Logout, SessionIds, RefreshFamilies, AccessTokens],
  ],
  reactions: [EndSessionsOfInactiveMemberships, EndSessionsBeforePasswordResets, EndSessionsOfUnprovenAddresses],
});
