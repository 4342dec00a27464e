import { EventStoreDBClient } from '@eventstore/db-client';
import { StartRefused } from '#libs/platform/src/start-refused';

/** Those that the driver knows, less those that the adapter sets itself, and `tlsVerifyCert`, which the driver ignores. */
const OPTIONS = new Set([
  'tls',
  'tlsCAFile',
  'userCertFile',
  'userKeyFile',
  'connectionName',
  'defaultDeadline',
  'maxDiscoverAttempts',
  'discoveryInterval',
  'gossipTimeout',
  'nodePreference',
]);
const FORM = /^esdb(?:\+discover)?:\/\/(?:[^:@/?]+:[^@/?]+@)?[^@/?]+\/?(?:\?(?<options>[^@/?]*))?$/;

/**
 * A connection string that the driver takes without a word. It would print what it does not understand, and the password with it.
 * @throws StartRefused, without any part of the text but the name of an option
 */
export function checkedUrl(url: string): string {
  const form = FORM.exec(url.trim());
  if (form === null)
    throw new StartRefused(
      'EVENTSTORE_URL is no connection string: esdb://HOST:PORT or esdb+discover://HOST:PORT, NAME:PASSWORD@ before the host, with and :, @, / and ? escaped wherever they are part of a value.',
    );
  for (const option of (form.groups!['options'] ?? '').split('&').filter(Boolean)) {
    const [name] = option.split('=');
    if (!OPTIONS.has(name!)) throw new StartRefused(`EVENTSTORE_URL has the option ${name}. Allowed are ${[...OPTIONS].join(', ')}.`);
  }
  const checked = url.trim().replace(/[?&]$/, '');
  try {
    EventStoreDBClient.connectionString(checked);
  } catch (error) {
    // What the driver says of a file has no part of the text in it; what it says of anything else may.
    const isAboutFiles = error instanceof Error && /file/i.test(error.message) && !('connectionString' in error);
    throw new StartRefused(`EVENTSTORE_URL is refused${isAboutFiles ? `: ${error.message}` : ': an option has a value that it cannot have.'}`);
  }
  return checked;
}
