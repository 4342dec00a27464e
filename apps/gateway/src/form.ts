import { badRequest } from '#libs/platform/src/domain-error';

/** More fields than any operation has. */
const MAX_FIELDS = 100;
const FORM = 'application/x-www-form-urlencoded';

export function isForm(contentType: string | undefined): boolean {
  return contentType !== undefined && contentType.split(';', 1)[0]!.trim().toLowerCase() === FORM;
}

/**
 * The fields of a form, as texts. A field without a value counts as absent, and none may come twice (RFC 6749, 3.1 and 3.2).
 * @throws DomainError `bad_request`
 */
export function valueOfForm(text: string): Readonly<Record<string, string>> {
  const fields = new Map<string, string>();
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    if (++count > MAX_FIELDS) throw badRequest(`The form has more than ${MAX_FIELDS} fields.`);
    if (name === '__proto__') throw badRequest('A field of the form must not be `__proto__`.');
    if (fields.has(name)) throw badRequest('The form has a field twice.');
    fields.set(name, value);
  }
  return Object.fromEntries([...fields].filter(([, value]) => value !== ''));
}
