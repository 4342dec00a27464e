/** A text has half of a surrogate pair, which no UTF-8 can say. */
export class LoneSurrogate extends RangeError {}

const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;

/**
 * JSON in the one form of RFC 8785 (JCS), so that whoever hashes a value hashes the same bytes. Fields that are undefined are left out, as JSON does.
 * @throws LoneSurrogate; RangeError for a number that JSON does not have
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return numeral(value);
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (typeof value !== 'object') throw new RangeError(`JSON has no ${typeof value}.`);
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  // By UTF-16 code units, as the comparison of texts goes anyway.
  fields.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${fields.map(([name, field]) => `${text(name)}:${canonicalJson(field)}`).join(',')}}`;
}

function numeral(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`JSON has no number ${value}.`);
  return JSON.stringify(value);
}

/** What has to be escaped, and how, is the same in RFC 8785 and in ECMAScript but for lone surrogates. */
function text(value: string): string {
  if (LONE_SURROGATE.test(value)) throw new LoneSurrogate('Half of a surrogate pair stands alone.');
  return JSON.stringify(value);
}
