import { badRequest } from '#libs/platform/src/domain-error';

/** A body up to this length costs little whatever is in it. */
const SMALL = 4 * 1024;
/** No operation takes as much. What is nested, and each key that is another, costs far more to parse and to check than its bytes. */
const MAX_DEPTH = 32;
const MAX_KEYS = 2_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACE = 0x7d;
const CLOSE_BRACKET = 0x5d;

/**
 * Looks at the bytes of a body before it is parsed. What is no JSON may pass; the parser finds it.
 * @throws DomainError `bad_request`
 */
export function requireModest(body: Buffer): void {
  if (body.length <= SMALL) return;
  let depth = 0;
  let keys = 0;
  for (let at = 0; at < body.length; at++) {
    switch (body[at]!) {
      case QUOTE:
        at = endOfText(body, at);
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++depth > MAX_DEPTH) throw badRequest(`The body is nested more than ${MAX_DEPTH} levels deep.`);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth--;
        break;
      case COLON:
        if (++keys > MAX_KEYS) throw badRequest(`The body has more than ${MAX_KEYS} keys.`);
    }
  }
}

/** Where the text that begins at `start` ends. */
function endOfText(body: Buffer, start: number): number {
  let at = start + 1;
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** JSON may spell the key, all of it ASCII, with escapes; where neither occurs, nothing has to be searched. */
function isSuspicious(text: string): boolean {
  return text.includes('__proto__') || text.includes('\\u00');
}

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
  if (isSuspicious(text) && hasProtoKey(value)) throw badRequest('A key of the body must not be `__proto__`.');
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
  if (contentType === undefined || contentType === 'application/json') return;
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase();
  if (type !== 'application/json' && !type.endsWith('+json') && type !== '') throw badRequest('The body must be JSON (`Content-Type: application/json`).');
}
