import { feature } from '#libs/runtime/src/feature';
import { authenticationFactorDecider } from '../domain/authentication-factor.decider.ts';
import { authenticationFactorsView } from '../views/authentication-factors.view.ts';
import { AuthenticationChallenges } from './authentication-challenges.ts';
import { AuthenticationFactors } from './authentication-factors.ts';
import { DeleteFactorsOfUnprovenAddresses } from './factor.reactions.ts';
import { SecondFactors } from './second-factors.ts';
import { TextMessages } from './text-messages.ts';

export const authenticationFactors = feature({
  deciders: [authenticationFactorDecider],
  views: [authenticationFactorsView],
  providers: [AuthenticationFactors, AuthenticationChallenges, SecondFactors, TextMessages],
  reactions: [DeleteFactorsOfUnprovenAddresses],
});
