import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartRefused } from '#libs/platform/src/start-refused';
import { givenAuthority } from '#libs/testing/src/certificates';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { checkedUrl } from './connection-string.ts';

const folder = WatchedDirectory.create('connection-strings');
const ca = join(folder.path, 'engines-ca.crt');
const noCertificate = join(folder.path, 'something-else');
writeFileSync(ca, (await givenAuthority('Authority')).ca);
writeFileSync(noCertificate, 'a certificate');
afterAll(() => folder.remove());

const refusal = (url: string): string => {
  try {
    checkedUrl(url);
  } catch (error) {
    expect(error).toBeInstanceOf(StartRefused);
    return (error as Error).message;
  }
  throw new Error('expected a refusal');
};

describe('a connection string to EventStoreDB', () => {
  it.each([
    `esdb://gatehouse:canary@one.example.com:2113,two.example.com:2113?tls=true&tlsCAFile=${ca}`,
    `esdb://gatehouse:canary@one.example.com:2113?tls_ca_file=${encodeURIComponent(ca)}&TLS=true&tlsVerifyCert=true&throwOnAppendFailure=false`,
    'esdb+discover://gatehouse:can/ary+=@cluster.example.com?connectionName=a:b/c@d',
    'esdb://one.example.com:2113?connectionName=a:b/c',
  ])('is taken as the driver takes it: %s', (url) => {
    expect(checkedUrl(url)).toBe(url);
  });

  it.each(['esdb://one.example.com/?tls=false', 'esdb://one.example.com?tls=false&', ' esdb://one.example.com?&tls=false\n'])(
    'names the host and nothing else of it: %j',
    (url) => {
      expect(checkedUrl(url)).toBe('esdb://one.example.com?tls=false');
    },
  );

  it.each([
    ['keepAliveInterval=5', 'EVENTSTORE_URL has the option keepAliveInterval, which Gatehouse sets itself: leave it out.'],
    ['KEEP_ALIVE_TIMEOUT=5', 'EVENTSTORE_URL has the option keepAliveTimeout, which Gatehouse sets itself: leave it out.'],
    ['unknown=canary', 'EVENTSTORE_URL has the option unknown. Allowed are '],
    ['can@ary', 'EVENTSTORE_URL has the option of a name that is none. Allowed are '],
    ['tlsVerifyCert=false', 'EVENTSTORE_URL has the option tlsVerifyCert, which the driver would not heed: name the authority by tlsCAFile.'],
    ['tls=', 'EVENTSTORE_URL has the option tls without a value that it can have.'],
    ['connectionName=%zzcanary', 'EVENTSTORE_URL has the option connectionName without a value that it can have.'],
    ['tls=canary', 'EVENTSTORE_URL is refused: an option has a value that it cannot have.'],
    ['tlsCAFile=/nowhere/engines-ca.crt', 'tlsCAFile in EVENTSTORE_URL: /nowhere/engines-ca.crt cannot be read (ENOENT).'],
    [`tlsCAFile=${noCertificate}`, `tlsCAFile in EVENTSTORE_URL: ${noCertificate} holds no certificate in PEM.`],
  ])('is refused for %s, and says why', (option, sentence) => {
    const message = refusal(`esdb://gatehouse:canary@one.example.com?tls=true&${option}`.replace('tls=true&tls=', 'tls='));
    expect(message).toContain(sentence);
    expect(message).not.toContain('canary');
  });

  it('is refused for all that is wrong with it at once', () => {
    expect(refusal('esdb://one.example.com?keepAliveInterval=5&tlsCAFile=/nowhere/ca&tlsVerifyCert=false')).toMatch(
      /keepAliveInterval.*\/nowhere\/ca cannot be read.*tlsVerifyCert/,
    );
  });

  it.each([
    // The driver would cut the password at the second colon.
    'esdb://gatehouse:can:ary@one.example.com',
    'esdb://gatehouse:can%zzary@one.example.com',
    'esdb://gatehouse:canary?@one.example.com',
    // The driver would take everything before the @ for a name and a password.
    'esdb://one.example.com:2113?connectionName=can@ary',
    'http://canary.example.com',
    'canary',
    '',
  ])('is none where the driver would read it as something else: %j', (url) => {
    const message = refusal(url);
    expect(message).toContain('EVENTSTORE_URL is no connection string: ');
    expect(message).not.toMatch(/can|ary/);
  });
});
