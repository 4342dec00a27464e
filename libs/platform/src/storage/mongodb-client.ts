import { MongoClient, MongoParseError, type MongoClientOptions } from 'mongodb';
import { requireCertificates, requireReadable } from '../certificates-file.ts';
import { StartRefused } from '../start-refused.ts';

/** What acknowledged means, and how long somebody waits, is not for a connection string to say: other names of the same are in the second list. */
const OWN_OPTIONS = ['appName', 'w', 'journal', 'wtimeoutMS', 'readConcernLevel', 'readPreference', 'serverSelectionTimeoutMS'].concat(
  ['connectTimeoutMS', 'waitQueueTimeoutMS', 'socketTimeoutMS', 'heartbeatFrequencyMS'],
  ['j', 'wtimeout', 'fsync', 'writeConcern', 'readConcern', 'readPreferenceTags', 'maxStalenessSeconds', 'timeoutMS'],
);
const OPTIONS = /^[^:]+:\/\/(?:[^@]*@)?[^/?@]+(?:\/[^?]*)?\?(?<options>.*)$/s;
const WITH_DATABASE = /^[^:]+:\/\/[^/?]+\/[^?]/;
/** Those of MongoDB itself hold its users: nobody may empty them before a restore. */
const NO_DATABASE = /^(admin|local|config)$|[ ."$/\\\0]|^.{64}/;
const NOT_KNOWN = /^options? (?<names>[A-Za-z]{1,40}(?:, [A-Za-z]{1,40})*) (?:is|are) not supported$/;

/**
 * A driver that has not connected yet, for a connection string that it takes.
 * @param setting names the connection string
 * @throws StartRefused, without any part of the text but names of options
 */
export function mongodbClient(url: string, setting: string, own: MongoClientOptions = {}): MongoClient {
  const given = (OPTIONS.exec(url)?.groups?.['options'] ?? '').split('&').map((option) => option.split('=')[0]!.toLowerCase());
  const refused = OWN_OPTIONS.filter((name) => given.includes(name.toLowerCase()));
  if (refused.length > 0) throw new StartRefused(`${setting} has options that Gatehouse sets itself: leave out ${refused.join(', ')}.`);
  try {
    const client = new MongoClient(url, own);
    if (!namesDatabase(url) || !NO_DATABASE.test(client.options.dbName)) return client;
  } catch (error) {
    // The driver's own words may quote a part of the password.
    const unknown = error instanceof MongoParseError ? NOT_KNOWN.exec(error.message)?.groups?.['names'] : undefined;
    throw new StartRefused(
      unknown === undefined
        ? `${setting} is no connection string of MongoDB, or an option has a value that it cannot have: special characters in name and password have to be percent-encoded.`
        : `${setting} has options that MongoDB's driver does not know: ${unknown}.`,
    );
  }
  throw new StartRefused(
    `The path of ${setting} has to be the name of a database of its own, or empty: none of MongoDB's (admin, local, config), and without blanks and . " $ / \\. Where the user was made, authSource says.`,
  );
}

/** The driver reads a path that is missing as the database `test`. */
export function namesDatabase(url: string): boolean {
  return WITH_DATABASE.test(url);
}

/**
 * The driver reads files when it connects, and would not say which setting names them.
 * @throws StartRefused, without any part of the text but names of options and of files
 */
export function requireMongodbUrl(url: string, setting: string): void {
  const { options } = mongodbClient(url, setting);
  if (options.tlsCAFile !== undefined) requireCertificates(`tlsCAFile in ${setting}`, options.tlsCAFile);
  for (const name of ['tlsCertificateKeyFile', 'tlsCRLFile'] as const) if (options[name] !== undefined) requireReadable(`${name} in ${setting}`, options[name]);
}
