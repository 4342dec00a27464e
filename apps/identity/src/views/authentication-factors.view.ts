import { primaryView } from '#libs/event-sourcing/src/views/view';
import {
  authenticationFactorDecider,
  holderOfFactor,
  type AuthenticationFactorEvent,
  type AuthenticationFactorState,
  type StoredFactor,
} from '../domain/authentication-factor.decider.ts';

/** Every factor that was not deleted. Private: its user may have ended, and it holds a secret, sealed. */
export const authenticationFactorsView = primaryView<AuthenticationFactorState, AuthenticationFactorEvent, StoredFactor>({
  name: 'authentication_factors',
  noun: 'Authentication factor',
  version: 1,
  decider: authenticationFactorDecider,
  indexes: [
    { name: 'user', keys: ({ user_id }) => (user_id === null ? [] : [user_id]) },
    { name: 'user_of_verified', keys: ({ user_id, verified_at }) => (user_id === null || verified_at === null ? [] : [user_id]) },
  ],
  personal: { holders: (factor) => [holderOfFactor(factor)], columns: () => ['totp_issuer', 'totp_user', 'totp_secret', 'phone_number'] },
  rowOf: (state) => (state?.object === 'authentication_factor' ? state : null),
});
