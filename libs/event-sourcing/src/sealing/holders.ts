import { categoryOf, environmentOf } from '../log/naming.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import type { ErasablePurpose } from './key-store.ts';

/** Who is erased at once: `user.<id>`, `invitation.<id>`, or a customer's data of a month, `organization.<id>.<yyyy-mm>`. */
export type Holder = string;

/** Of whom somebody may tell who knows no more than an id. */
const NAMED = /\b(?<category>user|invitation)_[0-9A-HJKMNP-TV-Z]{26}\b/g;

/** Those whose ids stand in a text. */
export function holdersNamedIn(text: string): readonly Holder[] {
  return [...new Set([...text.matchAll(NAMED)].map(({ 0: id, groups }) => `${groups!['category']}.${id}`))];
}

/**
 * The key of a holder. It is called as the key of a person was before records named their holders, after the stream that is the person's own: so a user has one key, whichever
 * release sealed a record, and one tombstone erases all of it.
 */
export function purposeOf(holder: Holder, environment: string): ErasablePurpose {
  const dot = holder.indexOf('.');
  return `person.${holder.slice(0, dot)}-${environment}-${holder.slice(dot + 1)}`;
}

/** Of a record that does not say so: whoever its stream is about. */
export function holderOf({ stream }: Pick<RecordedEvent, 'stream'>): Holder {
  const category = categoryOf(stream);
  return `${category}.${stream.slice(category.length + environmentOf(stream).length + 2)}`;
}
