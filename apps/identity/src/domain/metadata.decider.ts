import { refusedField, type DomainError } from '#libs/platform/src/domain-error';

/**
 * Given keys are set, null removes a key, `{}` or null removes all. Made from entries, where `__proto__` is a key like any other.
 * @throws DomainError `invalid_metadata`
 */
export function mergedMetadata(current: Readonly<Record<string, string>>, given: Readonly<Record<string, unknown>> | null): Record<string, string> {
  const changes = Object.entries(given ?? {});
  const kept = changes.length === 0 ? [] : Object.entries(current);
  return Object.fromEntries(fitMetadata([...new Map([...kept, ...changes])].filter(([, value]) => value !== null)));
}

// As all text, without NUL.
const KEY = /^[^\0\P{ASCII}]{1,40}$/u;
const VALUE = /^[^\0\P{ASCII}]{0,600}$/u;

function fitMetadata(entries: readonly (readonly [string, unknown])[]): readonly (readonly [string, string])[] {
  if (entries.length > 50) throw invalidMetadata('Metadata has at most 50 pairs.');
  return entries.map(([key, value]) => {
    if (!KEY.test(key)) throw invalidMetadata('A metadata key has 1 to 40 ASCII characters.');
    if (typeof value !== 'string' || !VALUE.test(value)) throw invalidMetadata('A metadata value is text of at most 600 ASCII characters.');
    return [key, value];
  });
}

function invalidMetadata(message: string): DomainError {
  return refusedField('invalid', 'invalid_metadata', { field: 'metadata', message });
}
