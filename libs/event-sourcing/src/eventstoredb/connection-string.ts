import { EventStoreDBClient } from '@eventstore/db-client';
import { requireCertificates } from '#libs/platform/src/certificates-file';
import { StartRefused } from '#libs/platform/src/start-refused';
import type { Endpoints } from '#libs/platform/src/unreachable';

const SETTING = 'EVENTSTORE_URL';
/** Those that the driver takes. */
const OPTIONS = [
  'tls',
  'tlsCAFile',
  'tlsVerifyCert',
  'userCertFile',
  'userKeyFile',
  'connectionName',
  'defaultDeadline',
  'maxDiscoverAttempts',
  'discoveryInterval',
  'gossipTimeout',
  'nodePreference',
  'throwOnAppendFailure',
];
/** Those that the connection sets itself. */
const OWN_OPTIONS = ['keepAliveInterval', 'keepAliveTimeout'];
/** A `?` begins the options wherever it stands; an `@` in them would make credentials of all before it, where there are none. */
const FORM = /^(?<front>esdb(?:\+discover)?:\/\/(?:(?<credentials>[^:@?]+:[^:@?]+)@)?(?<hosts>[^@/?]+))\/*(?:\?(?<options>[^?]*))?$/;

/**
 * A connection string that the driver takes without a word. It would print what it does not understand, and the password with it.
 * @throws StartRefused, without any part of the text but names of options and of files
 */
export function checkedUrl(url: string): string {
  const { front, credentials, options = '' } = FORM.exec(url.trim())?.groups ?? {};
  if (front === undefined || (credentials === undefined && options.includes('@')) || !isEncoded(credentials ?? ''))
    throw new StartRefused(
      `${SETTING} is no connection string: esdb://HOST:PORT or esdb+discover://HOST:PORT, NAME:PASSWORD@ before the host, with and :, @, ? and % escaped wherever they are part of a value.`,
    );
  const given = options.split('&').filter(Boolean);
  const refusals = given.flatMap(refusalOf);
  if (refusals.length > 0) throw new StartRefused(refusals.join(' '));
  // The driver takes a slash behind the hosts for a part of the last one's name.
  const checked = given.length === 0 ? front : `${front}?${given.join('&')}`;
  try {
    EventStoreDBClient.connectionString(checked);
  } catch (error) {
    // What the driver says of a file has no part of the text in it; what it says of anything else may.
    const isAboutFiles = error instanceof Error && /file/i.test(error.message) && !('connectionString' in error);
    throw new StartRefused(`${SETTING} is refused${isAboutFiles ? `: ${error.message}` : ': an option has a value that it cannot have.'}`);
  }
  return checked;
}

/** The same way without name and password; null where there are none, or where a certificate says who comes. */
export function withoutCredentials(checked: string): string | null {
  const { credentials, options = '' } = FORM.exec(checked)?.groups ?? {};
  const hasCertificate = options.split('&').some((option) => flat(option.split('=')[0]!) === flat('userCertFile'));
  return credentials === undefined || hasCertificate ? null : checked.replace(`${credentials}@`, '');
}

/** Where a checked connection string leads. */
export function endpointsOf(checked: string): Endpoints {
  const { hosts = '', options = '' } = FORM.exec(checked)?.groups ?? {};
  const value = (name: string): string | undefined => {
    const given = options.split('&').findLast((option) => flat(option.split('=')[0]!) === flat(name));
    return given?.slice(given.indexOf('=') + 1).trim();
  };
  const ca = value('tlsCAFile');
  return {
    hosts: hosts.split(',').map((each) => {
      const [host, port = '2113'] = each.trim().split(':');
      return { host: host!, port: Number(port) };
    }),
    tls: value('tls') === 'false' ? null : { ca: ca === undefined ? null : requireCertificates(`tlsCAFile in ${SETTING}`, decodeURIComponent(ca)) },
  };
}

function refusalOf(option: string): readonly string[] {
  const separator = option.indexOf('=');
  const [name, value] = separator < 0 ? [option, ''] : [option.slice(0, separator), option.slice(separator + 1).trim()];
  const known = [...OPTIONS, ...OWN_OPTIONS].find((each) => flat(each) === flat(name));
  // What is no name at all may be a part of something else.
  if (known === undefined)
    return [`${SETTING} has the option ${/^[A-Za-z_-]{1,40}$/.test(name) ? name : 'of a name that is none'}. Allowed are ${OPTIONS.join(', ')}.`];
  if (OWN_OPTIONS.includes(known)) return [`${SETTING} has the option ${known}, which Gatehouse sets itself: leave it out.`];
  if (value === '' || !isEncoded(value)) return [`${SETTING} has the option ${known} without a value that it can have.`];
  if (known === 'tlsVerifyCert' && value !== 'true')
    return [`${SETTING} has the option tlsVerifyCert, which the driver would not heed: name the authority by tlsCAFile.`];
  if (known !== 'tlsCAFile') return [];
  try {
    requireCertificates(`tlsCAFile in ${SETTING}`, decodeURIComponent(value));
    return [];
  } catch (error) {
    return [(error as StartRefused).message];
  }
}

/** As the driver compares names. */
function flat(name: string): string {
  return name.trim().toLowerCase().replaceAll(/[_-]/g, '');
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
