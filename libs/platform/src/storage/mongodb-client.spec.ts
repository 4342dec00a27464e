import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { givenAuthority } from '#libs/testing/src/certificates';
import { WatchedDirectory } from '#libs/testing/src/engines/watched-directory';
import { StartRefused } from '../start-refused.ts';
import { mongodbClient, requireMongodbUrl } from './mongodb-client.ts';

const folder = WatchedDirectory.create('mongodb-urls');
const ca = join(folder.path, 'engines-ca.crt');
writeFileSync(ca, (await givenAuthority('Authority')).ca);
afterAll(() => folder.remove());

const refusal = (url: string): string => {
  try {
    requireMongodbUrl(url, 'KEYS_URL');
  } catch (error) {
    expect(error).toBeInstanceOf(StartRefused);
    return (error as Error).message;
  }
  throw new Error('expected a refusal');
};

describe('a connection string to MongoDB', () => {
  it('is taken with what is not for the product to say: where users are known, the replica set, TLS, pools, compression', () => {
    const url = `mongodb://gatehouse:canary@one.example.com,two.example.com/gatehouse?authSource=admin&replicaSet=rs0&tls=true&tlsCAFile=${ca}&maxPoolSize=20&compressors=zlib`;
    requireMongodbUrl(url, 'MONGODB_URL');
    expect(mongodbClient(url, 'MONGODB_URL').options).toMatchObject({ credentials: { source: 'admin' }, replicaSet: 'rs0', tls: true, maxPoolSize: 20 });
  });

  it.each([
    ['w=majority', 'w'],
    ['w=0&journal=true', 'w, journal'],
    ['j=false', 'j'],
    ['readConcernLevel=local', 'readConcernLevel'],
    ['READCONCERNLEVEL=local', 'readConcernLevel'],
    ['readPreference=secondaryPreferred&maxStalenessSeconds=120', 'readPreference, maxStalenessSeconds'],
    ['tls=true&socketTimeoutMS=1', 'socketTimeoutMS'],
    ['appName=canary', 'appName'],
  ])('is refused for what the product sets itself: %s', (options, names) => {
    const sentence = `KEYS_URL has options that Gatehouse sets itself: leave out ${names}.`;
    for (const path of ['/', '/gatehouse']) expect(refusal(`mongodb://gatehouse:canary@one.example.com${path}?${options}`)).toBe(sentence);
  });

  it('is refused for names that the driver does not know, and for files that cannot be read', () => {
    expect(refusal('mongodb://gatehouse:canary@one.example.com/?authSuorce=admin&tsl=true')).toBe(
      "KEYS_URL has options that MongoDB's driver does not know: authsuorce, tsl.",
    );
    expect(refusal('mongodb://one.example.com/?tls=true&tlsCAFile=/nowhere/ca')).toBe('tlsCAFile in KEYS_URL: /nowhere/ca cannot be read (ENOENT).');
    expect(refusal('mongodb://one.example.com/?tls=true&tlsCertificateKeyFile=/nowhere/key')).toBe(
      'tlsCertificateKeyFile in KEYS_URL: /nowhere/key cannot be read (ENOENT).',
    );
    writeFileSync(ca, 'a certificate');
    expect(refusal(`mongodb://one.example.com/?tls=true&tlsCAFile=${ca}`)).toBe(`tlsCAFile in KEYS_URL: ${ca} holds no certificate in PEM.`);
  });

  it.each(['admin', 'local', 'config', 'Gate.House', 'gate%20house', '%24a', 'x'.repeat(64)])('names no database that is not for it, such as %s', (path) => {
    expect(refusal(`mongodb://gatehouse:canary@one.example.com/${path}?authSource=admin`)).toMatch(
      /^The path of KEYS_URL has to be the name of a database of its own/,
    );
  });

  it.each(['mongodb://gatehouse:hunter/2@one.example.com/', 'mongodb://one.example.com/?maxPoolSize=hunter2', 'mongodb://gatehouse:hunter?2@one.example.com/'])(
    'is none, and nothing of it is told: %s',
    (url) => {
      expect(refusal(url)).toMatch(/^KEYS_URL is no connection string of MongoDB, or an option has a value/);
      expect(refusal(url)).not.toMatch(/hunter|2/);
    },
  );
});
