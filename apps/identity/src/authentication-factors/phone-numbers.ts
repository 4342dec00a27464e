import type { NumberType } from 'libphonenumber-js/max';
import { invalidField, type DomainError } from '#libs/platform/src/domain-error';

export interface PhoneNumber {
  /** As E.164 writes it: every spelling of a number is one number to the limits. */
  readonly number: string;
  /** ISO 3166: numbers of one calling code lie in several countries. Null: in none, as those of satellites. */
  readonly country: string | null;
}

/** Others take no text, or earn whoever rents them a share of what a text costs. */
const TAKE_TEXTS: readonly NumberType[] = ['MOBILE', 'FIXED_LINE_OR_MOBILE', 'VOIP'];

/** @throws DomainError `invalid_request_parameters` */
export async function phoneNumberOf(text: string): Promise<PhoneNumber> {
  // The plans of all countries are read where somebody has a number, and not at every start.
  const { parsePhoneNumberFromString } = await import('libphonenumber-js/max');
  const parsed = parsePhoneNumberFromString(text.trim(), { extract: false });
  if (parsed === undefined || !parsed.isValid() || parsed.ext !== undefined)
    throw wrongNumber('invalid', 'phone_number must be one that there is, as E.164 writes it: + and the code of the country first.');
  if (!TAKE_TEXTS.includes(parsed.getType())) throw wrongNumber('not_mobile', 'phone_number is none that takes text messages.');
  return { number: parsed.number, country: parsed.country ?? null };
}

/** It is not repeated in the answer. */
export function wrongNumber(reason: string, message: string): DomainError {
  return invalidField(reason, 'phone_number', message);
}
