/** Records of the protocol of claims. */
const CLAIMS = 'claim.';

/** Stands for what an operator had a stream go on without. */
export const SKIPPED = 'log.skipped';

/** Whether a record belongs to how streams are kept rather than to what happened: never folded, never announced. */
export function isProtocol(type: string): boolean {
  return type.startsWith(CLAIMS) || type === SKIPPED;
}
