import { badRequest } from './outcome.ts';

/** JSON may spell the key with escapes; where neither occurs, nothing has to be searched. */
const SUSPICIOUS = /__proto__|\\u005f/i;

/**
 * The value of a request body. An empty one counts as absent, since clients send a JSON content type with it on every request.
 * `__proto__` is refused as a key: data it may be here, but not in every program that copies it.
 * @throws DomainError `bad_request`
 */
export function valueOfBody(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    if (text.trim() === '') return undefined;
    throw badRequest('The body is not valid JSON.');
  }
  if (SUSPICIOUS.test(text) && hasProtoKey(value)) throw badRequest('A key of the body must not be `__proto__`.');
  return value;
}

function hasProtoKey(value: unknown): boolean {
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== 'object' || next === null) continue;
    if (Object.hasOwn(next, '__proto__')) return true;
    for (const inner of Object.values(next)) open.push(inner);
  }
  return false;
}

/** @throws DomainError `bad_request` when a body arrives that says it is something else than JSON */
export function requireJson(contentType: string | undefined): void {
  if (contentType === undefined) return;
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase();
  if (type !== 'application/json' && !type.endsWith('+json') && type !== '') throw badRequest('The body must be JSON (`Content-Type: application/json`).');
}
