import type { Stamp } from '#libs/read-models/src/stamps';

/** When a user signed in last. */
export const LAST_SIGN_IN: Stamp = { name: 'user.last_sign_in_at' };
