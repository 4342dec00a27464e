/**
 * How long whoever heard no answer may ask for it again, in milliseconds: with the same code or token, and for nothing that they have not got. Answers get lost, clients ask
 * again after some seconds, and several tabs refresh at once; whoever found a code or a token that was used has little time to show it.
 */
export const ASKED_AGAIN_WITHIN_MS = 30_000;
