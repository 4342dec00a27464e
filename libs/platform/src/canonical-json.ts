import canonicalize from 'canonicalize';

/** JSON cannot say this in the one form: half of a surrogate pair, for which UTF-8 has no bytes, a number that is none, something that is no value. */
export class NoCanonicalJson extends RangeError {}

/**
 * JSON in the one form of RFC 8785 (JCS), so that whoever hashes a value hashes the same bytes. Fields that are undefined are left out, as JSON does.
 * @throws NoCanonicalJson
 */
export function canonicalJson(value: unknown): string {
  const text = spelled(value);
  if (text === undefined) throw new NoCanonicalJson('This is no value.');
  return text;
}

function spelled(value: unknown): string | undefined {
  try {
    return canonicalize(value);
  } catch (error) {
    throw new NoCanonicalJson((error as Error).message, { cause: error });
  }
}
