/** Records of the protocol of claims. */
const CLAIMS = 'claim.';

/** Stands for what an operator had a stream go on without. */
export const SKIPPED = 'log.skipped';

/** After an erasure: no process has the keys of these holders any more. */
export const ERASURE_FINISHED = 'erasure.finished';

/** Whether a record belongs to how streams are kept rather than to what happened: never folded, never announced. */
export function isProtocol(type: string): boolean {
  return type.startsWith(CLAIMS) || type === SKIPPED || type === ERASURE_FINISHED;
}
