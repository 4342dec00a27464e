import ipaddr from 'ipaddr.js';
import { RADAR_LIST_TYPES, type RadarListType } from '#libs/contracts/src/radar/radar';
import { storedEmail, TEXT_FORMATS } from '#libs/contracts/src/text-formats';
import { addressGroup } from '#libs/platform/src/address-group';
import { DomainError } from '#libs/platform/src/domain-error';
import { foldedEmail } from '../domain/user.decider.ts';
import { domainName } from '../domain/domain-name.ts';

/** The one spelling of what can be listed; null where it is nothing of the kind. */
const SPELLINGS: Readonly<Record<RadarListType, (text: string) => string | null>> = {
  ip_address: (text) => (ipaddr.isValid(text.trim()) ? addressGroup(text.trim()) : null),
  domain: domainName,
  email: (text) => (TEXT_FORMATS.email(text) ? foldedEmail(storedEmail(text)) : null),
  device: spoken,
  user_agent: spoken,
  device_fingerprint: spoken,
  country: (text) => (/^[A-Za-z]{2}$/.test(text.trim()) ? text.trim().toUpperCase() : null),
};

/** What is known of whoever tries. */
export interface KnownOfAttempt {
  readonly email: string;
  readonly ipAddress: string | null;
  readonly userAgent: string | null;
  /** What the application calls the device: it may be either word. */
  readonly deviceId: string | null;
}

/** @throws DomainError `invalid_radar_list_entry` */
export function listedValue(type: RadarListType, entry: string): string {
  const value = SPELLINGS[type](entry);
  if (value === null) throw new DomainError('invalid', 'invalid_radar_list_entry', `'${entry}' is no entry of the type ${type}.`);
  return value;
}

/** What of an attempt can be on a list. */
export function listableValues({ email, ipAddress, userAgent, deviceId }: KnownOfAttempt): readonly (readonly [RadarListType, string])[] {
  const known: Partial<Readonly<Record<RadarListType, string | null>>> = {
    ip_address: ipAddress,
    domain: email.slice(email.lastIndexOf('@') + 1),
    email,
    device: deviceId,
    user_agent: userAgent,
    device_fingerprint: deviceId,
  };
  return RADAR_LIST_TYPES.flatMap((type) => {
    const text = known[type] ?? null;
    const value = text === null ? null : SPELLINGS[type](text);
    return value === null ? [] : [[type, value] as const];
  });
}

function spoken(text: string): string | null {
  return text.trim() === '' ? null : text.trim();
}
