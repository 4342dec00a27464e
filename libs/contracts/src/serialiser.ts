import { build } from 'fast-json-stringify';
import type { AnswerShape, Class } from './operation.ts';
import { objectSchema } from './json-schema.ts';

/** Writes a value as JSON; fields that it lacks are left out. */
export type Serialiser<T = unknown> = (value: T) => string;

const compiled = new WeakMap<Class, Serialiser>();

/**
 * The allow-list writer of a contract class or an answer: what a class does not declare cannot leave, at any depth, and fields come in the
 * order of their declaration. What it writes equals `JSON.stringify(JSON.parse(…))` of itself, which receivers of signed bodies rely on.
 */
export function serialiserOf<T>(of: Class<T> | AnswerShape<T>): Serialiser<T> {
  if (typeof of === 'function') return classSerialiser(of);
  if (of.of === null) return () => '';
  const one = classSerialiser(of.of);
  switch (of.shape) {
    case 'one':
    case 'redirect':
      return one;
    case 'array':
      return (values) => `[${(values as readonly unknown[]).map(one).join(',')}]`;
    case 'list':
    case 'feed':
      return (page) => {
        const { data, list_metadata } = page as { data: readonly unknown[]; list_metadata: { before?: string | null; after: string | null } };
        return listText(data.map(one), list_metadata.before, list_metadata.after);
      };
    case 'empty':
      return () => '';
  }
}

function classSerialiser<T>(type: Class<T>): Serialiser<T> {
  let serialiser = compiled.get(type);
  if (serialiser === undefined) {
    // Compiled from our own classes only, never from input.
    serialiser = build(objectSchema(type, 'serialise') as unknown as Parameters<typeof build>[0]);
    compiled.set(type, serialiser);
  }
  return serialiser;
}

/** The envelope of a page around rows that are JSON already. `before` undefined: the page of a feed, which has none. */
export function listText(texts: readonly string[], before: string | null | undefined, after: string | null): string {
  const metadata = before === undefined ? '{' : `{"before":${cursorText(before)},`;
  return `{"object":"list","data":[${texts.join(',')}],"list_metadata":${metadata}"after":${cursorText(after)}}}`;
}

function cursorText(cursor: string | null): string {
  return cursor === null ? 'null' : JSON.stringify(cursor);
}
