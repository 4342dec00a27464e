import { foldedValue, textOf } from '../domain/scim-values.decider.ts';

/** How many characters of a beginning have an entry: what begins with more is found by these. */
const LONGEST_BEGINNING = 8;

/** What lies in one directory is found under the directory and the value. */
export function inDirectory(directoryId: string, ...parts: readonly string[]): string {
  return [directoryId, ...parts].join(' ');
}

/** All beginnings of a text that have an entry. */
export function beginningsOf(text: unknown): readonly string[] {
  const characters = [...foldedValue(textOf(text) ?? '')].slice(0, LONGEST_BEGINNING);
  return characters.map((_, index) => characters.slice(0, index + 1).join(''));
}

/** The month and the day of a time: what changed since a time is found by those that follow it. */
export function datesOf(time: string): readonly string[] {
  return [time.slice(0, 7), time.slice(0, 10)];
}
