import { isPlainText } from '#libs/platform/src/plain-text.decider';

/** What the formats of text mean, in one place: the compiled schemas and the class-validator rules both ask here. */

const DATE_TIME = /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;
const LOCAL_PART = /^[^\s"(),:;<>@[\\\]]{1,64}$/u;

/** The blank of Braille is no space to Unicode, and is shown as nothing. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** As plain text, without characters that nobody sees. A byte order mark counts as one of them, although it may be trimmed. */
export function isVisibleText(text: string): boolean {
  return isPlainText(text) && !text.includes('\ufeff') && !HIDDEN.test(text.trim());
}

/** The spelling in which addresses are stored and shown. */
export function storedEmail(text: string): string {
  return text.trim().toLowerCase();
}

/** ISO 8601 with a time zone, of a day that exists. */
function isDateTime(text: string): boolean {
  return isDayOf(DATE_TIME.exec(text));
}

/** A time, or a day: then its first instant in UTC is meant, as `Date.parse` reads it. */
function isDateOrTime(text: string): boolean {
  return isDayOf(DATE.exec(text)) || isDateTime(text);
}

/** `Date.parse` alone takes 30 February for 2 March. */
function isDayOf(parts: RegExpExecArray | null): boolean {
  if (parts === null) return false;
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
  return month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

function isUri(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^\s]+$/i.test(text) && URL.canParse(text);
}

function isHostname(text: string): boolean {
  return text.length <= 253 && text.split('.').every((label) => LABEL.test(label));
}

/** As it would be stored. */
function isEmail(given: string): boolean {
  const text = storedEmail(given);
  const at = text.lastIndexOf('@');
  return text.length <= 254 && LOCAL_PART.test(text.slice(0, Math.max(at, 0))) && isHostname(text.slice(at + 1));
}

export const TEXT_FORMATS = { 'date-time': isDateTime, 'date-or-time': isDateOrTime, uri: isUri, hostname: isHostname, email: isEmail } as const;

export type TextFormat = keyof typeof TEXT_FORMATS;

/** What they are called in a sentence about what was given. */
export const FORMAT_NAMES: Readonly<Record<TextFormat, string>> = {
  'date-time': 'a date and time with a time zone, such as 2026-01-15T12:00:00Z',
  'date-or-time': 'a date, such as 2026-01-15, or a date and time with a time zone',
  uri: 'a URL',
  hostname: 'a host name',
  email: 'an email address',
};

/** What they are called in published schemas: JSON Schema knows addresses of ASCII alone as `email`, and no word for a date or a time. */
export const PUBLISHED_FORMATS: Readonly<Record<TextFormat, string>> = {
  'date-time': 'date-time',
  'date-or-time': 'date-or-time',
  uri: 'uri',
  hostname: 'hostname',
  email: 'idn-email',
};
