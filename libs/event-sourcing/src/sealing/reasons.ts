import type { RecordedEvent } from '../log/event-store.ts';
import { sealedIn } from './former-sealing.ts';
import { holdersNamedIn, type Holder } from './holders.ts';
import type { Place, Vault } from './vault.ts';

const ERASED = 'It may have told of somebody who was erased since.';

/** Why something failed at a record, as it is stored: it may quote what the record holds, or what was looked up for it, and backups hold it. */
export async function sealedReason(vault: Vault, record: RecordedEvent, error: unknown): Promise<string> {
  const place = placeOf(record);
  return (await vault.sealQuoting(String(error), place, holdersTold(record))) ?? vault.seal(ERASED, place);
}

/** For an operator. */
export async function openedReason(vault: Vault, sealed: string, record: Pick<RecordedEvent, 'stream'>): Promise<string> {
  return (await vault.openQuoting(sealed, placeOf(record)).catch(String)) ?? ERASED;
}

function placeOf({ stream }: Pick<RecordedEvent, 'stream'>): Place {
  return { stream, field: 'error' };
}

/** Whose what it says is, and whom it names. */
function holdersTold(record: RecordedEvent): readonly Holder[] {
  return [...new Set([...sealedIn(record).map(({ of }) => of), ...holdersNamedIn(`${record.stream} ${contentOf(record)}`)])];
}

/** Nothing where that cannot be read, which may be why it failed. */
function contentOf(record: RecordedEvent): string {
  try {
    return JSON.stringify([record.data, record.subject]);
  } catch {
    return '';
  }
}
