import { KafkaSettings, PublicAddressSettings, SETTINGS_CLASSES, TransportSettings } from '#libs/platform/src/config/settings';
import { StartRefused } from '#libs/platform/src/start-refused';
import { requireSettings } from './required-settings.ts';

const MASTER_KEYS = Buffer.alloc(32, 1).toString('base64');
/** What a cluster on engines that nobody started is told. */
const CLUSTER = {
  MASTER_KEYS,
  EVENTSTORE_URL: 'esdb://gatehouse:canary@127.0.0.1:1?tls=false',
  MONGODB_URL: 'mongodb://gatehouse:canary@127.0.0.1:1/gatehouse?authSource=admin',
  KAFKA_BROKERS: '127.0.0.1:1',
};

async function refusal(variables: Readonly<Record<string, string>>, used: readonly (new () => object)[] = SETTINGS_CLASSES): Promise<string> {
  const error = await requireSettings(used, variables).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StartRefused);
  expect((error as Error).message).not.toContain('canary');
  return (error as Error).message;
}

describe('the settings of a process', () => {
  it('are enough with those of one directory, and with those of a cluster that nobody has started yet', async () => {
    await requireSettings(SETTINGS_CLASSES, {});
    await requireSettings(SETTINGS_CLASSES, CLUSTER);
  });

  it('are refused together: forms, connection strings, files, and what belongs together', async () => {
    const message = await refusal({
      ...CLUSTER,
      MASTER_KEYS: 'canary',
      PORT: '70000',
      SHUTDOWN_TIMEOUT: 'soon',
      SERVICE_TLS_CERT: '/nowhere/cert',
      EVENTSTORE_URL: `${CLUSTER.EVENTSTORE_URL}&keepAliveInterval=5`,
      MONGODB_URL: `${CLUSTER.MONGODB_URL}&w=1&readConcernLevel=local`,
      KEYS_URL: 'mongodb://127.0.0.1/?tls=true&tlsCAFile=/nowhere/keys-ca',
      KAFKA_PASSWORD: 'canary',
      KAFKA_TLS: 'on',
      KAFKA_TLS_CA: '/nowhere/kafka-ca',
      S3_BUCKET: 'files',
      S3_SECRET_ACCESS_KEY: 'canary',
      S3_KMS_KEY: 'of-another-way',
    });
    for (const part of [
      'MASTER_KEYS is set to something else',
      'PORT is "70000"',
      'SHUTDOWN_TIMEOUT is "soon"',
      'without SERVICE_TLS_KEY and SERVICE_TLS_CA',
      'EVENTSTORE_URL has the option keepAliveInterval',
      'MONGODB_URL has options that Gatehouse sets itself: leave out w, readConcernLevel.',
      'tlsCAFile in KEYS_URL: /nowhere/keys-ca cannot be read (ENOENT).',
      'KAFKA_USERNAME and KAFKA_PASSWORD belong together',
      'KAFKA_TLS_CA: /nowhere/kafka-ca cannot be read (ENOENT).',
      'S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY belong together',
      'S3_KMS_KEY is set, and is used only where S3_ENCRYPTION is aws:kms',
    ])
      expect(message).toContain(part);
  });

  it('are told once each, and not as missing where they are wrong', async () => {
    expect(await refusal({ ...CLUSTER, EVENTSTORE_URL: 'http://canary' })).toBe(
      'EVENTSTORE_URL is set to something else, but must be a connection string that begins with esdb:// or esdb+discover://.',
    );
    expect(await refusal({ GATEHOUSE_MODE: 'prod' })).toBe('GATEHOUSE_MODE is "prod", but must be development or production.');
  });

  it('name all that production mode needs, whatever else is there', async () => {
    expect(await refusal({ ...CLUSTER, GATEHOUSE_MODE: 'production' })).toBe(
      'PUBLIC_URL is not set, and production mode needs it: it must be a URL that begins with http:// or https://, without query and fragment.',
    );
    await requireSettings(SETTINGS_CLASSES, { ...CLUSTER, GATEHOUSE_MODE: 'production', PUBLIC_URL: 'https://id.acme.test' });
    // Only who makes tokens, or names addresses, has to know its own.
    await requireSettings(
      SETTINGS_CLASSES.filter((type) => type !== PublicAddressSettings),
      { ...CLUSTER, GATEHOUSE_MODE: 'production' },
    );
  });

  it('name every engine where they name one, together with all else', async () => {
    const message = await refusal({ MASTER_KEYS, EVENTSTORE_URL: 'esdb://127.0.0.1?keepAliveTimeout=1' });
    expect(message).toContain('MONGODB_URL and KAFKA_BROKERS must be set too, since EVENTSTORE_URL is');
    expect(message).toContain('keepAliveTimeout');
    expect(await refusal({ EVENTSTORE_URL: CLUSTER.EVENTSTORE_URL, MONGODB_URL: CLUSTER.MONGODB_URL, KAFKA_BROKERS: 'one:1' })).toBe(
      'MASTER_KEYS is not set, and the processes of a cluster need the same ones: 32 bytes in base64.',
    );
  });

  it('need nothing that the process does not use', async () => {
    const { KAFKA_BROKERS: _, ...stores } = CLUSTER;
    await requireSettings(
      SETTINGS_CLASSES.filter((type) => type !== KafkaSettings && type !== TransportSettings),
      { ...stores, KAFKA_TLS: 'on', KAFKA_TLS_CA: '/nowhere/kafka-ca', SERVICE_TLS_CERT: '/nowhere/cert' },
    );
  });
});
