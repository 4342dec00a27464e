import type { RecordedEvent, SealedPart } from '../log/event-store.ts';
import { holderOf } from './holders.ts';

// The storage format of releases whose records do not say what is sealed in them: never edited.

const FORMER_FIELDS: Readonly<Record<string, readonly string[]>> = {
  user: ['email', 'first_name', 'last_name', 'name', 'profile_picture_url', 'external_id', 'metadata', 'password'],
};

const NOTHING: readonly SealedPart[] = [];

const FORMER_PATHS = new Map(
  Object.entries(FORMER_FIELDS).map(([resource, fields]) => [resource, ['data', 'subject'].flatMap((part) => fields.map((field) => `${part}.${field}`))]),
);

/** What is sealed in a record, whichever release wrote it. What became personal only since lies in old records as it is. */
export function sealedIn(record: Pick<RecordedEvent, 'type' | 'stream' | 'sealed'>): readonly SealedPart[] {
  if (record.sealed !== undefined) return record.sealed;
  const fields = FORMER_PATHS.get(resourceOf(record.type));
  return fields === undefined ? NOTHING : [{ of: holderOf(record), fields }];
}

/** Whether a record that says nothing would be taken for one of these releases: it says that nothing is sealed in it. */
export function mustSayWhatIsSealed(type: string): boolean {
  return FORMER_PATHS.has(resourceOf(type));
}

function resourceOf(type: string): string {
  return type.slice(0, type.lastIndexOf('.'));
}
