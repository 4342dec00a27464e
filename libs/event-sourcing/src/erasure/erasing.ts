import type { RecordedEvent } from '../log/event-store.ts';
import { ERASURE_FINISHED } from '../log/protocol.ts';
import type { Holder } from '../sealing/holders.ts';

/** The fact by which holders are erased, in the stream of the user whom they all belong to: every service reads it. */
export const ERASED = 'user.erased';

/** As that, of a second factor of whom nobody knows whose it is, once it is deleted: nothing else is held by its key, and no row is left that would forget anything. */
export const FACTOR_ERASED = 'authentication_factor.erased';

/** What has keys destroyed. */
export const DESTROYING: readonly string[] = [ERASED, FACTOR_ERASED];

/** What each of them says: whose keys go, and whom every view forgets at the position of the record. */
export interface Erasure {
  readonly holders: readonly Holder[];
}

/** The second comes when no process has the keys any more: views forget once more what was written meanwhile by who still had them. */
export const ERASING: readonly string[] = [ERASED, ERASURE_FINISHED];

export function holdersOf({ data }: RecordedEvent): readonly Holder[] {
  return (data as Erasure).holders;
}
