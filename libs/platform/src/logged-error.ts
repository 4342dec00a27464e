/** What a log line says of an error: these members and no others, since drivers hang whole rows and requests on theirs. */
interface LoggedError {
  readonly type: string;
  readonly message: string;
  /** Frames of the error and of what caused it. */
  readonly stack: string;
  readonly code?: string | number;
  readonly syscall?: string;
}

const MAX_MESSAGE = 1_000;
const MAX_FRAMES = 30;
const MAX_CAUSES = 5;
const MAX_WORD = 100;

/** Errors whose text quotes what was stored or sent: MongoDB's duplicate keys, what `JSON.parse` could not read. */
const QUOTING: readonly (readonly [names: RegExp, quotes: RegExp])[] = [
  [/^Mongo/, /\{.*\}?/s],
  [/^(SyntaxError|URIError)$/, /["'`].*["'`]/s],
];

/** For the field `error` of a line. Whatever else was thrown is told by its type alone. */
export function loggedError(thrown: unknown): LoggedError {
  if (!(thrown instanceof Error)) return { type: typeof thrown, message: 'Something was thrown that is no error.', stack: '' };
  const { code, syscall } = thrown as { readonly code?: unknown; readonly syscall?: unknown };
  return {
    type: typeOf(thrown),
    message: sentenceOfError(thrown),
    stack: stackOf(thrown),
    ...((typeof code === 'number' || isWord(code)) && { code }),
    ...(isWord(syscall) && { syscall }),
  };
}

/** The message of an error without what it quotes. */
export function sentenceOfError(error: Error): string {
  const names = [error.name, typeOf(error)];
  const message = QUOTING.reduce((text, [of, quotes]) => (names.some((name) => of.test(name)) ? text.replace(quotes, '…') : text), String(error.message));
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message;
}

/** Without the message that a stack begins with: that may quote, and go over many lines. */
function stackOf(error: Error): string {
  const parts: string[] = [];
  let next: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && next instanceof Error; depth++) {
    const frames = String(next.stack ?? '')
      .split('\n')
      .filter((line) => /^\s+at .{1,400}$/.test(line))
      .slice(0, MAX_FRAMES);
    parts.push([`${depth === 0 ? '' : 'caused by '}${typeOf(next)}: ${sentenceOfError(next)}`, ...frames].join('\n'));
    next = next.cause;
  }
  return parts.join('\n');
}

function typeOf(error: Error): string {
  const name: unknown = error.constructor.name === 'Error' ? error.name : error.constructor.name;
  return isWord(name) ? name : 'Error';
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_WORD && /^[\w.-]+$/.test(value);
}
