import type { Decider } from '#libs/event-sourcing/src/deciding/decider';
import { primaryView, type PrimaryView } from '#libs/event-sourcing/src/views/view';
import {
  codeOf,
  emailVerificationDecider,
  magicAuthDecider,
  passwordResetDecider,
  radarChallengeDecider,
  type OneTimeCodeEvent,
  type OneTimeCodeKind,
  type OneTimeCodeState,
  type StoredCode,
} from '../domain/one-time-code.decider.ts';
import { holderOfUser } from '../domain/user.decider.ts';

/** A row for each user: the code that was created last. */
function codesView<Kind extends OneTimeCodeKind>(
  decider: Decider<OneTimeCodeState<Kind>, OneTimeCodeEvent<Kind>>,
  options: { readonly name: string; readonly noun: string },
): PrimaryView<OneTimeCodeState<Kind>, OneTimeCodeEvent<Kind>, StoredCode<Kind>> {
  return primaryView<OneTimeCodeState<Kind>, OneTimeCodeEvent<Kind>, StoredCode<Kind>>({
    ...options,
    version: 1,
    decider,
    indexes: [{ name: 'id', keys: ({ id }) => [id] }],
    personal: {
      holders: ({ user_id }) => [holderOfUser(user_id)],
      columns: () => ['email'],
      idsOf: (holder) => (holder.startsWith(holderOfUser('')) ? [holder.slice(holderOfUser('').length)] : []),
    },
    rowOf: codeOf,
  });
}

export const magicAuthsView = codesView(magicAuthDecider, { name: 'magic_auths', noun: 'Magic auth' });
export const emailVerificationsView = codesView(emailVerificationDecider, { name: 'email_verifications', noun: 'Email verification' });
export const radarChallengesView = codesView(radarChallengeDecider, { name: 'radar_challenges', noun: 'Radar challenge' });
export const passwordResetsView = codesView(passwordResetDecider, { name: 'password_resets', noun: 'Password reset' });
